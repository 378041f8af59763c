//! What a stored text may contain, by each door: lines end with LF, and there are no control characters but tabs. Names have one line.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::{
    admin::Visitor,
    bridge::Socket,
    support::{Client, Server, World},
    turns::learnt,
};
use edge::users::Role;

/// Whether a text breaks the rule.
fn is_unfit(text: &str) -> bool {
    text.contains(|c: char| c.is_control() && c != '\n' && c != '\t')
}

/// All texts in a value, names of members among them.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => members.iter().flat_map(|(name, v)| texts(v).into_iter().chain([&**name])).collect(),
        _ => Vec::new(),
    }
}

#[track_caller]
fn keeps_the_rule(value: &Value) {
    let broken: Vec<_> = texts(value).into_iter().filter(|text| is_unfit(text)).collect();
    assert!(broken.is_empty(), "{broken:?} in {value}");
}

async fn message(world: &World<'_>, content: &str) -> Value {
    let list = world.get("/messages?limit=200").await.expect(200);
    list.items()
        .iter()
        .find(|m| m["content"] == content)
        .unwrap_or_else(|| panic!("{content:?} in {}", list.text))
        .clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_end_with_a_line_feed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let text = "One.\rTwo.\r\nThree.\r\r\n\tFour.\u{2028}Five.";
    let stored = "One.\nTwo.\nThree.\n\n\tFour.\u{2028}Five.";
    let said = world.post("/messages", json!({ "content": text, "extensions": { "own": [{ "note": text }] } })).await;
    let said = said.expect(201).body;
    assert_eq!((&said["content"], &said["extensions"]["own"][0]["note"]), (&json!(stored), &json!(stored)));
    let lore = json!({ "title": "Docks", "scope": "global", "content": text });
    let made = world.post("/lore", lore).await.expect(201);
    assert_eq!(made.body["content"], stored);
    let path = format!("/lore/{}", made.id());
    assert_eq!(world.patch(&path, json!({ "content": text })).await.expect(200).body["content"], stored);
    let memory = json!({ "player_id": "player_alice", "text": text });
    assert_eq!(world.post("/npcs/innkeeper_bob/memories", memory).await.expect(201).body["text"], stored);
    let call = json!({ "actor": { "type": "npc", "id": "innkeeper_bob" },
        "arguments": { "player_id": "player_alice", "memory_string": format!("{text} By a tool.") } });
    world.post("/tools/NPC_memorize", call).await.expect(200);
    assert!(learnt(&world).await.contains(&format!("{stored} By a tool.")));
}

