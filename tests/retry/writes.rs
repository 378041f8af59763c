//! Ordinary writes whose commit is lost: found again by the number of their transaction, and done once.

use edge::users::Role;
use serde_json::json;

use super::{MOMENTS, cuttable};
use crate::{admin::Visitor, support::cut::Moment};

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_made_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (n, moment) in (1..).zip(MOMENTS) {
        let npc = json!({ "name": format!("Zora {n}") });
        cutter.at("COMMIT\0", moment, 1);
        let made = world.post("/npcs", npc.clone()).await.expect(201).id();
        assert_eq!(cutter.cuts(), 1, "{moment:?}");
        cutter.at("COMMIT\0", moment, 1);
        let key = format!("k{n}");
        let first = tenant.post_with_key(&world.path("/npcs"), &key, npc.clone()).await.expect(201);
        assert_eq!((cutter.cuts(), first.header("idempotency-replayed")), (1, ""), "{moment:?}");
        let again = tenant.post_with_key(&world.path("/npcs"), &key, npc).await.expect(201);
        assert_eq!((again.header("idempotency-replayed"), again.id()), ("true", first.id()), "{moment:?}");
        assert_ne!(made, first.id());
        let found = world.get(&format!("/npcs?q=Zora%20{n}")).await.expect(200);
        assert_eq!(found.items().len(), 2, "{moment:?}: {}", found.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_find_out_is_said_and_not_repeated() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    cutter.at("COMMIT\0", Moment::After, 1);
    let watch = async {
        super::until("the cut", async || cutter.cuts() == 1).await;
        cutter.refuse(true);
    };
    let (answer, ()) = tokio::join!(world.post("/npcs", json!({ "name": "Yara" })), watch);
    // Perhaps it was found out before the wire was gone.
    assert!(matches!(answer.status, 201 | 503), "{}", answer.text);
    cutter.refuse(false);
    super::until("an answer", async || world.get("/npcs").await.status == 200).await;
    let found = world.get("/npcs?q=Yara").await.expect(200);
    assert_eq!(found.items().len(), 1, "{}", found.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_of_the_editor_is_written_once() {
    let (server, cutter) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    for (n, moment) in (1..).zip(MOMENTS) {
        let list = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice").await.expect(200);
        let memory = &list.items()[0];
        let (id, version) = (memory["id"].as_str().unwrap(), memory["version"].to_string());
        let path = format!("/admin/c/port-town/memories/{id}");
        mara.get(&path).await.expect(200);
        cutter.at("COMMIT\0", moment, 1);
        let text = format!("Mended {n}.");
        let saved = mara.post(&path, &[("text", &text), ("version", &version)]).await;
        assert_eq!((saved.status, cutter.cuts()), (303, 1), "{moment:?}: {}", saved.text);
        let now = world.get("/npcs/innkeeper_bob/memories?player_id=player_alice").await.expect(200).items()[0].clone();
        assert_eq!(now["text"], text.as_str());
        assert_eq!(now["version"].as_i64().unwrap(), version.parse::<i64>().unwrap() + 1, "{moment:?}: once");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_in_the_editor_is_named() {
    let (server, _) = cuttable().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let nil = uuid::Uuid::nil();
    mara.get("/admin/c/port-town/lab").await.expect(200);
    let fields = [("entity", "npc:innkeeper_bob"), ("player", "player_alice"), ("action", "I nod.")];
    let taken = mara.post("/admin/c/port-town/lab/turn", &fields).await;
    assert!(matches!(taken.status, 200 | 303), "{}: {}", taken.status, taken.text);
    super::until("the turn", async || {
        super::turns(&world).await.first().is_some_and(|turn| turn["status"] == "succeeded")
    })
    .await;
    let mut db = server.owner().await;
    let users: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT id FROM app_user").fetch_all(&mut db).await.unwrap();
    let authors: Vec<uuid::Uuid> = sqlx::query_scalar("SELECT key_id FROM turn").fetch_all(&mut db).await.unwrap();
    assert_eq!(authors, users, "the turn is hers");
    let mine: i64 = sqlx::query_scalar("SELECT count(*) FROM journal WHERE user_id = $1 AND key_id IS NULL")
        .bind(users[0])
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert!(mine > 0, "what the turn said is hers in the journal");
    for (table, column) in [("journal", "key_id"), ("turn", "key_id"), ("memory", "author"), ("edit_step", "author")] {
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} = $1");
        let nobodys: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(sql)).bind(nil).fetch_one(&mut db).await.unwrap();
        assert_eq!(nobodys, 0, "{table}.{column}");
    }
}
