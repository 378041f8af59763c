//! What is kept of a turn: its record, the list with its filters, the trace, the ledger.

use edge::{caller::Scope, state::Above};
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{always, body, remember, turns};
use crate::support::{Server, World, sse::Events};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_recorded_as_it_was_answered() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Pays."), Reply::text("Thanks!")]));
    let turn = world.bob("player_alice", "I pay for my drink.").await.expect(200);
    let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200);
    for field in [
        "id",
        "kind",
        "status",
        "campaign_id",
        "entity_id",
        "player_id",
        "model",
        "narrative",
        "tool_calls",
        "prompt",
        "usage",
    ] {
        assert_eq!(record.body[field], turn.body[field], "{field}");
    }
    // It has no version: its ETag is that of what it says.
    let path = world.path(&format!("/turns/{}", turn.id()));
    let known = async || {
        let request = tenant.request(reqwest::Method::GET, &path).header("if-none-match", record.header("etag"));
        tenant.send(request).await
    };
    assert_eq!(known().await.expect(304).header("etag"), record.header("etag"));
    let bob = world.get("/npcs/innkeeper_bob").await.expect(200).id();
    assert_eq!((turn.body["kind"].as_str(), turn.body["entity_id"].as_str()), (Some("npc"), Some(bob.as_str())));
    let names: Vec<_> =
        turn.body["prompt"]["sections"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "engine_rules",
            "global_lore",
            "scoped_lore",
            "personality",
            "tools",
            "player_lore",
            "memories",
            "history",
            "turn"
        ]
    );
    let timings = &turn.body["timings_ms"];
    let ms = |name: &str| timings[name].as_f64().unwrap();
    assert!(
        ms("llm") > 0.0 && ms("server") > 0.0 && (ms("total") - ms("llm") - ms("server")).abs() < 0.01,
        "{timings}"
    );
    // The trace is for game masters.
    let trace = &record.body["trace"];
    assert_eq!(trace["action"], "I pay for my drink.");
    assert!(trace["turn_text"].as_str().unwrap().contains("<player_action"));
    assert_eq!(trace["llm_calls"].as_array().unwrap().len(), 2);
    assert_eq!(trace["llm_calls"][1]["text"], "Thanks!");
    assert!(trace["lore"].as_array().unwrap().iter().any(|l| l["slug"] == "the_reach" && l["included"] == true));
    let journal = &record.body["journal"];
    let (first, last) = (journal["first_seq"].as_i64().unwrap(), journal["last_seq"].as_i64().unwrap());
    assert_eq!(last - first, 2, "a memory and two messages: {journal}");
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    let plain = reader.get(&world.path(&format!("/turns/{}", turn.id()))).await.expect(200);
    assert_eq!((plain.body.get("trace"), plain.body.get("journal")), (None, None));
    assert_eq!(plain.body["narrative"], "Thanks!");
    world.post(&format!("/turns/{}/undo", turn.id()), json!({})).await.expect(200);
    assert_ne!(known().await.expect(200).header("etag"), record.header("etag"));
}

