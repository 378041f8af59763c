//! Find and replace, with patterns of people who mean well and of those who do not.

use serde_json::{Value, json};

use super::{bulk, entry, global};
use crate::support::{Server, World};

async fn replaced(world: &World<'_>, text: &str, replace: Value) -> String {
    world.patch("/lore/the_reach", json!({ "content": text })).await.expect(200);
    bulk(world, json!({ "ids": ["the_reach"], "changes": { "replace": replace } })).await.expect(200);
    entry(world, "the_reach").await["content"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn text_and_patterns_are_found_and_replaced() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let text = "Cat, cat and concat. $1 (cat) ÉTÉ été";
    for (replace, wanted) in [
        (json!({ "find": "cat", "with": "dog" }), "Cat, dog and condog. $1 (dog) ÉTÉ été"),
        (json!({ "find": "cat", "with": "dog", "ignore_case": true }), "dog, dog and condog. $1 (dog) ÉTÉ été"),
        (json!({ "find": "cat", "with": "dog", "whole_word": true }), "Cat, dog and concat. $1 (dog) ÉTÉ été"),
        (json!({ "find": "(cat)", "with": "$0", "whole_word": true }), "Cat, cat and concat. $1 $0 ÉTÉ été"),
        (json!({ "find": "$1", "with": "\\1" }), "Cat, cat and concat. \\1 (cat) ÉTÉ été"),
        (
            json!({ "find": "été", "with": "summer", "ignore_case": true }),
            "Cat, cat and concat. $1 (cat) summer summer",
        ),
        (json!({ "find": "(c)(at)", "with": "$2${1}!", "regex": true }), "Cat, atc! and conatc!. $1 (atc!) ÉTÉ été"),
        (json!({ "find": "(?<a>[A-Z])at", "with": "${a}ow", "regex": true }), "Cow, cat and concat. $1 (cat) ÉTÉ été"),
        (json!({ "find": "^", "with": "> ", "regex": true }), "> Cat, cat and concat. $1 (cat) ÉTÉ été"),
    ] {
        assert_eq!(replaced(&world, text, replace.clone()).await, wanted, "{replace}");
    }
    // Titles and keys too; keys that become equal are one.
    let keys = json!({ "keys": ["sea cat", "sea dog", "x"], "secondary_keys": ["cat"], "title": "The cat" });
    world.patch("/lore/the_reach", keys).await.expect(200);
    let replace = json!({ "find": "cat|dog", "with": "fish", "regex": true, "in": ["title", "keys"] });
    bulk(&world, json!({ "ids": ["the_reach"], "changes": { "replace": replace } })).await.expect(200);
    let now = entry(&world, "the_reach").await;
    assert_eq!((&now["title"], &now["keys"]), (&json!("The fish"), &json!(["sea fish", "x"])));
    assert_eq!(now["secondary_keys"], json!(["fish"]));
    // Tokens are counted anew.
    let shorter = entry(&world, "the_reach").await["tokens"].as_i64().unwrap();
    replaced(&world, "Cat", json!({ "find": "Cat", "with": "A far longer story of cats and of dogs." })).await;
    assert!(entry(&world, "the_reach").await["tokens"].as_i64().unwrap() > shorter.min(5));
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_are_bounded_in_size_length_and_time() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let long = "a".repeat(99_999) + "b";
    for n in 0..20 {
        world.post("/lore", global(&format!("Long {n}"), &long)).await.expect(201);
    }
    let on = |replace: Value| json!({ "filter": {}, "changes": { "replace": replace }, "dry_run": true });
    let regex = |find: &str, with: &str| on(json!({ "find": find, "with": with, "regex": true }));
    let bombs = [
        // No regular expression, or one far too large.
        regex("(", ""),
        regex("((((((((((a{100}){100}){100}){100}){100}){100}){100}){100}){100}){100})", ""),
        regex("\\w{1000}{1000}", ""),
        regex(&"(".repeat(250), ""),
        regex("(a)\\1", ""),
        on(json!({ "find": "", "with": "" })),
        on(json!({ "find": "x".repeat(501), "with": "" })),
        on(json!({ "find": "a", "with": "x".repeat(10_001) })),
        on(json!({ "find": "a", "with": "b", "in": [] })),
        on(json!({ "find": "a", "with": "b", "in": ["slug"] })),
    ];
    for bomb in bombs {
        bulk(&world, bomb.clone()).await.problem(422, "validation_failed");
    }
    // What would become too long is refused before it is.
    let told = bulk(&world, on(json!({ "find": "a", "with": "x".repeat(10_000) }))).await.expect(200);
    assert!(told.body["errors"].as_array().unwrap().len() >= 20, "{}", told.text);
    // A group that holds the whole text and is put in thousands of times.
    let told = bulk(&world, regex("(?s)(.*)", &"$1".repeat(5000))).await.expect(200);
    let errors = told.body["errors"].as_array().unwrap();
    assert_eq!(errors.iter().filter(|e| e["message"] == "would become too long").count(), 20, "{}", told.text);
    // Those that backtrack elsewhere, or look from every place to the end: they come to their end here, or are stopped.
    for find in
        ["(a+)+$", "(a|aa)+c", "(a*)*c", ".*[^A-Z]|[A-Z]", "(?:a?){30}a{30}", "a.*c", "(x+x+)+y", "[a-z]{1,400}c"]
    {
        let answer = bulk(&world, regex(find, "z")).await;
        let code = answer.body["errors"][0]["code"].as_str();
        assert!(answer.status == 200 || (answer.status, code) == (422, Some("too_slow")), "{find}: {}", answer.text);
    }
    // The server lives and answers others meanwhile.
    world.get("/lore/the_reach").await.expect(200);
}
