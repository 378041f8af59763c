//! What goes with a row and comes back with it, what is in the way of something, and where to go then.

use ai::turns::store::sweep;
use base::clock;
use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{Visitor, field};
use crate::support::{Server, until};

const CAMPAIGN: &str = "/admin/c/port-town";

/// A turn that cannot be taken back yet says so to whoever looks at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_being_taken_back_says_how_far_it_is() {
    let server = Server::start_with(&[("LLM_RETRIES", "0")]).await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut db = server.owner().await;
    for sql in [
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'poisoned' USING ERRCODE = 'XX000'; END $$",
        "CREATE TRIGGER poison BEFORE DELETE ON memory FOR EACH ROW WHEN (OLD.text = 'Poison.') EXECUTE FUNCTION poison()",
    ] {
        sqlx::query(sql).execute(&mut db).await.unwrap();
    }
    let remember = |words: &str| json!({ "player_id": "player_alice", "memory_string": words });
    let two = Reply::tool("NPC_memorize", remember("Poison.")).with_tool("NPC_memorize", remember("Two."));
    server.model.set_script(Script::replies([two, Reply::status(500)]));
    let failed = world.bob("player_alice", "I pay.").await.problem(502, "llm_unavailable");
    let turn = failed.body["turn_id"].as_str().unwrap().to_owned();
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/turns/{turn}");
    let mut page = String::new();
    until("a try that failed", async || {
        page = mara.get(&path).await.expect(200).text;
        page.contains("It failed")
    })
    .await;
    assert!(page.contains("The turn is being reverted:") && page.contains("of 2 changes are done."), "{page}");
    assert!(page.contains("The next try is at") && !page.contains("action=\"undo\""), "{page}");
    let list = mara.get("/admin/c/port-town/turns").await.expect(200).text;
    assert!(list.contains("running, being reverted"), "{list}");

    // What stood in the way is gone.
    sqlx::query("DROP TRIGGER poison ON memory").execute(&mut db).await.unwrap();
    until("the end", async || {
        sqlx::query("UPDATE turn SET revert_try_at = now() - interval '1 second' WHERE revert_try_at IS NOT NULL")
            .execute(&mut db)
            .await
            .unwrap();
        sweep(server.pool(), &server.app.running).await.unwrap();
        page = mara.get(&path).await.expect(200).text;
        !page.contains("The turn is being reverted")
    })
    .await;
    assert!(page.contains("failed"), "{page}");
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM memory WHERE text IN ('Poison.', 'Two.')")
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert_eq!(left, 0);
}

/// What a browser without script does with a row: it asks, and then deletes.
async fn delete(mara: &mut Visitor, path: &str) -> (String, crate::support::Answer) {
    let page = mara.get(&format!("{path}/delete")).await.expect(200).text;
    let version = field(&page, "version");
    let done = mara.post(&format!("{path}/delete"), &[("version", version.as_str())]).await;
    (page, done)
}

