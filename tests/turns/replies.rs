//! Every shape of reply through a whole turn: what the player reads, what is executed, what is reported.

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{BOB, learnt};
use crate::support::{Server, World};

fn call(words: &str) -> String {
    json!({ "tool_name": "NPC_memorize", "parameters": { "player_id": "player_alice", "memory_string": words } })
        .to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn text_replies_in_every_sound_shape() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let c = call("note");
    let shapes = [
        format!("<response><narrative>Well met.</narrative><tools>[{c}]</tools></response>"),
        format!(
            "Here you are:\n<response>\n<narrative>Well met.</narrative>\n<tools>[{c}]</tools>\n</response>\nAnything else?"
        ),
        format!(
            "```xml\n<response><narrative>Well met.</narrative><tools>\n```json\n[{c}]\n```\n</tools></response>\n```"
        ),
        format!("<response><narrative>Well met.</narrative><tools>{c}</tools></response>"),
        format!("<response><narrative><![CDATA[Well met.]]></narrative><tools><![CDATA[[{c}]]]></tools></response>"),
        format!("<response><narrative>Well met.</narrative><tools>[{c}]</tools>"),
        json!({ "narrative": "Well met.", "tool_calls": [serde_json::from_str::<serde_json::Value>(&c).unwrap()] })
            .to_string(),
        format!("```json\n{{\"narrative\": \"Well met.\", \"tool_calls\": [{c}]}}\n```"),
        format!(
            "<response><narrative>Well met.</narrative><tools>[{c}]</tools></response><response><narrative>No.</narrative><tools>[{c},{c}]</tools></response>"
        ),
    ];
    for (n, shape) in shapes.iter().enumerate() {
        let shape = shape.replace("note", &format!("note {n}"));
        server.model.set_script(Script::replies([Reply::text(&shape)]));
        let body = json!({ "player_id": "player_alice", "action": "Hello", "reply_mode": "xml" });
        let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
        assert_eq!(turn.body["narrative"], "Well met.", "{shape}");
        assert_eq!(turn.body["tool_calls"][0]["status"], "succeeded", "{shape}");
        assert_eq!(turn.body["tool_calls"].as_array().unwrap().len(), 1, "{shape}");
        assert_eq!(turn.body.get("parse_error"), None, "{shape}");
        assert_eq!(turn.body["usage"]["llm_calls"], 1, "a tool that only acts needs no second call: {shape}");
        assert_eq!(learnt(&world).await.len(), n + 1, "{shape}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_replies_without_calls() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for shape in [
        "<response><narrative>Fish &amp; chips.</narrative><tools/></response>",
        "<response><narrative>Fish & chips.</narrative><tools></tools></response>",
        "<response><narrative>Fish & chips.</narrative></response>",
        "<response><narrative>Fish & chips.</narrative><tools>[]</tools></response>",
        "Fish & chips.",
        r#"{"narrative": "Fish & chips.", "tool_calls": []}"#,
        r#"{"narrative": "Fish & chips."}"#,
    ] {
        server.model.set_script(Script::replies([Reply::text(shape)]));
        let body = json!({ "player_id": "player_alice", "action": "Hello", "reply_mode": "xml" });
        let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
        assert_eq!(turn.body["narrative"], "Fish & chips.", "{shape}");
        assert_eq!(turn.body["tool_calls"], json!([]), "{shape}");
        assert_eq!(turn.body.get("parse_error"), None, "{shape}");
    }
    assert!(learnt(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_tools_deliver_the_words_and_do_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let c = call("never");
    for tools in [
        format!("<tools>[{c}, {{\"tool_name\": \"NPC_memo</tools></response>"),
        format!("<tools>[{c}"),
        format!("<tools>[{c},]]</tools></response>"),
        "<tools>remember her</tools></response>".to_owned(),
        format!("<tools>[{}]</tools></response>", vec![c.as_str(); 33].join(",")),
    ] {
        let reply = format!("<response><narrative>Well met.</narrative>{tools}");
        server.model.set_script(Script::replies([Reply::text(&reply)]));
        let body = json!({ "player_id": "player_alice", "action": "Hello", "reply_mode": "xml" });
        let turn = world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
        assert_eq!(turn.body["narrative"], "Well met.", "{reply}");
        assert_eq!(turn.body["tool_calls"], json!([]), "{reply}");
        assert!(turn.body["parse_error"].is_string(), "{reply}");
        let id = turn.id();
        let record = world.get(&format!("/turns/{id}")).await.expect(200);
        assert_eq!(record.body["parse_error"], turn.body["parse_error"]);
    }
    assert!(learnt(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_propose_actions() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let action = |tool: &str, words: &str| json!({ "tool_name": tool, "parameters": { "player_id": "player_alice", "memory_string": words }, "cost": 1, "reason": "so" });
    let actions = [action("OWNER_memorize", "Pays her tolls."), action("OWNER_memorize_dependables", "Greet her.")];
    let reply = json!({ "owner_id": "town_council_owner", "narrative": "So be it.", "proposed_actions": actions });
    server.model.set_script(Script::replies([Reply::text(reply.to_string())]));
    let body = json!({ "player_id": "player_alice", "action": "I pay the toll.", "reply_mode": "xml" });
    let turn = world.post("/owners/town_council_owner/turns", body).await.expect(200);
    assert_eq!(super::statuses(&turn), ["succeeded", "succeeded"]);
    assert_eq!(turn.body["narrative"], "So be it.");
    assert_eq!(world.memories("owners/town_council_owner", "player_alice").await[1], "Pays her tolls.");
    assert_eq!(world.memories(BOB, "player_alice").await[1], "Greet her.");
}

/// A native reply may hold words and calls, or words in several steps; the player reads all of them in order.
#[tokio::test(flavor = "multi_thread")]
async fn native_words_are_joined() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        super::remember("Tips well.").with_text("Oh, thank you!"),
        super::remember("Drinks ale."),
        Reply::text("Another ale?"),
    ]));
    let turn = world.bob("player_alice", "I tip.").await.expect(200);
    assert_eq!(turn.body["narrative"], "Oh, thank you!\n\nAnother ale?");
    assert_eq!(learnt(&world).await, ["Tips well.", "Drinks ale."]);
    assert_eq!(turn.body["usage"]["llm_calls"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_may_be_huge_but_not_empty() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([
        Reply::text(""),
        Reply::repeat_bytes(10_000_000),
        Reply::text("Still here."),
    ]));
    world.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");
    let huge = world.bob("player_alice", "Tell me everything.").await.expect(200);
    let words = huge.body["narrative"].as_str().unwrap();
    assert!((1000..=64 * 1024).contains(&words.len()), "{}", words.len());
    // The conversation goes on, with alternating roles and within its budget.
    assert_eq!(world.bob("player_alice", "Hello?").await.expect(200).body["narrative"], "Still here.");
    let requests = server.model.requests();
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    let roles: Vec<_> = last.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles[0], "system");
    assert!(
        roles[1..].chunks(2).all(|pair| pair[0] == "user" && pair.get(1).is_none_or(|r| *r == "assistant")),
        "{roles:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_chooses_its_reply_mode() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = World::make(&tenant, "inn").await;
    tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "reply_mode": "xml" } } })).await.expect(200);
    let turn = world.bob("player_alice", "I pay for my drink.").await.expect(200);
    assert_eq!(turn.body["tool_calls"][0]["status"], "succeeded");
    let requests = server.model.requests();
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].get("tools"), None);
    assert!(requests[0]["messages"][0]["content"].as_str().unwrap().contains("<response><narrative>"));
    assert_eq!(world.get(&format!("/turns/{}", turn.id())).await.expect(200).body["reply_mode"], "xml");
}

