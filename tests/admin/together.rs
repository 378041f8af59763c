//! Two at once: two people, one person twice, a page that saves by itself; and forms that are too large to be looked at.

use std::time::Duration;

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Visitor, field, form, forms::fields_of, somebody_waits};
use crate::support::{Answer, Server, until};

/// A page's fields, some of them changed.
fn with(page: &str, changed: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut fields = fields_of(page);
    fields.retain(|(name, _)| name != "form_token" && changed.iter().all(|(given, _)| given != name));
    fields.extend(changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    fields
}

async fn post(visitor: &Visitor, path: &str, fields: &[(String, String)]) -> Answer {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    visitor.post(path, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_wrote_of_one_row_is_put_together() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let text = "First.\n\nSecond.\n\nThird.\n";
    for (kind, slug, long, other) in [
        ("npcs", "innkeeper_bob", "personality_prompt", "faction"),
        ("owners", "town_council_owner", "personality_prompt", "associated_id"),
        ("scenes", "quay", "description", "location"),
    ] {
        if kind == "scenes" {
            world.post("/scenes", json!({ "slug": "quay", "name": "Quay" })).await.expect(201);
        }
        let api = format!("/{kind}/{slug}");
        let id = world.patch(&api, json!({ long: text })).await.expect(200).id();
        let path = format!("/admin/c/port-town/{kind}/{id}");
        let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
        let theirs = json!({ long: text.replace("First", "Their first"), other: "Elsewhere" });
        world.patch(&api, theirs).await.expect(200);
        let mine = text.replace("Third", "My third");
        let late = post(&mara, &path, &with(&page, &[(long, &mine), ("name", "Mine")])).await.expect(409).text;
        assert!(late.contains("<b>test</b>") || late.contains("<bdi>test</bdi> changed this"), "{late}");
        assert!(late.contains("Taken from the other version, because you did not change it"), "{late}");
        let saved = with(&late, &[]);
        let of = |name: &str| saved.iter().find(|(n, _)| n == name).unwrap().1.clone();
        assert_eq!(of(long), text.replace("First", "Their first").replace("Third", "My third"), "{kind}");
        assert_eq!((of("name").as_str(), of(other).as_str()), ("Mine", "Elsewhere"));
        post(&mara, &path, &saved).await.expect(303);
        let now = world.get(&api).await.body;
        assert_eq!((now[long].as_str().unwrap(), &now["name"]), (of(long).as_str(), &json!("Mine")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_in_their_own_way() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.post("/lore", json!({ "title": "Guide", "scope": "global", "content": "[[The Reach]]" })).await.expect(201);
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/lore/{}", world.get("/lore/the_reach").await.id());
    let page = mara.get(&path).await.expect(200).text;
    let fields = with(&page, &[("title", "The Deep"), ("content", "Deep.")]);
    // The page saves by itself, and the button is pressed before its answer is there.
    let by_itself = [fields.clone(), vec![("autosave".to_owned(), "1".to_owned())]].concat();
    post(&mara, &path, &by_itself).await.expect(200);
    let saved = post(&mara, &path, &fields).await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    assert_eq!(world.get("/lore/the_reach").await.body["version"], 2, "it was written once");
    // Its links are offered to be mended all the same.
    assert!(saved.header("location").contains("?renamed=The+Reach"), "{}", saved.header("location"));
    let offer = mara.get(saved.header("location")).await.expect(200).text;
    assert!(offer.contains("links to <b dir=\"auto\">The Reach</b>"), "{offer}");
    // A row of another kind, sent twice.
    let path = format!("/admin/c/port-town/npcs/{}", world.get("/npcs/innkeeper_bob").await.id());
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    let fields = with(&page, &[("faction", "Guild")]);
    for _ in 0..2 {
        post(&mara, &path, &fields).await.expect(303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_click_does_its_work_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let lore = "/admin/c/port-town/lore";
    let page = owner.get(&format!("{lore}/bulk?all=1")).await.expect(200).text;
    let form_id = field(&page, "form_id");
    let path = format!("{lore}/bulk");
    let seen = [("all", "1"), ("filters", ""), ("priority", "5"), ("priority_how", "add"), ("do", "preview")];
    let digest = field(&owner.post(&path, &seen).await.expect(200).text, "previewed");
    let run = [
        ("form_id", form_id.as_str()),
        ("all", "1"),
        ("filters", ""),
        ("priority", "5"),
        ("priority_how", "add"),
        ("do", "run"),
        ("previewed", digest.as_str()),
    ];
    let (one, two) = tokio::join!(owner.post(&path, &run), owner.post(&path, &run));
    assert_eq!((one.status, one.header("location")), (303, two.header("location")), "{}", two.text);
    assert_eq!(world.get("/lore/the_reach").await.body["priority"], 5);
    // A copy, a fork, a key.
    let id = world.get("/lore/the_reach").await.id();
    let page = owner.get(&format!("{lore}/{id}")).await.expect(200).text;
    let form_id = page.split_once("/duplicate\"").map(|(_, rest)| field(rest, "form_id")).unwrap();
    let copies = [("form_id", form_id.as_str())];
    let first = owner.post(&format!("{lore}/{id}/duplicate"), &copies).await.expect(303);
    let second = owner.post(&format!("{lore}/{id}/duplicate"), &copies).await.expect(303);
    assert_eq!(first.header("location"), second.header("location"));
    let turn = world.bob("player_alice", "Hello.").await.expect(200).id();
    let fork = format!("/admin/c/port-town/turns/{turn}/fork");
    let page = owner.get(fork.trim_end_matches("/fork")).await.expect(200).text;
    let form_id = field(&page, "form_id");
    for _ in 0..2 {
        owner.post(&fork, &[("form_id", &form_id)]).await.expect(303);
    }
    assert_eq!(tenant.get("/v1/campaigns").await.items().len(), 2);
    let page = owner.get("/admin/keys").await.expect(200).text;
    let form_id = field(&page, "form_id");
    let key = [("form_id", form_id.as_str()), ("name", "bot"), ("scope", "read")];
    assert!(owner.post("/admin/keys", &key).await.expect(200).text.contains("class=\"secret\""));
    let again = owner.post("/admin/keys", &key).await.expect(303);
    assert!(!again.text.contains("tk_"));
    let keys = tenant.get("/v1/api-keys?limit=200").await;
    assert_eq!(keys.items().iter().filter(|key| key["name"] == "bot").count(), 1);
    let page = owner.get("/admin/users").await.expect(200).text;
    let form_id = field(&page, "form_id");
    let user = [("form_id", form_id.as_str()), ("email", "zoe@example.org"), ("role", "viewer")];
    let made = owner.post("/admin/users", &user).await.expect(200).text;
    let password = made.split_once("class=\"secret\">").unwrap().1.split('<').next().unwrap();
    // The page is loaded again: nothing is made, nothing is wrong, and the password is nowhere.
    let again = owner.post("/admin/users", &user).await.expect(303);
    assert_eq!(again.header("location"), "/admin/users");
    let list = owner.get("/admin/users").await.expect(200).text;
    assert!(list.contains("zoe@example.org") && !list.contains(password), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_that_cannot_be_kept_are_not_merged() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lines = |of: &str, n: usize| (0..n).map(|i| format!("{of}{i}\n")).collect::<String>();
    let was = lines("a", 12_000);
    let id = world.patch("/lore/the_reach", json!({ "content": was })).await.expect(200).id();
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/lore/{id}");
    let page = mara.get(&path).await.expect(200).text;
    // So many lines are not put together, though the two changed different ones: the work would grow with the product of both lengths.
    world.patch("/lore/the_reach", json!({ "content": was.replacen("a0\n", "theirs\n", 1) })).await.expect(200);
    let mine = was.replace("a11999\n", "mine\n");
    let late = post(&mara, &path, &with(&page, &[("content", &mine)])).await.expect(409).text;
    let kept = with(&late, &[]).into_iter().find(|(name, _)| name == "content").unwrap().1;
    assert!(kept == mine && late.contains("Merge"), "it was put together, or mine is gone: {} bytes", kept.len());
    // Every line another: nothing could be harder to put together, and it is answered all the same.
    world.patch("/lore/the_reach", json!({ "content": lines("b", 12_000) })).await.expect(200);
    let mine = lines("c", 12_000);
    let late = post(&mara, &path, &with(&page, &[("content", &mine)])).await.expect(409).text;
    assert!(late.contains("c11999") && late.contains("Merge"), "mine is gone");
    // Marks longer than any that a text has.
    let marks = format!("{}\nx\n", "<".repeat(50_000));
    world.patch("/lore/the_reach", json!({ "content": marks.replace('x', "y") })).await.expect(200);
    post(&mara, &path, &with(&page, &[("content", &marks)])).await.expect(409);
    // And what no entry may hold is refused first, late or not.
    let long = "x\n".repeat(60_000);
    let refused = post(&mara, &path, &with(&page, &[("content", &long)])).await.expect(422).text;
    assert!(refused.contains("at most 100000 characters"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_as_large_as_they_have_to_be() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut stranger = Visitor::at(&server);
    // Nothing is read of somebody without a secret: refused while the body is still to come.
    for path in ["/admin/sign-in", "/admin/sign-out"] {
        let mut stream = tokio::net::TcpStream::connect(server.url.trim_start_matches("http://")).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=x\r\ncontent-length: 30000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0u8; 12];
        let read = tokio::time::timeout(Duration::from_secs(50), stream.read_exact(&mut answer)).await;
        read.unwrap_or_else(|_| panic!("{path} waits for the body")).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 403");
    }
    stranger.get("/admin/sign-in").await.expect(200);
    let large = "x".repeat(100_000);
    stranger.post("/admin/sign-in", &[("email", &large)]).await.expect(413);
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let npcs = "/admin/c/port-town/npcs";
    mara.post(npcs, &[("name", &"x".repeat(3 << 20))]).await.expect(413);
    let parts =
        format!("--x\r\ncontent-disposition: form-data; name=\"form_token\"\r\n\r\n{}\r\n--x--\r\n", mara.token());
    let multipart = |path: &str| {
        let request = mara.request("POST", path).header("content-type", "multipart/form-data; boundary=x");
        request.body(parts.clone())
    };
    mara.send(multipart(npcs)).await.expect(415);
    let look = "/admin/c/port-town/exchange/look";
    mara.send(multipart(look)).await.expect(422);
    // What is wrong with a file is said on the page, with its navigation.
    let token = mara.token();
    let file = |name: &str, bytes: Vec<u8>| {
        let mut body = format!(
            "--x\r\ncontent-disposition: form-data; name=\"form_token\"\r\n\r\n{token}\r\n--x\r\n\
             content-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n"
        )
        .into_bytes();
        body.extend(bytes);
        body.extend(b"\r\n--x--\r\n");
        mara.request("POST", look).header("content-type", "multipart/form-data; boundary=x").body(body)
    };
    for (name, bytes, status, says) in [
        ("none.json", Vec::new(), 422, "none.json is empty"),
        ("fake.png", b"{\"entries\": {}}".to_vec(), 422, "no entry with content"),
        ("mira.jpg", b"\xff\xd8\xff\xe0 and more".to_vec(), 422, "This is a JPEG picture"),
        ("mira.webp", b"RIFF\x10\0\0\0WEBPVP8 ".to_vec(), 422, "only PNG pictures can contain a card"),
        ("wide.json", vec![b' '; (32 << 20) + 1], 413, "too large. A file may have at most 32 MiB"),
        ("huge.json", vec![b' '; 34 << 20], 413, "too large. A file may have at most 32 MiB"),
    ] {
        let page = mara.send(file(name, bytes)).await.expect(status).text;
        assert!(page.contains(says) && page.contains("<nav"), "{name}: {page}");
    }
    // A book is the same under another file's name, if it has one of its own, and under the number that a browser adds.
    let (named, nameless) = (
        &br#"{"name":"Tides","entries":{"0":{"key":["x"],"content":"A."}}}"#,
        &br#"{"entries":{"0":{"key":["y"],"content":"B."}}}"#,
    );
    for (bytes, first, second) in [(named.to_vec(), "a.json", "b.json"), (nameless.to_vec(), "wi.json", "wi (1).json")]
    {
        let page = mara.send(file(first, bytes.clone())).await.expect(200).text;
        let pending = field(&page, "pending");
        mara.post("/admin/c/port-town/exchange/confirm", &[("pending", &pending)]).await.expect(303);
        let page = mara.send(file(second, bytes)).await.expect(200).text;
        assert!(page.contains("<b>0</b> would be created") && page.contains("<b>1</b> would stay unchanged"), "{page}");
    }
    // The longest text of the world fits, each of its characters of four bytes and quoted.
    let text = "🜁".repeat(100_000);
    let fields = [("title", "Long"), ("scope", "global"), ("content", text.as_str())];
    mara.post("/admin/c/port-town/lore", &fields).await.expect(303);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_lab_asked_is_counted_when_nobody_waits_for_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    server.model.set_script(Script::replies([Reply::text("Late.").held()]));
    let token = mara.token();
    let fields = [
        ("form_token", token.as_str()),
        ("entity", "npc:innkeeper_bob"),
        ("player", "player_alice"),
        ("action", "Hello"),
    ];
    let asked = form(mara.request("POST", "/admin/c/port-town/lab/ask"), &fields).header("cookie", &mara.cookie);
    let called = server.model.request_count();
    let asked = tokio::spawn(asked.send());
    until("the question", async || server.model.request_count() > called).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    server.model.let_go(1);
    let mut db = server.owner().await;
    until("what it cost", async || {
        let counted = "SELECT count(*) FROM usage_entry WHERE kind = 'lab'";
        sqlx::query_scalar::<_, i64>(counted).fetch_one(&mut db).await.unwrap() == 1
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn links_lead_to_rows_and_not_to_pages_of_their_names() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/npcs/innkeeper_bob", json!({ "slug": "new", "name": "New" })).await.expect(200);
    let lore = json!({ "title": "Tidy", "slug": "tidy", "scope": "global", "content": "Neat." });
    let lore = world.post("/lore", lore).await.expect(201).id();
    let turn = world.post("/npcs/new/turns", json!({ "player_id": "player_alice", "action": "Hello." })).await;
    let turn = turn.expect(200).id();
    let npc = world.get("/npcs/new").await.id();
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let trace = mara.get(&format!("/admin/c/port-town/turns/{turn}")).await.expect(200).text;
    assert!(trace.contains(&format!("npcs/{npc}\"")) && trace.contains(&format!("lore/{lore}\"")), "{trace}");
    let lab = "/admin/c/port-town/lab?entity=npc:new&player=player_alice&action=Hello";
    let lab = mara.get(lab).await.expect(200).text;
    assert!(lab.contains(&format!("lore/{lore}\"")) && !lab.contains("lore/tidy\""), "{lab}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_does_not_overwrite_what_it_has_not_seen() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/lore/the_reach", json!({ "content": "Second." })).await.expect(200);
    let first: Value = world.get("/lore/the_reach/revisions").await.items().last().unwrap()["seq"].clone();
    let path = world.path(&format!("/lore/the_reach/revisions/{first}/restore"));
    // Somebody writes, and is not done yet.
    let mut db = server.owner().await;
    let begin = format!("BEGIN; SET LOCAL app.tenant_id = '{}'", tenant.tenant);
    sqlx::raw_sql(sqlx::AssertSqlSafe(begin)).execute(&mut db).await.unwrap();
    sqlx::query("UPDATE lore SET content = 'Theirs.' WHERE slug = 'the_reach'").execute(&mut db).await.unwrap();
    let request = tenant.request(reqwest::Method::POST, &path).header("if-match", "\"v2\"").json(&json!({}));
    let (answer, ()) = tokio::join!(tenant.send(request), async {
        somebody_waits(&server).await;
        sqlx::raw_sql("COMMIT").execute(&mut db).await.unwrap();
    });
    answer.problem(412, "precondition_failed");
    assert_eq!(world.get("/lore/the_reach").await.body["content"], "Theirs.");
}
