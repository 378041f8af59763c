//! `[[links]]` between entries, in both directions, and after a rename.

use edge::caller::Scope;
use serde_json::{Value, json};
use world::lore::links;

use super::{entry, global};
use crate::support::{Server, World};

async fn linked(world: &World<'_>, slug: &str) -> Value {
    world.get(&format!("/lore/{slug}/links")).await.expect(200).body
}

fn backlinks(body: &Value) -> Vec<&str> {
    body["backlinks"].as_array().unwrap().iter().map(|b| b["slug"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn links_are_resolved_by_title_and_slug_and_known_from_the_other_end() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let text = "See [[the  REACH|the sea]], [[the_harbour]], [[Innkeeper Bob]], [[nothing]], [[]] and [[the  REACH]].";
    world.post("/lore", global("Guide", text)).await.expect(201);
    let guide = linked(&world, "guide").await;
    let found: Vec<_> = guide["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["name"].clone(), l["kind"].clone(), l["slug"].clone()))
        .collect();
    assert_eq!(found.len(), 4, "{guide}");
    assert_eq!(found[0], (json!("the  REACH"), json!("lore"), json!("the_reach")));
    assert_eq!(found[1].2, "the_harbour");
    assert_eq!((&found[2].1, &found[2].2), (&json!("npc"), &json!("innkeeper_bob")));
    assert_eq!(found[3].1, Value::Null);
    let reach = linked(&world, "the_reach").await;
    assert_eq!((backlinks(&reach), &reach["backlinks_total"]), (vec!["guide"], &json!(1)));
    assert_eq!(backlinks(&linked(&world, "the_harbour").await), ["guide"]);
    // Whatever writes the text: a patch, an undo, a fork, an import.
    world.patch("/lore/guide", json!({ "content": "See [[the_square]]." })).await.expect(200);
    assert!(backlinks(&linked(&world, "the_reach").await).is_empty());
    assert_eq!(backlinks(&linked(&world, "the_square").await), ["guide"]);
    world.post("/fork", json!({ "slug": "copy" })).await.expect(201);
    let copy = World { client: &tenant, slug: "copy".to_owned() };
    assert_eq!(backlinks(&linked(&copy, "the_square").await), ["guide"]);
    let document =
        json!({ "Lore": [{ "ID": "song", "Title": "Song", "Scope": "global", "Content": "[[the square]]" }] });
    world.post("/import/seed", document).await.expect(200);
    assert_eq!(backlinks(&linked(&world, "the_square").await), ["guide", "song"]);
    world.delete("/lore/song").await.expect(204);
    assert_eq!(backlinks(&linked(&world, "the_square").await), ["guide"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_is_neither_linked_nor_links_for_those_who_do_not_see_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut hidden = global("Hidden", "It is under [[The Reach]].");
    hidden["secret"] = json!(true);
    world.post("/lore", hidden).await.expect(201);
    world.patch("/lore/the_reach", json!({ "content": "[[hidden]]" })).await.expect(200);
    assert_eq!(backlinks(&linked(&world, "the_reach").await), ["hidden"]);
    let reader = tenant.with_scopes(&[Scope::Read]).await;
    let seen = reader.get(&world.path("/lore/the_reach/links")).await.expect(200).body;
    assert_eq!((backlinks(&seen), &seen["backlinks_total"]), (Vec::new(), &json!(0)));
    assert_eq!(seen["links"][0]["kind"], Value::Null);
    reader.get(&world.path("/lore/hidden/links")).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rename_offers_to_mend_the_links() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world
        .post("/lore", global("One", "[[The Reach]] and [[the  reach|the sea]] and [[The Reaches]]."))
        .await
        .expect(201);
    world.post("/lore", global("Two", "[[ THE REACH ]]")).await.expect(201);
    world.patch("/lore/the_reach", json!({ "title": "The $1 Deep" })).await.expect(200);
    let told =
        world.post("/lore/the_reach/mend-links", json!({ "from": "The Reach", "dry_run": true })).await.expect(200);
    assert_eq!((&told.body["changed"], &told.body["dry_run"]), (&json!(2), &json!(true)));
    assert_eq!(entry(&world, "two").await["content"], "[[ THE REACH ]]");
    let done = world.post("/lore/the_reach/mend-links", json!({ "from": "the reach" })).await.expect(200).body;
    assert_eq!(
        entry(&world, "one").await["content"],
        "[[The $1 Deep]] and [[The $1 Deep|the sea]] and [[The Reaches]]."
    );
    assert_eq!(entry(&world, "two").await["content"], "[[The $1 Deep]]");
    assert_eq!(backlinks(&linked(&world, "the_reach").await), ["one", "two"]);
    world.post(&format!("/lore/bulk/{}/undo", done["step_id"].as_str().unwrap()), json!({})).await.expect(200);
    assert_eq!(entry(&world, "two").await["content"], "[[ THE REACH ]]");
    // A title that would end a link is not written into one: the slug is.
    world.patch("/lore/the_reach", json!({ "title": "The [cold] Reach|er" })).await.expect(200);
    world.post("/lore/the_reach/mend-links", json!({ "from": "The Reach" })).await.expect(200);
    assert_eq!(entry(&world, "two").await["content"], "[[the_reach]]");
    assert_eq!(backlinks(&linked(&world, "the_reach").await), ["one", "two"]);
    let nothing = world.post("/lore/the_reach/mend-links", json!({ "from": "Nobody" })).await.expect(200);
    assert_eq!(nothing.body["matched"], 0);
}

/// The schema finds links for its table, the server for people to see: they are the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_schema_and_the_server_agree_on_what_a_link_is() {
    let server = Server::start().await;
    let mut db = server.owner().await;
    let long = "x".repeat(200);
    for text in [
        "[[a]] [[B|c]] [[d|]] [[ e  f ]]",
        "[[]] [[ ]] [[|x]] [[a|b|c]] [[a\nb]] [a] [[a] ]",
        "[[[a]]] [[a]]]] [[[[b]]]] [[a[b]]",
        &format!("[[{long}]] [[{long}y]] [[y|{long}]] [[z|{long}z]]"),
        "[[<script>]] [[É]] [[a\u{a0}b]]",
        "[[a#b|c]] [[#b]] [[a#b#c]] [[ a # b ]] [[d\\|e]] [[f\\]] [[\\|x]] [[g\\\\|x]] [[#]]",
    ] {
        let stored: Vec<(String,)> =
            sqlx::query_as("SELECT link_keys($1) ORDER BY 1").bind(text).fetch_all(&mut db).await.unwrap();
        let mut found = Vec::new();
        for link in links::find(text) {
            let key: (String,) =
                sqlx::query_as("SELECT link_key($1)").bind(link.name).fetch_one(&mut db).await.unwrap();
            found.push(key);
        }
        found.sort();
        found.dedup();
        let mut stored = stored;
        stored.sort();
        assert_eq!(stored, found, "{text}");
    }
}

/// Obsidian, LegendKeeper and Foundry write links to a part of a page, and tables of Markdown need `\\|`.
#[tokio::test(flavor = "multi_thread")]
async fn links_to_a_part_of_a_page_are_links_to_the_page() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/lore", global("The Old Mill", "It grinds. See [[#Cellar]].")).await.expect(201);
    world.post("/lore", global("Mill#2", "The other one.")).await.expect(201);
    world.post("/lore", global("Mill", "A small one.")).await.expect(201);
    let text = "See [[The Old Mill#Cellar|the cellar]], [[The Old Mill#^b12]] and [[Mill#2]].\n\n| a | b |\n|---|---|\n| [[the_old_mill\\|x]] | 2 |";
    world.post("/lore", global("Guide", text)).await.expect(201);
    let guide = linked(&world, "guide").await;
    let found: Vec<_> = guide["links"]
        .as_array()
        .unwrap()
        .iter()
        .map(|l| (l["name"].as_str().unwrap(), l["slug"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("The Old Mill#Cellar", "the_old_mill"),
            ("The Old Mill#^b12", "the_old_mill"),
            ("Mill#2", "mill_2"),
            ("the_old_mill", "the_old_mill")
        ]
    );
    let mill = linked(&world, "the_old_mill").await;
    assert_eq!(
        (backlinks(&mill), &mill["backlinks_total"], mill["links"].as_array().unwrap().len()),
        (vec!["guide"], &json!(1), 0)
    );
    assert_eq!(backlinks(&linked(&world, "mill_2").await), ["guide"]);
    assert!(backlinks(&linked(&world, "mill").await).is_empty(), "an entry of the whole name goes first");
    world.delete("/lore/mill_2").await.expect(204);
    assert_eq!(backlinks(&linked(&world, "mill").await), ["guide"]);
    // A rename keeps the part and the bar.
    world.patch("/lore/the_old_mill", json!({ "title": "The Ruin" })).await.expect(200);
    let mended = world.post("/lore/the_old_mill/mend-links", json!({ "from": "The Old Mill" })).await.expect(200).body;
    assert_eq!(mended["changed"], 1, "{mended}");
    let now = entry(&world, "guide").await["content"].as_str().unwrap().to_owned();
    assert!(now.starts_with("See [[The Ruin#Cellar|the cellar]], [[The Ruin#^b12]] and [[Mill#2]]."), "{now}");
    let slugs = world.post("/lore/the_old_mill/mend-links", json!({ "from": "the_old_mill" })).await.expect(200).body;
    assert_eq!(slugs["changed"], 1, "{slugs}");
    assert!(entry(&world, "guide").await["content"].as_str().unwrap().contains("| [[The Ruin\\|x]] | 2 |"));
}

/// What stands in code is shown as it is written, so it is no link.
#[tokio::test(flavor = "multi_thread")]
async fn links_in_code_are_left_alone() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let content = "See [[The Mill]], `[[The Mill]]`, ``a ` [[The Mill]]`` and [[The Mill|the `old` one]].\n\n```md\n[[The Mill]]\n```\n\n\
                   ~~~\n[[The Mill|it]]\n~~~\n\n    [[The Mill]]\n\n- [[The Mill]]\n\n  ```\n  [[The Mill]]\n  ```\n\nA lone ` and [[The Mill]].";
    for (title, content) in [("The Mill", "Turns."), ("Guide", content), ("Only code", "`[[The Mill]]`")] {
        world.post("/lore", json!({ "title": title, "content": content, "scope": "global" })).await.expect(201);
    }
    world.patch("/lore/the_mill", json!({ "title": "The Old Mill" })).await.expect(200);
    let mended = world.post("/lore/the_mill/mend-links", json!({ "from": "The Mill" })).await.expect(200).body;
    assert_eq!(mended["changed"], 1, "{mended:#}");
    let now = world.get("/lore/guide").await.body["content"].as_str().unwrap().to_owned();
    assert_eq!(
        now,
        "See [[The Old Mill]], `[[The Mill]]`, ``a ` [[The Mill]]`` and [[The Old Mill|the `old` one]].\n\n```md\n[[The Mill]]\n```\n\n\
         ~~~\n[[The Mill|it]]\n~~~\n\n    [[The Mill]]\n\n- [[The Old Mill]]\n\n  ```\n  [[The Mill]]\n  ```\n\nA lone ` and [[The Old Mill]]."
    );
    assert_eq!(world.get("/lore/only_code").await.body["content"], "`[[The Mill]]`");
}