/// What a player says is stored as the turn's action, as the message and in the message's journal entry. What the model read of it refers to
/// that, and comes back whole.
#[tokio::test(flavor = "multi_thread")]
async fn words_are_stored_three_times() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    let its_id: uuid::Uuid = sqlx::query_scalar("SELECT tenant_id FROM tenant").fetch_one(&mut db).await.unwrap();
    let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut db).await.unwrap();
    let copies = async |db: &mut sqlx::PgConnection, words: &str| {
        let mut found = Vec::new();
        for table in &tables {
            let sql = format!("SELECT coalesce(sum(regexp_count(t::text, $1)), 0)::bigint FROM {table} t");
            let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(words);
            let times: i64 = query.fetch_one(&mut *db).await.unwrap();
            found.extend((times > 0).then(|| (table.clone(), times)));
        }
        found
    };
    let three: Vec<_> = ["journal", "message", "turn"].map(|table| (table.to_owned(), 1)).into();
    let session = json!({ "client_id": "table", "role": "gm" });
    let session = world.post("/sessions", session).await.expect(201).id();
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let said = "  Is <b>xyzzy</b> & plugh “here”?  ";
    let bob = world.bob("player_alice", said).await.expect(200).id();
    assert_eq!(copies(&mut db, "xyzzy").await, three);
    let asked = json!({ "instruction": said.replace("xyzzy", "frotz") });
    let gm = world.post(&format!("/sessions/{session}/turns"), asked).await.expect(200).id();
    assert_eq!(copies(&mut db, "frotz").await, three);
    for (turn, words) in [(bob, "xyzzy"), (gm, "frotz")] {
        let read = server.model.requests().into_iter().find(|request| request.to_string().contains(words)).unwrap();
        let read = read["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        let trace = world.get(&format!("/turns/{turn}")).await.expect(200).body["trace"].clone();
        assert_eq!(trace["action"], said.replace("xyzzy", words));
        let told = trace["turn_text"].as_str().unwrap();
        assert!(told.contains(&format!("\nIs &lt;b>{words}&lt;/b> & plugh “here”?\n")), "{told}");
        assert!(read.ends_with(told), "{read}\n{told}");
    }
    // A conversation that is read from the database is the one that the model had.
    let history = async || {
        world.bob("player_alice", "And now?").await.expect(200);
        let request = server.model.requests().pop().unwrap();
        let messages = request["messages"].as_array().unwrap();
        messages.iter().map(|m| m["content"].as_str().unwrap().to_owned()).find(|m| m.contains("xyzzy")).unwrap()
    };
    let kept = history().await;
    server.app.forget(its_id);
    assert_eq!(history().await, kept);
    // So it is in a document of the campaign.
    let document = world.get("/export").await.expect(200).text;
    assert!(document.contains("Is &lt;b>xyzzy&lt;/b>") && !document.contains("</>"), "{document}");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_listed_and_filtered() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(always(Reply::text("Hm.")));
    let first = world.bob("player_alice", "I ask for ale.").await.expect(200);
    let second = world.bob("player_mallory", "I look around.").await.expect(200);
    tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "I petition.").await.expect(200);
    server.model.set_script(Script::replies([Reply::status(500)]));
    world.bob("player_alice", "I ask for more ale.").await.problem(502, "llm_unavailable");
    let count = async |query: &str| world.get(&format!("/turns?{query}")).await.expect(200).items().len();
    assert_eq!(count("").await, 4);
    assert_eq!(count("status=failed").await, 1);
    assert_eq!(count("kind=owner").await, 1);
    assert_eq!(count(&format!("entity_id={}", first.body["entity_id"].as_str().unwrap())).await, 3);
    assert_eq!(count(&format!("player_id={}", second.body["player_id"].as_str().unwrap())).await, 1);
    assert_eq!(count("q=ale").await, 2);
    // Pages meet every turn once.
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = world.get(&format!("/turns?limit=3{cursor}")).await.expect(200);
        seen.extend(page.items().iter().map(|t| t["id"].as_str().unwrap().to_owned()));
        let Some(next) = page.body["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let all: Vec<_> = turns(&world).await.iter().map(|t| t["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(seen, all);
    // Others do not see them.
    let rival = server.tenant("rival").await;
    rival.get(&world.path("/turns")).await.problem(404, "not_found");
    let other = World::make(&tenant, "elsewhere").await;
    other.get(&format!("/turns/{}", first.id())).await.problem(404, "not_found");
    assert!(turns(&other).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_player_sees_its_words_and_no_machinery() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let player =
        tenant.token(json!({ "scopes": ["play", "read"], "campaign": "port-town", "player_id": "player_alice" })).await;
    let turn = player.npc_turn("port-town", "innkeeper_bob", "player_alice", "Hello").await.expect(200);
    assert_eq!(turn.body.get("prompt"), None);
    assert!(turn.body["narrative"].is_string());
    player.npc_turn("port-town", "innkeeper_bob", "player_mallory", "Hello").await.problem(403, "forbidden");
    let kept = player.get(&world.path(&format!("/turns/{}", turn.id()))).await.expect(200).body;
    assert_eq!((kept.get("prompt"), kept.get("trace"), &kept["narrative"]), (None, None, &turn.body["narrative"]));
    player.get(&world.path("/turns")).await.problem(403, "forbidden");
    player.post(&world.path("/npcs/innkeeper_bob/prompt"), body("Hello")).await.problem(403, "forbidden");
    player.post(&world.path(&format!("/turns/{}/undo", turn.id())), json!({})).await.problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_part_must_exist_here() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let post = async |entity: &str, body: Value| world.post(&format!("/{entity}/turns"), body).await;
    post("npcs/nobody", body("Hi")).await.problem(404, "not_found");
    post("npcs/town_council_owner", body("Hi")).await.problem(404, "not_found");
    post("owners/innkeeper_bob", body("Hi")).await.problem(404, "not_found");
    tenant.npc_turn("nowhere", "innkeeper_bob", "player_alice", "Hi").await.problem(404, "not_found");
    let unknown = post("npcs/innkeeper_bob", json!({ "player_id": "harbour_ilse", "action": "Hi" })).await;
    assert_eq!(unknown.problem(422, "validation_failed").pointers(), ["/player_id"]);
    for (bad, pointer) in [
        (json!({ "player_id": "player_alice", "action": " " }), "/action"),
        (json!({ "player_id": "player_alice", "action": "x".repeat(4001) }), "/action"),
        (json!({ "player_id": "player_alice" }), "/action"),
        (json!({ "action": "Hi" }), "/player_id"),
        (json!({ "player_id": "player_alice", "action": "Hi", "mood": "gay" }), "/mood"),
        (json!({ "player_id": "player_alice", "action": "Hi", "reply_mode": "yaml" }), "/reply_mode"),
    ] {
        assert_eq!(post("npcs/innkeeper_bob", bad).await.problem(422, "validation_failed").pointers(), [pointer]);
    }
    assert_eq!(server.model.request_count(), 0);
    assert!(turns(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_summed_and_priced() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let figures = |prompt, cached, completion| rehearsal::UsageOverride {
        prompt_tokens: Some(prompt),
        cached_tokens: Some(cached),
        completion_tokens: Some(completion),
        total_tokens: None,
    };
    let priceless = || {
        Script::replies([remember("x").usage(figures(1000, 0, 10)), Reply::text("y").usage(figures(1100, 1000, 20))])
    };
    server.model.set_script(priceless());
    let turn = world.bob("player_alice", "Hello").await.expect(200);
    let expected = json!({ "llm_calls": 2, "prompt_tokens": 2100, "cached_tokens": 1000, "completion_tokens": 30, "total_tokens": 2130 });
    assert_eq!(turn.body["usage"], expected);
    let day = tenant.get("/v1/usage").await.expect(200);
    assert_eq!(day.items().len(), 1);
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&day.items()[0][field], value, "{field}");
    }
    assert_eq!(day.items()[0]["cost_micros"], Value::Null, "no prices yet");

    let prices = json!({ "prompt": 2_000_000, "cached": 500_000, "completion": 10_000_000 });
    tenant.patch("/v1/tenant", json!({ "settings": { "llm": { "prices": prices } } })).await.expect(200);
    let other = World::make(&tenant, "elsewhere").await;
    server.model.set_script(priceless());
    let answered = tenant.owner_turn("elsewhere", "town_council_owner", "player_alice", "Hello").await.expect(200);
    let mut mara = crate::admin::Visitor::signed_in(&server, tenant.tenant, edge::users::Role::Owner).await;
    let page = mara.get(&format!("/admin/c/elsewhere/turns/{}", answered.id())).await.expect(200).text;
    assert!(page.contains("<dt>Cost</dt><dd dir=\"auto\">0.003000"), "{page}");
    // What a failed turn used is used.
    server.model.set_script(Script::replies([remember("x").usage(figures(500, 0, 5)), Reply::status(500)]));
    other.bob("player_alice", "Hello").await.problem(502, "llm_unavailable");

    let kinds = tenant.get("/v1/usage?group_by=kind").await.expect(200);
    let of = |rows: &[Value], field: &str, name: &str| rows.iter().find(|r| r[field] == name).cloned().unwrap();
    let npc = of(kinds.items(), "kind", "npc");
    assert_eq!(
        (npc["turns"].as_i64(), npc["prompt_tokens"].as_i64(), npc["llm_calls"].as_i64()),
        (Some(2), Some(2600), Some(3))
    );
    let owner = of(kinds.items(), "kind", "owner");
    // 1,100 fresh at 2, 1,000 cached at a half, 30 written at 10.
    assert_eq!(owner["cost_micros"], 2200 + 500 + 300);
    let campaigns = tenant.get("/v1/usage?group_by=campaign,kind").await.expect(200);
    assert_eq!(campaigns.items().len(), 3);
    assert_eq!(tenant.get("/v1/usage?group_by=day").await.expect(200).items()[0]["turns"], 3);
    assert!(tenant.get("/v1/usage?from=2020-01-01&to=2020-01-02").await.expect(200).items().is_empty());
    tenant.get("/v1/usage?group_by=entity").await.problem(400, "bad_request");
    // The ledger is the tenant's own.
    assert!(server.tenant("rival").await.get("/v1/usage").await.expect(200).items().is_empty());
}

/// Does something with a turn's record, as the schema's owner.
async fn record_becomes(server: &Server, turn: &str, change: &str) {
    let sql = format!("UPDATE turn SET record = ({change})::json WHERE id::text = $1");
    let done = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(turn).execute(&mut server.owner().await).await.unwrap();
    assert_eq!(done.rows_affected(), 1);
}

/// An erasure may change any word of a record, and an older server did not write all of it. What can be read is shown.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_in_part_is_shown_without_that_part() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    server.model.set_script(Script::replies([remember("Pays."), Reply::text("Thanks!")]));
    let told = world.bob("player_alice", "I pay for my drink.").await.expect(200).body;
    let turn = told["id"].as_str().unwrap();
    let path = format!("/turns/{turn}");
    let whole = world.get(&path).await.expect(200).body;
    let read = async || world.get(&path).await.expect(200).body;

    // An older server knew less.
    let older = "record::jsonb #- '{view,ending}' #- '{view,trigger}' #- '{view,timings_ms}' #- '{trace,llm_calls,0,task}' \
                 #- '{trace,llm_calls,0,parameters}' #- '{trace,removed}'";
    record_becomes(&server, turn, older).await;
    let now = read().await;
    for member in ["narrative", "tool_calls", "usage", "prompt", "trigger", "status", "created_at", "alternatives"] {
        assert_eq!(now[member], whole[member], "{member}");
    }
    assert_eq!((&now["ending"], &now["timings_ms"]["total"]), (&Value::Null, &json!(0.0)));
    assert_eq!(now["trace"]["llm_calls"].as_array().unwrap().len(), 2);
    assert_eq!(now["trace"]["llm_calls"][1], whole["trace"]["llm_calls"][1]);

    // Words that programs read are gone.
    let erased = [
        "view,kind",
        "view,status",
        "view,prompt,cache",
        "view,tool_calls,0,status",
        "trace,player_id",
        "trace,llm_calls,1,task",
        "trace,recall",
    ];
    let erased = erased
        .iter()
        .fold("record::jsonb".to_owned(), |record, path| format!("jsonb_set({record}, '{{{path}}}', '\"[erased]\"')"));
    record_becomes(&server, turn, &erased).await;
    let unreadable = || base::metrics::ROWS_UNREADABLE.get();
    let before = unreadable();
    let now = read().await;
    assert!(unreadable() > before, "it is counted");
    for member in ["narrative", "kind", "status", "usage", "model"] {
        assert_eq!(now[member], whole[member], "{member}");
    }
    assert_eq!((&now["tool_calls"], now.get("prompt")), (&json!([]), None));
    assert_eq!(now["trace"]["llm_calls"].as_array().unwrap().len(), 1);
    assert_eq!((&now["trace"]["player_id"], &now["trace"]["action"]), (&Value::Null, &json!("I pay for my drink.")));
    let list = world.get("/turns").await.expect(200);
    assert_eq!(list.items()[0]["narrative"], whole["narrative"]);
    let events = async || {
        let request = tenant.request(reqwest::Method::GET, &world.path(&format!("{path}/events")));
        Events::open(request, None).await.rest().await
    };
    let heard = events().await;
    let names: Vec<_> = heard.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["turn.started", "text.delta", "turn.completed"]);
    assert_eq!((&heard[1].data["text"], &heard[2].data["turn"]["narrative"]), (&json!("Thanks!"), &json!("Thanks!")));
    let mut mara = crate::admin::Visitor::signed_in(&server, tenant.tenant, edge::users::Role::Owner).await;
    let page = mara.get(&format!("/admin/c/port-town/turns/{turn}")).await.expect(200).text;
    assert!(page.contains("Thanks!"), "{page}");

    // A record that is none.
    record_becomes(&server, turn, "'[1]'").await;
    let now = read().await;
    assert_eq!((&now["id"], &now["status"], &now["narrative"]), (&whole["id"], &whole["status"], &json!("")));
    assert_eq!(events().await.last().unwrap().name, "turn.completed");

    // A turn of a kind that this server does not know. Who follows it learns that nothing more comes.
    let strange = sqlx::query("UPDATE turn SET kind = 'riddle' WHERE id::text = $1").bind(turn);
    strange.execute(&mut server.owner().await).await.unwrap();
    let heard = events().await;
    let names: Vec<_> = heard.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["turn.started", "turn.failed"]);
    assert_eq!(heard[1].data["error"]["code"], "internal");
}
