//! What a memory holds beside its words: when it happened, whether it is pinned, and its place in the order of writing.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Server, World};

const BOB: &str = "/npcs/innkeeper_bob/memories";

async fn noted(world: &World<'_>, text: &str) -> Answer {
    world.post(BOB, json!({ "player_id": "player_alice", "text": text })).await.expect(201)
}

/// The texts of Bob's memories of Alice, in the order of writing.
async fn texts(world: &World<'_>) -> Vec<String> {
    world.memories("npcs/innkeeper_bob", "player_alice").await
}

fn told(text: &str, holder: (&str, &str)) -> Value {
    json!({ "actor": { "type": holder.0, "id": holder.1 }, "arguments": { "player_id": "player_alice", "memory_string": text } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_memory_says_when_it_happened() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let without = noted(&world, "Before anybody counted days.").await.body;
    assert_eq!((&without["game_time"], &without["pinned"]), (&Value::Null, &json!(false)));

    let long = "秋".repeat(121);
    world.patch("", json!({ "game_time": long })).await.expect(200);
    let cut = noted(&world, "In a long autumn.").await.body;
    assert_eq!(cut["game_time"], "秋".repeat(120));
    world.patch("", json!({ "game_time": " \u{3000}second\u{2028}\n\u{a0}day\u{2003}" })).await.expect(200);
    let now = noted(&world, "Bought cider.").await.body;
    assert_eq!(now["game_time"], "second day");
    for (given, kept) in
        [(json!(null), Value::Null), (json!("  "), Value::Null), (json!(" first day "), json!("first day"))]
    {
        let body = json!({ "player_id": "player_alice", "text": "Lent a horse.", "game_time": given, "pinned": true });
        let made = world.post(BOB, body).await.expect(201).body;
        assert_eq!((&made["game_time"], &made["pinned"]), (&kept, &json!(true)), "{given}");
    }
    // What tools write has the campaign's time.
    for (tool, holder) in [
        ("NPC_memorize", ("npc", "innkeeper_bob")),
        ("OWNER_memorize", ("owner", "town_council_owner")),
        ("OWNER_memorize_dependables", ("owner", "town_council_owner")),
    ] {
        world.post(&format!("/tools/{tool}"), told("Told.", holder)).await.expect(200);
    }
    let all = world.get("/memories?limit=200").await.expect(200);
    let told: Vec<_> = all.items().iter().filter(|memory| memory["text"] == "Told.").collect();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|memory| memory["game_time"] == "second day" && memory["pinned"] == false), "{told:?}");

    // A patch changes what it names.
    let path = format!("/memories/{}", now["id"].as_str().unwrap());
    let pinned = world.patch(&path, json!({ "pinned": true })).await.expect(200).body;
    assert_eq!(
        (&pinned["game_time"], &pinned["pinned"], &pinned["version"]),
        (&json!("second day"), &json!(true), &json!(2))
    );
    let other = world.patch(&path, json!({ "game_time": "third day", "text": "Bought perry." })).await.expect(200).body;
    assert_eq!(
        (&other["game_time"], &other["pinned"], &other["text"]),
        (&json!("third day"), &json!(true), &json!("Bought perry."))
    );
    let bare = world.patch(&path, json!({ "game_time": null, "pinned": null })).await.expect(200).body;
    assert_eq!((&bare["game_time"], &bare["pinned"]), (&Value::Null, &json!(false)));
    for (body, pointer) in [
        (json!({ "game_time": "x".repeat(121) }), "/game_time"),
        (json!({ "game_time": 3 }), "/game_time"),
        (json!({ "pinned": "yes" }), "/pinned"),
        (json!({ "seq": 1 }), "/seq"),
    ] {
        assert_eq!(
            world.patch(&path, body.clone()).await.problem(422, "validation_failed").pointers(),
            [pointer],
            "{body}"
        );
        let mut new = json!({ "player_id": "player_alice", "text": "New." });
        new.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        assert_eq!(world.post(BOB, new).await.problem(422, "validation_failed").pointers(), [pointer], "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_and_pins_travel() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("", json!({ "game_time": "second day" })).await.expect(200);
    let body = json!({ "player_id": "player_alice", "text": "Lent a grey horse.", "pinned": true });
    let made = world.post(BOB, body).await.expect(201);
    let (id, path) = (made.id(), format!("/memories/{}", made.id()));
    let kept = |memory: &Value| (memory["game_time"].clone(), memory["pinned"].clone());
    let as_made = (json!("second day"), json!(true));

    // A fork.
    let fork = world.post("/fork", json!({ "slug": "copy" })).await.expect(201).body;
    let copied =
        tenant.get(&format!("/v1/campaigns/{}/memories?limit=200", fork["slug"].as_str().unwrap())).await.expect(200);
    let copied = copied.items().iter().find(|memory| memory["text"] == "Lent a grey horse.").unwrap().clone();
    assert_eq!(kept(&copied), as_made);

    // A document, and what is imported without them.
    let mut document = world.get("/export").await.expect(200).body;
    let rows = document["memories"].as_array_mut().unwrap();
    let row = rows.iter().find(|row| row["text"] == "Lent a grey horse.").unwrap().clone();
    assert_eq!(kept(&row), as_made);
    assert!(row.get("seq").is_none());
    let plain = rows.iter().find(|row| row["text"] != "Lent a grey horse.").unwrap();
    assert_eq!((plain.get("game_time"), plain.get("pinned")), (None, None), "what is usual is not written");
    document["campaign"]["slug"] = json!("other");
    tenant.post("/v1/campaigns/import", document.clone()).await.expect(200);
    let imported = tenant.get("/v1/campaigns/other/memories?limit=200").await.expect(200);
    let imported: Vec<_> = imported.items().iter().map(|memory| (memory["text"].clone(), kept(memory))).collect();
    assert!(imported.contains(&(json!("Lent a grey horse."), as_made.clone())));
    assert!(imported.iter().all(|(text, kept)| *text == "Lent a grey horse." || *kept == (Value::Null, json!(false))));
    document["memories"][0]["game_time"] = json!("x".repeat(121));
    let refused = tenant.post("/v1/campaigns/import?dry_run=true", document).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/memories/0/game_time"]);

    // The changes that clients read: without the number.
    world.patch(&path, json!({ "game_time": "third day", "pinned": false })).await.expect(200);
    let changes = world.get("/changes?limit=200").await.expect(200);
    let of_it: Vec<_> = changes.items().iter().filter(|change| change["id"] == json!(id)).collect();
    assert_eq!(of_it.len(), 2);
    assert_eq!((kept(&of_it[0]["after"]), kept(&of_it[1]["after"])), (as_made, (json!("third day"), json!(false))));
    for change in of_it {
        for image in ["before", "after"] {
            assert!(change[image].get("seq").is_none(), "{change}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_is_that_of_writing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let first = texts(&world).await;
    let made = ["One.", "Two.", "Three.", "Four."].map(ToOwned::to_owned);
    let mut ids = Vec::new();
    for text in &made {
        ids.push(noted(&world, text).await.id());
    }
    // The clock of the server that wrote them went backwards.
    let mut db = server.owner().await;
    for (n, id) in ids.iter().enumerate() {
        let id: Uuid = id.parse().unwrap();
        let turned_id = Uuid::parse_str(&format!("0000000{}-0000-7000-8000-000000000000", 9 - n)).unwrap();
        sqlx::query("UPDATE memory SET id = $2 WHERE id = $1").bind(id).bind(turned_id).execute(&mut db).await.unwrap();
    }
    let expected: Vec<String> = first.iter().chain(&made).cloned().collect();
    assert_eq!(texts(&world).await, expected);
    let prompt = world.prompt("innkeeper_bob", "player_alice", "Hello").await.to_string();
    let places: Vec<_> = made.iter().map(|text| prompt.find(text.as_str()).unwrap()).collect();
    assert!(places.is_sorted(), "{places:?}");
    // Page by page, in both directions.
    for (sort, mut expected) in [("created_at", expected.clone()), ("-created_at", expected.clone())] {
        if sort.starts_with('-') {
            expected.reverse();
        }
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page =
                world.get(&format!("{BOB}?player_id=player_alice&limit=2&sort={sort}{cursor}")).await.expect(200);
            paged.extend(page.items().iter().map(|memory| memory["text"].as_str().unwrap().to_owned()));
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        assert_eq!(paged, expected, "{sort}");
    }
    // The cursor of a list without numbers.
    let other = world.get("/npcs?limit=1").await.expect(200).body["next_cursor"].as_str().unwrap().to_owned();
    world.get(&format!("/memories?limit=1&cursor={other}")).await.problem(400, "bad_request");
    world.get(&format!("/broadcasts?limit=1&cursor={other}")).await.problem(400, "bad_request");

    // A copy and a document have the same order.
    world.post("/fork", json!({ "slug": "copy" })).await.expect(201);
    let mut document = world.get("/export").await.expect(200).body;
    document["campaign"]["slug"] = json!("other");
    tenant.post("/v1/campaigns/import", document).await.expect(200);
    for slug in ["copy", "other"] {
        let path = format!("/v1/campaigns/{slug}/npcs/innkeeper_bob/memories?player_id=player_alice&limit=200");
        let copied = tenant.get(&path).await.expect(200);
        let copied: Vec<_> = copied.items().iter().map(|memory| memory["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(copied, expected, "{slug}");
    }

    // What was deleted and comes back has its place again: before what others were told meanwhile.
    let others = "/npcs/harbour_ilse/memories";
    let bob = format!("/npcs/{}", world.get("/npcs/innkeeper_bob").await.expect(200).id());
    world.delete(&bob).await.expect(204);
    world.post(others, json!({ "player_id": "player_alice", "text": "Five." })).await.expect(201);
    let deleted = world.get(&format!("{bob}/revisions")).await.expect(200).items()[0]["seq"].clone();
    world.post(&format!("{bob}/revisions/{deleted}/restore"), json!({})).await.expect(200);
    let all = world.get("/memories?player_id=player_alice&sort=-created_at&limit=200").await.expect(200);
    assert_eq!(all.items()[0]["text"], "Five.");
    assert_eq!(texts(&world).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn broadcasts_are_in_the_order_of_their_first_memories() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..3 {
        let npc = json!({ "slug": format!("guard_{n}"), "name": "Guard", "owner_ids": ["town_council_owner"] });
        world.post("/npcs", npc).await.expect(201);
    }
    for n in 0..5 {
        let text = format!("Told {n}.");
        world.post("/tools/OWNER_memorize_dependables", told(&text, ("owner", "town_council_owner"))).await.expect(200);
    }
    // Their ids say nothing.
    let mut db = server.owner().await;
    sqlx::query("UPDATE memory SET broadcast_id = md5(broadcast_id::text)::uuid WHERE broadcast_id IS NOT NULL")
        .execute(&mut db)
        .await
        .unwrap();
    let mut expected: Vec<_> = (0..5).map(|n| format!("Told {n}.")).collect();
    for sort in ["created_at", "-created_at"] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/broadcasts?limit=2&sort={sort}{cursor}")).await.expect(200);
            paged.extend(
                page.items()
                    .iter()
                    .map(|item| (item["text"].as_str().unwrap().to_owned(), item["audience_total"].clone())),
            );
            match page.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        let (paged, heard): (Vec<_>, Vec<_>) = paged.into_iter().unzip();
        assert_eq!(paged, expected, "{sort}");
        assert!(heard.iter().all(|many| *many == json!(4)), "{heard:?}");
        expected.reverse();
    }
    // Without its first copy, and found by a corrected one.
    let told = world.get("/broadcasts?limit=1").await.expect(200).items()[0].clone();
    let copies = told["audience"].as_array().unwrap();
    world.delete(&format!("/memories/{}", copies[0]["memory_id"].as_str().unwrap())).await.expect(204);
    world
        .patch(&format!("/memories/{}", copies[1]["memory_id"].as_str().unwrap()), json!({ "text": "Corrected." }))
        .await
        .expect(200);
    let found = world.get("/broadcasts?q=corrected").await.expect(200);
    assert_eq!((found.items().len(), &found.items()[0]["id"]), (1, &told["id"]));
    assert_eq!(found.items()[0]["audience_total"], 3);
    assert_eq!(world.get("/broadcasts").await.expect(200).items()[0]["id"], told["id"]);
    for (since, q, many) in [
        ("2000-01-01T00:00:00Z", "", 5),
        ("2000-01-01T00:00:00Z", "&q=corrected", 1),
        ("9999-01-01T00:00:00Z", "", 0),
        ("9999-01-01T00:00:00Z", "&q=told", 0),
    ] {
        let found = world.get(&format!("/broadcasts?updated_since={since}{q}")).await.expect(200);
        assert_eq!(found.items().len(), many, "{since}{q}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_write_nothing_twice_word_for_word() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.free_of_charge().await;
    let before = texts(&world).await.len();
    let call = async |tool: &str, text: &str, holder| {
        world.post(&format!("/tools/{tool}"), told(text, holder)).await.expect(200).body["result"].clone()
    };
    let (bob, council) = (("npc", "innkeeper_bob"), ("owner", "town_council_owner"));
    for (first, again) in [
        ("Alice likes cider.", "alice LIKES cider."),
        ("Élodie mag Äpfel.", "élodie mag äpfel."),
        ("アリスは灰色の馬を貸した。", "ｱﾘｽは灰色の馬を貸した。"),
    ] {
        let made = call("NPC_memorize", first, bob).await;
        assert_eq!(call("NPC_memorize", first, bob).await, made, "{first}");
        assert_eq!(call("NPC_memorize", again, bob).await, made, "{again}");
    }
    assert_eq!(texts(&world).await.len(), before + 3);
    // Other words, another holder and another player are other memories; so is what a person writes.
    let first = call("NPC_memorize", "Alice likes cider.", bob).await;
    assert_ne!(call("NPC_memorize", "Alice likes cider", bob).await, first);
    let private = call("OWNER_memorize", "Alice likes cider.", council).await;
    assert_ne!(private, first);
    assert_eq!(call("OWNER_memorize", "Alice likes cider.", council).await, private);
    let about_other = json!({ "actor": { "type": "npc", "id": "innkeeper_bob" },
        "arguments": { "player_id": "player_mallory", "memory_string": "Alice likes cider." } });
    assert_ne!(world.post("/tools/NPC_memorize", about_other).await.expect(200).body["result"], first);
    noted(&world, "Alice likes cider.").await;
    assert_eq!(texts(&world).await.len(), before + 5);
    // A broadcast is told again, and what was heard is known.
    for _ in 0..2 {
        call("OWNER_memorize_dependables", "The gate is shut.", council).await;
    }
    let heard = texts(&world).await;
    assert_eq!(heard.iter().filter(|text| *text == "The gate is shut.").count(), 2);
    call("NPC_memorize", "The gate is shut.", bob).await;
    assert_eq!(texts(&world).await, heard);
    // Once it is deleted, it can be remembered again. Nothing is written in the journal for what is known.
    let end = async || {
        let changes = world.get("/changes?limit=200").await.expect(200).body;
        assert_eq!(changes["has_more"], false);
        changes["next_after"].clone()
    };
    let known = end().await;
    call("NPC_memorize", "The gate is shut.", bob).await;
    assert_eq!(end().await, known);
    world.delete(&format!("/memories/{}", private["memory_id"].as_str().unwrap())).await.expect(204);
    assert_ne!(call("OWNER_memorize", "Alice likes cider.", council).await, private);

    // In turns as well: the call succeeds, and undoing the second turn leaves the memory of the first.
    let mut turns = Vec::new();
    for _ in 0..2 {
        server.model.set_script(Script::replies([Reply::tool(
            "NPC_memorize",
            json!({ "player_id": "player_alice", "memory_string": "Pays in silver." }),
        )
        .with_text("Thanks.")]));
        turns.push(world.bob("player_alice", "I pay.").await.expect(200));
    }
    let made = |turn: &Answer| turn.body["tool_calls"][0]["result"]["memory_id"].clone();
    assert_eq!(made(&turns[0]), made(&turns[1]));
    world.post(&format!("/turns/{}/undo", turns[1].id()), json!({})).await.expect(200);
    assert!(texts(&world).await.contains(&"Pays in silver.".to_owned()));
    world.post(&format!("/turns/{}/undo", turns[0].id()), json!({})).await.expect(200);
    assert!(!texts(&world).await.contains(&"Pays in silver.".to_owned()));
}