/// The form that brings back what was deleted last.
async fn bring_back(mara: &mut Visitor, list: &str) -> String {
    let page = mara.get(&format!("{CAMPAIGN}/{list}")).await.expect(200).text;
    let (_, rest) = page.split_once("<form method=\"post\" action=\"/admin/c/port-town/").unwrap();
    format!("{CAMPAIGN}/{}", rest.split('"').next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_go_with_an_npc_and_come_back_with_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let memory = |text: &str| json!({ "player_id": "player_alice", "text": text });
    let kept = world.post("/npcs/innkeeper_bob/memories", memory("Owes me.")).await.expect(201).body;
    let gone = world.post("/npcs/innkeeper_bob/memories", memory("Sings.")).await.expect(201).id();
    // One was taken away before: it stays away.
    world.delete(&format!("/memories/{gone}")).await.expect(204);
    let before = world.get("/npcs/innkeeper_bob/memories").await.expect(200);
    let bob = world.get("/npcs/innkeeper_bob").await.id();
    let (page, done) = delete(&mut mara, &format!("{CAMPAIGN}/npcs/{bob}")).await;
    assert!(page.contains("with the 2 memories") && !page.contains("audit"), "{page}");
    done.expect(303);
    let lost = format!("{CAMPAIGN}/memories/{}", kept["id"].as_str().unwrap());
    mara.get(&lost).await.expect(404);
    // Alone it cannot come back, and the page says where to go first.
    let memory = bring_back(&mut mara, "memories/deleted").await;
    let stuck = mara.post(&memory, &[]).await.expect(409).text;
    assert!(
        stuck.contains("Restore them first") && stuck.contains("npcs/deleted") && stuck.contains("<nav"),
        "{stuck}"
    );
    let npc = bring_back(&mut mara, "npcs/deleted").await;
    mara.post(&npc, &[]).await.expect(303);
    let now = world.get("/npcs/innkeeper_bob/memories").await.expect(200);
    let ids = |answer: &crate::support::Answer| answer.items().iter().map(|m| m["id"].clone()).collect::<Vec<_>>();
    assert_eq!(ids(&now), ids(&before));
    assert!(now.text.contains("Owes me.") && !now.text.contains("Sings."), "{}", now.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_in_the_way_is_named_with_its_page() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    for title in ["The ledger", "The cellar"] {
        let secret =
            json!({ "title": title, "scope": "global", "content": "x", "secret": true, "known_by": ["innkeeper_bob"] });
        world.post("/lore", secret).await.expect(201);
    }
    let problem = world.delete("/npcs/innkeeper_bob").await.problem(409, "referenced");
    assert_eq!(problem.body["errors"].as_array().unwrap().len(), 2, "{}", problem.text);
    let bob = world.get("/npcs/innkeeper_bob").await.id();
    let (_, refused) = delete(&mut mara, &format!("{CAMPAIGN}/npcs/{bob}")).await;
    let page = refused.expect(409).text;
    for slug in ["the_ledger", "the_cellar"] {
        let entry = world.get(&format!("/lore/{slug}")).await.body;
        let link = format!(
            "<a href=\"{CAMPAIGN}/lore/{}\" dir=\"auto\">{}</a>",
            entry["id"].as_str().unwrap(),
            entry["title"].as_str().unwrap()
        );
        assert!(page.contains(&link), "{slug}: {page}");
    }
    // A campaign says what is true of it.
    let page = mara.get(&format!("{CAMPAIGN}/delete")).await.expect(200).text;
    assert!(page.contains("cannot be restored") && page.contains("exchange/campaign.json\">Export it first"), "{page}");
    // What came in the place of an entry that is to come back.
    let ledger = world.get("/lore/the_ledger").await.id();
    let (_, done) = delete(&mut mara, &format!("{CAMPAIGN}/lore/{ledger}")).await;
    done.expect(303);
    let other = json!({ "title": "Another", "slug": "the_ledger", "scope": "global", "content": "x" });
    let other = world.post("/lore", other).await.expect(201).id();
    let back = bring_back(&mut mara, "lore/tidy").await;
    let stuck = mara.post(&back, &[]).await.expect(409).text;
    assert!(stuck.contains("the_ledger") && stuck.contains(&format!("/lore/{other}\">Another</a>")), "{stuck}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bulk_edit_says_what_it_did_and_what_is_left_of_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let mut ids = Vec::new();
    for (title, content) in [("Old mill", "x"), ("Old well", "[[Old mill]]")] {
        let entry = json!({ "title": title, "scope": "global", "content": content });
        ids.push(world.post("/lore", entry).await.expect(201).id());
    }
    let (path, both) = (format!("{CAMPAIGN}/lore/bulk"), ids.join(" "));
    let run = async |mara: &mut Visitor, fields: &[(&str, &str)]| {
        let seen =
            mara.post(&path, &[fields, &[("ids", both.as_str()), ("do", "preview")]].concat()).await.expect(200).text;
        let (form, digest) = (field(&seen, "form_id"), field(&seen, "previewed"));
        let more = [("ids", both.as_str()), ("do", "run"), ("form_id", &form), ("previewed", &digest)];
        let done = mara.post(&path, &[fields, &more].concat()).await.expect(303).header("location").to_owned();
        let page = mara.get(&done).await.expect(200).text;
        (done, page)
    };
    // Links to what was renamed are offered to be mended.
    let (_, page) = run(&mut mara, &[("find", "Old"), ("with", "New"), ("in", "title")]).await;
    assert!(page.contains("2</b> entries were changed"), "{page}");
    assert_eq!(page.matches("Update the links").count(), 1, "{page}");
    let mended = mara.post(&format!("{CAMPAIGN}/lore/{}/mend", ids[0]), &[("from", "Old mill")]).await;
    mended.expect(303);
    assert_eq!(world.get("/lore/old_well").await.body["content"], "[[New mill]]");
    // What is in the way of an undo is named, though it is gone; the rest can be undone.
    let (step, _) = run(&mut mara, &[("priority", "7"), ("priority_how", "set")]).await;
    world.delete("/lore/old_mill").await.expect(204);
    let refused = mara.post(&format!("{step}/undo"), &[]).await.expect(409).text;
    assert!(refused.contains("New mill") && refused.contains("Undo the rest"), "{refused}");
    mara.post(&format!("{step}/undo"), &[("rest", "1")]).await.expect(303);
    assert_eq!(world.get("/lore/old_well").await.body["priority"], 0);
    // A deletion is one.
    world.post("/lore", json!({ "title": "Third", "scope": "global", "content": "x" })).await.expect(201);
    let third = world.get("/lore/third").await.id();
    let one = [("ids", third.as_str()), ("delete", "1"), ("do", "preview")];
    let seen = mara.post(&path, &one).await.expect(200).text;
    let (form, digest) = (field(&seen, "form_id"), field(&seen, "previewed"));
    let run = [("ids", third.as_str()), ("delete", "1"), ("do", "run"), ("form_id", &form), ("previewed", &digest)];
    let done = mara.post(&path, &run).await.expect(303).header("location").to_owned();
    assert!(mara.get(&done).await.expect(200).text.contains("entry was deleted"));
    // The audit knows whose hand it was.
    let audit = mara.get(&format!("{CAMPAIGN}/audit")).await.expect(200).text;
    assert!(audit.contains("UTC · editor") && audit.contains("UTC · api"), "{audit}");
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_take_what_the_lists_give_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    // Thousands of ticks are more than an address can hold.
    let ids: Vec<String> = (0..2500).map(|_| clock::id().to_string()).collect();
    let path = format!("{CAMPAIGN}/lore/bulk");
    let page = mara.post(&path, &[("chosen", "1"), ("ids", &ids.join(" "))]).await.expect(200).text;
    assert!(page.contains("<b>2500</b> entries") && field(&page, "ids").len() > 90_000);
    let page = mara.post(&path, &[("all", "1"), ("tag", "none"), ("scope", "")]).await.expect(200).text;
    assert_eq!(field(&page, "filters"), "tag=none");
    // What is about everything is about no place, whatever the field still holds.
    let entry = json!({ "title": "The mill", "scope": "zone", "associated_id": "inn", "content": "x" });
    let id = world.post("/lore", entry).await.expect(201).id();
    let lore = format!("{CAMPAIGN}/lore/{id}");
    let sent = [
        ("version", "1"),
        ("title", "The mill"),
        ("scope", "global"),
        ("associated_id", "inn"),
        ("content", "x"),
        ("enabled", "true"),
        ("activation", "always"),
        ("logic", "and_any"),
    ];
    mara.post(&lore, &sent).await.expect(303);
    let now = world.get(&format!("/lore/{id}")).await.body;
    assert_eq!((&now["scope"], &now["associated_id"]), (&json!("global"), &Value::Null));
    // In many at once too, and what breaks a rule is told by its title.
    let many =
        [("ids", id.as_str()), ("scope", "global"), ("associated_id", "inn"), ("do", "preview"), ("enabled", "no")];
    mara.post(&path, &many).await.expect(200);
    let wrong = mara.post(&path, &[("ids", id.as_str()), ("scope", "zone"), ("do", "preview")]).await;
    assert!(wrong.text.contains("The mill, which one:"), "{}", wrong.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_would_write_over_somebodys_work_says_so_first() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let book = |sea: &str| {
        let entry = |title: &str, content: &str| json!({ "key": ["x"], "comment": title, "content": content });
        json!({ "name": "Tides", "entries": { "0": entry("The ebb", "Low."), "1": entry("The flow", sea) } })
    };
    tenant.post("/v1/campaigns/port-town/import/lorebook", book("High.")).await.expect(200);
    let token = mara.token();
    let look = async |sea: &str| {
        let body = format!(
            "--x\r\ncontent-disposition: form-data; name=\"form_token\"\r\n\r\n{token}\r\n--x\r\n\
             content-disposition: form-data; name=\"file\"; filename=\"t.json\"\r\n\r\n{}\r\n--x--\r\n",
            book(sea)
        );
        let request = mara.request("POST", &format!("{CAMPAIGN}/exchange/look"));
        let request = request.header("content-type", "multipart/form-data; boundary=x").body(body);
        mara.send(request).await.expect(200).text
    };
    // What only the file changes is named; nobody's work is lost.
    let page = look("Higher.").await;
    assert!(page.contains("<b dir=\"auto\">The flow</b>: content") && !page.contains("id=\"edited\""), "{page}");
    world.patch("/lore/the_flow", json!({ "content": "Mine." })).await.expect(200);
    let page = look("High.").await;
    assert!(page.contains("id=\"edited\"") && page.contains("edited here since</span>"), "{page}");
    let (flow, ebb) =
        (page.find("<b dir=\"auto\">The flow</b>").unwrap(), page.find("<b dir=\"auto\">The ebb</b>").unwrap());
    assert!(flow < ebb, "what changes stands first: {page}");
}