#[tokio::test(flavor = "multi_thread")]
async fn control_characters_are_refused_where_they_are() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for unfit in
        ['\0', '\u{1}', '\u{7}', '\u{8}', '\u{b}', '\u{c}', '\u{1b}', '\u{1f}', '\u{7f}', '\u{80}', '\u{85}', '\u{9f}']
    {
        let text = format!("äb{unfit}c");
        for (path, body, pointer) in [
            ("/messages", json!({ "content": text }), "/content"),
            ("/messages", json!({ "content": "x", "extensions": { "a/b": [text] } }), "/extensions/a~1b/0"),
            ("/messages", json!({ "content": "x", "extensions": { text.clone(): 1 } }), "/extensions"),
            ("/characters", json!({ "name": "Zed", "weapons": [{ "name": text }] }), "/weapons/0/name"),
            (
                "/commands/ooc",
                json!({ "player_id": "player_alice", "arguments": { "message": text } }),
                "/arguments/message",
            ),
            ("/npcs/innkeeper_bob/turns", json!({ "player_id": "player_alice", "action": text }), "/action"),
        ] {
            let answer = world.post(path, body).await.problem(422, "validation_failed");
            let error = &answer.body["errors"][0];
            assert_eq!(
                (&error["pointer"], &error["code"]),
                (&json!(pointer), &json!("invalid_text")),
                "{}",
                answer.text
            );
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(&format!("character 3 is U+{:04X}", u32::from(unfit))), "{message}");
        }
    }
    let patch = json!({ "description": "a\u{1b}[31mb" });
    let answer = world.patch("/npcs/innkeeper_bob", patch).await.problem(422, "validation_failed");
    assert_eq!(answer.body["errors"][0]["pointer"], "/description");
    // Names of members end their lines like other texts, and stay different.
    let named = async |own: Value| world.post("/messages", json!({ "content": "x", "extensions": own })).await;
    assert_eq!(named(json!({ "a\rb": 1 })).await.expect(201).body["extensions"], json!({ "a\nb": 1 }));
    named(json!({ "a\rb": 1, "a\nb": 2 })).await.problem(422, "validation_failed");
    let rolls = json!({ "rolls": [{ "formula": "1d6", "flavor": "a\u{7}" }] });
    let answer = tenant.post("/v1/dice/roll", rolls).await.problem(422, "validation_failed");
    assert_eq!(answer.body["errors"][0]["pointer"], "/rolls/0/flavor");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_have_one_line() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for ending in ["\n", "\r", "\r\n", "\u{2028}", "\u{2029}"] {
        let name = format!("Ann{ending}Game Master");
        for (path, body, pointer) in [
            ("/messages", json!({ "content": "x", "speaker": { "name": name } }), "/speaker/name"),
            ("/messages", json!({ "content": "x", "speaker": { "name": "Ann", "alias": name } }), "/speaker/alias"),
            ("/npcs", json!({ "name": name }), "/name"),
            ("/lore", json!({ "title": name, "scope": "global", "content": "x" }), "/title"),
            ("/scenes", json!({ "name": "Docks", "tokens": [{ "id": "a", "name": name }] }), "/tokens/0/name"),
        ] {
            let answer = world.post(path, body).await.problem(422, "validation_failed");
            assert_eq!(answer.body["errors"][0]["pointer"], pointer, "{ending:?}: {}", answer.text);
        }
    }
    // What clients keep for themselves is no name of ours.
    let own = json!({ "content": "x", "extensions": { "name": "two\nlines" } });
    assert_eq!(world.post("/messages", own).await.expect(201).body["extensions"]["name"], "two\nlines");
}

#[tokio::test(flavor = "multi_thread")]
async fn frontends_are_not_refused_for_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (mut socket, _) = Socket::connect(&server.url, &tenant.credential, json!({ "role": "gm" })).await;
    let data = json!({ "content": "Over\u{7} the\rbridge.\u{85}", "speaker": { "name": "Ann\nB\u{1b}", "alias": "C\u{2028}D" },
        "id": "m1" });
    socket.send(json!({ "type": "chat_message", "request_id": "1", "data": data })).await;
    assert_eq!(socket.next().await["type"], "ack");
    let told = message(&world, "Over the\nbridge.").await;
    assert_eq!(told["speaker"], json!({ "name": "Ann B", "alias": "C D" }));
    // Many texts below a long name cost no more than their bytes.
    let data = json!({ "n".repeat(150_000): vec!["\u{7f}"; 30_000] });
    socket.send(json!({ "type": "chat_message", "request_id": "2", "data": data })).await;
    assert_eq!(socket.next().await["data"]["code"], "payload_too_large");
    let session = world.post("/sessions", json!({ "client_id": "t", "role": "gm" })).await.expect(201).id();
    let path = format!("/sessions/{session}/events");
    let reported = |data: Value| json!({ "events": [{ "type": "chat_message", "data": data }] });
    world.post(&path, reported(json!({ "content": "By\rREST.", "speaker": "E\r\nF" }))).await.expect(200);
    assert_eq!(message(&world, "By\nREST.").await["speaker"]["name"], "E F");
    // Over REST there is somebody to correct it.
    world.post(&path, reported(json!({ "content": "By\u{7}REST." }))).await.problem(422, "validation_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_models_say_is_cleaned() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let arguments = r#"{"player_id": "player_alice", "memory_string": "a\u0007b\rc\r\nd\u0085\u001b"}"#;
    let said = "\u{1b} One\u{7}.\rTwo.\r\nThree.\u{85} ";
    for mode in ["native", "xml"] {
        let body = json!({ "player_id": "player_alice", "action": "Hello.", "reply_mode": mode });
        let script = match mode {
            "native" => vec![Reply::tool("NPC_memorize", arguments).with_text(said), Reply::text("Four.\rFive.")],
            _ => vec![Reply::text(format!(
                "<response><narrative>{said}</narrative><tools>[{{\"tool_name\":\"NPC_memorize\",\"parameters\":{arguments}}}]</tools></response>"
            ))],
        };
        server.model.set_script(Script::replies(script));
        let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
        let narrative = turn.body["narrative"].as_str().unwrap();
        assert!(narrative.starts_with("One.\nTwo.\nThree."), "{mode}: {narrative:?}");
        keeps_the_rule(&turn.body);
        keeps_the_rule(&world.get(&format!("/turns/{}", turn.id())).await.expect(200).body);
        assert_eq!(learnt(&world).await.last().map(String::as_str), Some("ab\nc\nd"), "{mode}");
    }
    keeps_the_rule(&world.get("/messages?limit=200").await.expect(200).body);
}