/// PostgreSQL holds no NUL; models may write one anywhere.
#[tokio::test(flavor = "multi_thread")]
async fn nul_characters_stop_at_the_door() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let escaped = r#"{"player_id": "player_alice", "memory_string": "a\u0000b"}"#;
    server.model.set_script(Script::replies([
        super::remember("Kept.")
            .with_tool("NPC_memorize", escaped)
            .with_tool("NPC\u{0}_fly", json!({}))
            .with_text("One\u{0} two."),
        Reply::text("Three\u{0}."),
    ]));
    let turn = world.bob("player_alice", "Hello").await.expect(200);
    assert_eq!(turn.body["narrative"], "One two.\n\nThree.");
    assert_eq!(super::statuses(&turn)[0], "succeeded");
    assert_eq!(super::statuses(&turn)[2], "rejected");
    assert!(!turn.text.contains("\\u0000"), "{}", turn.text);
    let kept = learnt(&world).await;
    assert!(kept[0] == "Kept." && kept.iter().all(|m| !m.contains('\0')), "{kept:?}");
    world.get(&format!("/turns/{}", turn.id())).await.expect(200);
    let xml = format!("<response><narrative>One\u{0} two.</narrative><tools>[{}]</tools></response>", call("x\u{0}y"));
    server.model.set_script(Script::always(Reply::text(xml)));
    let body = json!({ "player_id": "player_alice", "action": "Hello", "reply_mode": "xml" });
    world.post("/npcs/innkeeper_bob/turns", body).await.expect(200);
}
