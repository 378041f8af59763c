//! What is as large as it may be is taken and comes back; what is one larger is refused, also by a patch. What was larger before
//! there was a limit is read, and changed otherwise, as ever.

use serde_json::{Value, json};

use super::{free, list};
use crate::support::{Server, World};

const FREE: usize = 64 * 1024;

/// Members at their limits.
type Members = Vec<(&'static str, Value)>;

/// Parameters of so many bytes of JSON, which narrow a text to some long ones.
fn narrowing(bytes: usize) -> Value {
    let of = |rest: usize| {
        let mut texts = vec!["x".repeat(2000); 8];
        texts.push("y".repeat(rest));
        json!({ "memory_string": { "enum": texts } })
    };
    of(bytes - of(0).to_string().len())
}

/// A kind: its list, what a new row needs, and members at their limits.
fn kinds() -> Vec<(&'static str, Value, Members)> {
    let tools = |bytes: usize| json!([{ "name": "NPC_memorize", "parameters": narrowing(bytes) }]);
    vec![
        (
            "/npcs",
            json!({ "name": "Dora" }),
            vec![
                ("description", "d".repeat(20_000).into()),
                ("inventory", list(FREE)),
                ("extensions", free(FREE)),
                ("available_tools", tools(16 * 1024)),
                ("conditions", vec![json!({ "name": "prone" }); 50].into()),
            ],
        ),
        (
            "/owners",
            json!({ "name": "Guild", "monitored_aspect": "faction", "associated_id": "guild" }),
            vec![("personality_prompt", "p".repeat(20_000).into()), ("available_tools", tools(16 * 1024))],
        ),
        (
            "/lore",
            json!({ "title": "Tides", "scope": "global", "content": "They turn." }),
            vec![
                ("content", "c".repeat(100_000).into()),
                ("tags", vec!["t"; 100].into()),
                ("keys", vec!["k"; 100].into()),
            ],
        ),
        (
            "/scenes",
            json!({ "name": "The quay" }),
            vec![
                ("grid", free(FREE)),
                ("notes", list(256 * 1024)),
                ("light_sources", list(256 * 1024)),
                ("name", "n".repeat(200).into()),
            ],
        ),
        (
            "/messages",
            json!({ "content": "Hm." }),
            vec![("roll", free(FREE)), ("extensions", free(FREE)), ("content", "ä".repeat(20_000).into())],
        ),
    ]
}

/// One more than what fits.
fn more(value: &Value) -> Value {
    match value {
        Value::String(text) => format!("{text}x").into(),
        Value::Array(items) if items.len() == 1 && items[0].is_string() => list(value.to_string().len() + 1),
        Value::Array(items) if items.len() == 1 => {
            let bytes = items[0]["parameters"].to_string().len();
            json!([{ "name": "NPC_memorize", "parameters": narrowing(bytes + 1) }])
        }
        Value::Array(items) => [&items[..], &items[..1]].concat().into(),
        value => free(value.to_string().len() + 1),
    }
}

async fn takes_its_members(world: &World<'_>, kind: &str, required: Value, members: Members) {
    for (member, value) in members {
        let with = |value: Value| {
            let mut body = required.clone();
            body[member] = value;
            body
        };
        let made = world.post(kind, with(value.clone())).await.expect(201);
        assert_eq!(made.body[member], value, "{kind} {member}");
        let path = format!("{kind}/{}", made.id());
        assert_eq!(world.get(&path).await.expect(200).body[member], value, "{kind} {member}");
        let refused = world.post(kind, with(more(&value))).await.problem(422, "validation_failed");
        let is_there = |pointers: &[&str]| pointers.iter().any(|p| p.starts_with(&format!("/{member}")));
        assert!(is_there(&refused.pointers()), "{kind} {member}: {}", refused.text);
        if kind != "/messages" {
            let refused = world.patch(&path, json!({ (member): more(&value) })).await.problem(422, "validation_failed");
            assert!(is_there(&refused.pointers()), "{kind} {member}: {}", refused.text);
            world.patch(&path, json!({ (member): value })).await.expect(200);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_are_taken_up_to_their_limits() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (kind, required, members) in kinds() {
        takes_its_members(&world, kind, required, members).await;
    }
    let extensions = |bytes: usize| json!({ "extensions": free(bytes) });
    tenant.patch("/v1/campaigns/port-town", extensions(FREE)).await.expect(200);
    let refused = tenant.patch("/v1/campaigns/port-town", extensions(FREE + 1)).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/extensions"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_small_patches_do_not_make_a_large_member() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let scene = world.post("/scenes", json!({ "name": "The quay" })).await.expect(201).id();
    let part = |n: usize| json!({ "grid": { (format!("part{n}")): "x".repeat(20_000) } });
    for n in 0..3 {
        world.patch(&format!("/scenes/{scene}"), part(n)).await.expect(200);
    }
    let refused = world.patch(&format!("/scenes/{scene}"), part(3)).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/grid"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_larger_before_is_read_and_changed_otherwise() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let scene = world.post("/scenes", json!({ "name": "The quay" })).await.expect(201).id();
    let path = format!("/scenes/{scene}");
    let notes = list(3 * 1024 * 1024);
    sqlx::query("UPDATE scene SET notes = $1, grid = $2 WHERE id = $3::uuid")
        .bind(&notes)
        .bind(free(FREE + 1))
        .bind(&scene)
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    assert_eq!(world.get(&path).await.expect(200).body["notes"], notes);
    let listed = world.get("/scenes").await.expect(200);
    assert!(listed.items().iter().any(|row| row["id"] == scene && row["notes"] == notes));
    let refused = world.patch(&path, json!({ "grid": { "more": 1 } })).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/grid"]);
    // It grows no further, and gets smaller.
    world.patch(&path, json!({ "description": "Wet.".repeat(100) })).await.problem(422, "validation_failed");
    world.patch(&path, json!({ "notes": [], "description": "Wet." })).await.expect(200);
    world.patch(&path, json!({ "name": "The pier" })).await.expect(200);
}

/// A number that its schema has no room for is refused, also where nothing would have been done with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_is_of_the_size_that_its_schema_says() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let asked = |die: u64| json!({ "player_id": "player_alice", "action": "I wait.", "dice": [1, die] });
    let refused = world.post("/rules/resolve", asked(1 << 31)).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/dice/1"]);
}