/// What an import says of a file, and the row that it made.
async fn imported(client: &Client<'_>, path: &str, file: &Value) -> Value {
    let answer = client.post(&format!("/v1/campaigns/port-town/import/{path}"), file.clone()).await;
    assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn files_lose_them_and_get_them_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let raw = "Line one.\rLine two\u{7}\u{0} and {{char}}.\u{85}";
    let entry = |content: &str| {
        json!({ "keys": ["d\u{1b}ocks"], "content": content, "extensions": {}, "enabled": true, "insertion_order": 1,
            "comment": "Docks" })
    };
    let card = json!({ "spec": "chara_card_v2", "spec_version": "2.0", "data": { "name": "Zed\nthe\u{7} Bold", "description": raw,
        "personality": "Calm.", "first_mes": "Hi\u{7}.", "mes_example": "", "scenario": "\u{7}", "creator_notes": "By\u{0} me.",
        "character_book": { "name": "Book\u{7}", "extensions": {}, "entries": [entry("Tar\u{7} and salt.")] } } });
    let report = imported(&tenant, "character-card", &card).await;
    let told = report["fields"].as_array().unwrap();
    for path in
        ["/data/description", "/data/first_mes", "/data/creator_notes", "/data/character_book/entries/*/content"]
    {
        let is_told =
            |field: &Value| field["path"] == path && field["reason"].as_str().unwrap_or("").contains("control char");
        assert!(told.iter().any(is_told), "{path}: {report}");
    }
    let npc = world.get("/npcs?q=Zed").await.items()[0].clone();
    keeps_the_rule(&npc);
    assert_eq!(npc["description"], "Line one.\nLine two and Zed the Bold.");
    let lore = world.get("/lore?q=salt").await.items()[0].clone();
    keeps_the_rule(&lore);
    assert_eq!((&lore["content"], &lore["keys"]), (&json!("Tar and salt."), &json!(["docks"])));
    // The same file again changes nothing, and an export has what the file had.
    assert_eq!(imported(&tenant, "character-card", &card).await["counts"]["updated"], 0);
    let path = format!("/npcs/{}", npc["slug"].as_str().unwrap());
    let out = world.get(&format!("{path}/card.json")).await.expect(200).body;
    for member in ["description", "first_mes", "creator_notes"] {
        assert_eq!(out["data"][member], card["data"][member], "{member}: {out}");
    }
    let entry = &out["data"]["character_book"]["entries"][0];
    assert_eq!((&entry["content"], &entry["keys"]), (&json!("Tar\u{7} and salt."), &json!(["d\u{1b}ocks"])), "{out}");
    // Nothing else gets them: what had only control characters is empty, like other fields.
    assert_eq!((&out["data"]["scenario"], &out["data"]["system_prompt"]), (&json!(""), &json!("")), "{out}");
    // What was changed here is what is exported.
    world.patch(&path, json!({ "description": "Changed." })).await.expect(200);
    let out = world.get(&format!("{path}/card.json")).await.expect(200).body;
    assert_eq!((&out["data"]["description"], &out["data"]["first_mes"]), (&json!("Changed."), &json!("Hi\u{7}.")));
    // The row can be sent back as it was read.
    world.patch(&path, json!({ "extensions": npc["extensions"] })).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn lorebooks_seeds_and_documents_lose_them_too() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let book = json!({ "name": "Harbor\u{7}", "entries": { "0": { "uid": 0, "key": ["quay\u{0}"], "comment": "Quay\u{1b}",
        "content": "Stone\u{7}.\r\nWet\u{85}." } } });
    let report = imported(&tenant, "lorebook", &book).await;
    assert!(report["fields"].to_string().contains("control characters"), "{report}");
    let lore = world.get("/lore?q=Stone").await.items()[0].clone();
    keeps_the_rule(&lore);
    assert_eq!((&lore["title"], &lore["content"]), (&json!("Quay"), &json!("Stone.\nWet.")));
    let out = world.get("/lorebook.json").await.expect(200).body;
    let all = out["entries"].as_object().unwrap();
    let entry = all.values().find(|e| e["content"].as_str().unwrap().starts_with("Stone")).unwrap();
    assert_eq!((&entry["content"], &entry["key"]), (&book["entries"]["0"]["content"], &book["entries"]["0"]["key"]));
    let seed = json!({ "npcs": [{ "name": "Nell", "personality_prompt": "Kind\u{7}.\rShy." }] });
    let report = imported(&tenant, "seed", &seed).await;
    assert!(report["warnings"].to_string().contains("/npcs/0/personality_prompt: control characters"), "{report}");
    assert_eq!(world.get("/npcs?q=Nell").await.items()[0]["personality_prompt"], "Kind.\nShy.");
    let mut document = world.get("/export").await.expect(200).body;
    document["campaign"]["description"] = json!("Salt\u{7}.\rWind.");
    document["npcs"][0]["description"] = json!("Tall\u{0}.");
    document["messages"] =
        json!([{ "author": "player", "content": "Ho\u{7}y.", "created_at": "2026-01-01T00:00:00Z" }]);
    let report = tenant.post("/v1/campaigns/import?slug=again", document).await;
    assert!(matches!(report.status, 200 | 201), "{}", report.text);
    for path in ["/campaign/description", "/npcs/0/description", "/messages/0/content"] {
        assert!(report.body["warnings"].to_string().contains(&format!("{path}: control")), "{path}: {}", report.text);
    }
    let again = tenant.get("/v1/campaigns/again/export").await.expect(200).body;
    keeps_the_rule(&again);
    assert_eq!(again["campaign"]["description"], "Salt.\nWind.");
    assert_eq!(again["messages"][0]["content"], "Hoy.");
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_refused_like_bodies() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let form = mara.get("/admin/c/port-town/lore/new").await.expect(200).text;
    let id = crate::admin::field(&form, "form_id");
    let fields = |content: &'static str| {
        [
            ("form_id", id.clone()),
            ("title", "Docks".to_owned()),
            ("scope", "global".to_owned()),
            ("content", content.to_owned()),
        ]
    };
    let post = async |content: &'static str| {
        let fields = fields(content);
        let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        mara.post("/admin/c/port-town/lore", &fields).await
    };
    let refused = post("Tar\u{7}.").await.expect(422);
    assert!(refused.text.contains("U+0007"), "{}", refused.text);
    post("Tar.\rSalt.\r\nWind.").await.expect(303);
    assert_eq!(world.get("/lore?q=Tar").await.items()[0]["content"], "Tar.\nSalt.\nWind.");
    // JSON in a field of a form can name any character.
    let page = mara.get("/admin/c/port-town/npcs/innkeeper_bob/edit").await.expect(200).text;
    let version = crate::admin::field(&page, "version");
    let fields = [("version", &*version), ("name", "Bob"), ("extensions", r#"{"note": "a\u0007b"}"#)];
    let refused = mara.post("/admin/c/port-town/npcs/innkeeper_bob", &fields).await.expect(422);
    assert!(refused.text.contains("U+0007") && refused.text.contains("/note"), "{}", refused.text);
}
