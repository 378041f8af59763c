//! The first ten minutes in the editor: an empty tenant, the four steps, the overview, and which model answers.

use base::clock;
use edge::{tenant_settings::service::set_limits, tenants::TenantLimits, users::Role};
use serde_json::json;

use super::Visitor;
use crate::support::{Server, until};

/// The steps of the overview that are ticked.
fn done(page: &str) -> Vec<bool> {
    let Some((_, steps)) = page.split_once("<ol class=\"steps\">") else { return Vec::new() };
    let steps = steps.split("</ol>").next().unwrap();
    steps.split("<li").skip(1).map(|step| step.starts_with(" class=\"is-done\"")).collect()
}

/// An empty tenant is offered a small world, which is whole and works; a second one gets another slug.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_world_to_try() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let empty = owner.get("/admin/campaigns").await.expect(200).text;
    assert!(empty.contains("There are no campaigns yet") && empty.contains("Try a small world"), "{empty}");
    for slug in ["port-town", "port-town-2"] {
        let form_id = clock::id().to_string();
        // A second click does nothing twice.
        for _ in 0..2 {
            let made = owner.post("/admin/campaigns/sample", &[("form_id", &form_id)]).await.expect(303);
            assert_eq!(made.header("location"), format!("/admin/c/{slug}"));
        }
    }
    assert_eq!(tenant.get("/v1/campaigns").await.items().len(), 2);
    let answer = tenant.npc_turn("port-town-2", "innkeeper_bob", "player_alice", "Good evening.").await.expect(200);
    assert_eq!(answer.body["status"], "succeeded");
    assert!(!owner.get("/admin/campaigns").await.text.contains("Try a small world"));
    // Whoever may only read is offered nothing.
    let other = server.tenant("other").await;
    let mut viewer = Visitor::signed_in(&server, other.tenant, Role::Viewer).await;
    let page = viewer.get("/admin/campaigns").await.expect(200).text;
    assert!(page.contains("There are no campaigns yet") && !page.contains("Try a small world"));
    viewer.post("/admin/campaigns/sample", &[]).await.expect(403);
    // A tenant that may not have as many rows gets nothing of it.
    let limits = TenantLimits { rows_per_kind: 3, ..TenantLimits::unlimited() };
    set_limits(&mut server.owner().await, other.tenant, &limits).await.unwrap();
    let small = Visitor::signed_in(&server, other.tenant, Role::Owner).await;
    let refused = small.post("/admin/campaigns/sample", &[]).await;
    assert!((400..500).contains(&refused.status), "{}: {}", refused.status, refused.text);
    assert_eq!(other.get("/v1/campaigns").await.items().len(), 0);
}

/// Each of the four steps is one click away, and ticked once it is done.
#[tokio::test(flavor = "multi_thread")]
async fn four_steps_are_ticked() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    tenant.post("/v1/campaigns", json!({ "name": "New", "slug": "new" })).await.expect(201);
    let base = "/v1/campaigns/new";
    assert_eq!(done(&owner.get("/admin/c/new").await.text), [false; 4]);
    let lore = json!({ "title": "The sea", "scope": "global", "content": "Cold." });
    tenant.post(&format!("{base}/lore"), lore).await.expect(201);
    assert_eq!(done(&owner.get("/admin/c/new").await.text), [true, false, false, false]);
    tenant.post(&format!("{base}/npcs"), json!({ "name": "Bob" })).await.expect(201);
    tenant.post(&format!("{base}/characters"), json!({ "name": "Alice" })).await.expect(201);
    assert_eq!(done(&owner.get("/admin/c/new").await.text), [true, true, false, false]);
    let asked = [("entity", "npc:bob"), ("player", "alice"), ("action", "Good evening.")];
    let lab = owner.get("/admin/c/new/lab").await.expect(200).text;
    let value = |select: &str| {
        let (_, rest) = lab.split_once(&format!("<select id=\"{select}\"")).unwrap();
        rest.split("<option value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let (entity, player) = (value("entity"), value("player"));
    owner.post("/admin/c/new/lab/turn", &[("entity", &entity), ("player", &player), asked[2]]).await.expect(303);
    assert_eq!(done(&owner.get("/admin/c/new").await.text), [true, true, true, false]);
    until("the turn of the lab ends", async || {
        tenant.get(&format!("{base}/turns")).await.items().iter().all(|turn| turn["status"] == "succeeded")
    })
    .await;
    // Somebody plays: the steps have served their purpose.
    tenant.npc_turn("new", "bob", "alice", "Hello.").await.expect(200);
    let page = owner.get("/admin/c/new").await.text;
    assert!(done(&page).is_empty() && !page.contains("First steps"), "{page}");
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    assert!(!viewer.get("/admin/c/new").await.expect(200).text.contains("First steps"));
}

/// A player link of the editor opens the table of one character. A tenant without a key for it gets one.
#[tokio::test(flavor = "multi_thread")]
async fn a_player_is_invited() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let form = owner.get("/admin/c/port-town/invite?player=player_alice").await.expect(200).text;
    assert!(form.contains("<option value=\"player_alice\" selected>"), "{form}");
    let invite =
        async |visitor: &Visitor, player: &str| visitor.post("/admin/c/port-town/invite", &[("player", player)]).await;
    let link = async |visitor: &Visitor| {
        let page = invite(visitor, "player_alice").await.expect(200).text;
        assert!(page.contains("It ends when it is revoked."), "{page}");
        let (_, rest) = page.split_once("class=\"secret\" href=\"").unwrap_or_else(|| panic!("{page}"));
        rest.split('"').next().unwrap().to_owned()
    };
    let open = async |link: &str| {
        let (path, token) = link.split_once('#').unwrap();
        assert_eq!(path, format!("{}/play/port-town", server.url));
        assert!(token.starts_with("pl_"), "{token}");
        let request = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        let sent = request.post(format!("{path}/enter")).header("content-type", "application/x-www-form-urlencoded");
        sent.body(format!("token={token}")).send().await.unwrap().status().as_u16()
    };
    assert_eq!(open(&link(&owner).await).await, 303);
    assert!(invite(&owner, "nobody").await.expect(422).text.contains("role=\"alert\""));
    // A form that is sent twice makes one link, and one may say how long it lasts.
    let fields = [("player", "player_alice"), ("name", "Ann & Bo"), ("lasts", "7"), ("form_id", "once")];
    owner.post("/admin/c/port-town/invite", &fields).await.expect(200);
    owner.post("/admin/c/port-town/invite", &fields).await.expect(303);
    let page = owner.get("/admin/c/port-town/invite").await.expect(200).text;
    assert_eq!((page.matches("Ann &#38; Bo").count(), page.matches(">Revoke</a>").count()), (1, 2), "{page}");
    let wrong = [("player", "player_alice"), ("lasts", "8")];
    assert!(owner.post("/admin/c/port-town/invite", &wrong).await.expect(422).text.contains("how long the link lasts"));
    let links = tenant.get("/v1/campaigns/port-town/player-links?q=ann").await.expect(200).items().to_vec();
    let (path, url) = (format!("/admin/c/port-town/invite/{}", links[0]["id"].as_str().unwrap()), &links[0]["url"]);
    let url = url.as_str().unwrap();
    assert!(
        page.contains(&format!("data-copy=\"{url}\"")) && page.contains(&format!("src=\"{path}/qr.svg\"")),
        "{page}"
    );
    let picture = owner.get(&format!("{path}/qr.svg")).await.expect(200);
    assert_eq!(picture.header("content-type"), "image/svg+xml");
    assert!(picture.text.contains("<svg") && !picture.text.contains("style="), "{}", picture.text);
    let asked = owner.get(&format!("{path}/revoke")).await.expect(200).text;
    assert!(asked.contains("Revoke the link for player_alice?") && asked.contains("Ann &#38; Bo"), "{asked}");
    assert_eq!(open(url).await, 303);
    owner.post(&format!("{path}/revoke"), &[]).await.expect(303);
    assert_eq!(open(url).await, 401);
    owner.get(&format!("{path}/qr.svg")).await.expect(404);
    // Without any key that may play: an administrator's link brings one, others are told what is missing.
    // A key that ends before the link would is none. Links of a key that has ended are not listed.
    sqlx::query("UPDATE api_key SET expires_at = now() + interval '30 minutes'")
        .execute(&mut server.owner().await)
        .await
        .unwrap();
    let editor = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    assert!(invite(&editor, "player_alice").await.expect(422).text.contains("Ask an administrator"));
    assert_eq!(open(&link(&owner).await).await, 303);
    assert_eq!(open(&link(&editor).await).await, 303);
    assert!(owner.get("/admin/keys").await.text.contains("Player links"));
    let viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    invite(&viewer, "player_alice").await.expect(403);
}

/// The overview tells who said what, who is where, the fight, the changes with their authors, and what waits for a person; to
/// somebody who may only read it tells no secrets.
#[tokio::test(flavor = "multi_thread")]
async fn the_overview_shows_life() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.bob("player_alice", "Good evening.").await.expect(200);
    let whisper = json!({ "content": "The key is under the mat.", "whisper_to": ["gm"] });
    world.post("/messages", whisper).await.expect(201);
    let fight = json!({ "name": "On the pier", "participants": [
        { "id": "alice", "character_id": "player_alice", "initiative": 12 },
        { "id": "orc", "name": "Orc", "hp": 7, "max_hp": 9, "armor_class": 13, "is_enemy": true, "initiative": 19 },
    ] });
    world.post("/encounters", fight).await.expect(201);
    world.patch("/npcs/innkeeper_bob", json!({ "location": "The Gilded Gull" })).await.expect(200);
    world.patch("/characters/player_alice", json!({ "location": "the_gilded_gull" })).await.expect(200);
    let mut db = server.owner().await;
    for sql in [
        "UPDATE turn SET status = 'failed'",
        "UPDATE npc SET pending_instructions = '{\"instructions\": \"Obey.\"}' WHERE slug = 'innkeeper_bob'",
    ] {
        sqlx::query(sql).execute(&mut db).await.unwrap();
    }
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let page = owner.get("/admin/c/port-town").await.expect(200).text;
    for part in [
        "Good evening.",
        "The key is under the mat.",
        "On the pier",
        "7/9",
        "1 turn</a> failed",
        "that nobody has accepted",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    // One place, however it is spelled.
    let (_, places) = page.split_once("<dl class=\"places\">").unwrap();
    let inn = places.split("<dt>").find(|place| place.contains(">The Gilded Gull</a>")).unwrap();
    assert!(inn.contains("/npcs/innkeeper_bob") && inn.contains("/characters/player_alice"), "{inn}");
    let (_, changes) = page.split_once("id=\"changes\"").unwrap();
    assert!(changes.contains("npc, changed by"), "{changes}");
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let page = viewer.get("/admin/c/port-town").await.expect(200).text;
    assert!(page.contains("On the pier") && page.contains("Good evening."));
    for secret in ["under the mat", "id=\"changes\"", "id=\"attention\""] {
        assert!(!page.contains(secret), "{secret}: {page}");
    }
}

/// Every page says which model answers, and the table does, too.
#[tokio::test(flavor = "multi_thread")]
async fn every_page_says_which_model_answers() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mut owner = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let mut shown = async |path: &str| {
        let page = owner.get(path).await.expect(200).text;
        let (_, rest) = page.split_once("<span class=\"model").unwrap_or_else(|| panic!("{path}: {page}"));
        rest.split("</svg>").nth(1).unwrap().split('<').next().unwrap().trim().to_owned()
    };
    for path in ["/admin/campaigns", "/admin/settings", "/admin/c/port-town", "/admin/c/port-town/lore"] {
        assert_eq!(shown(path).await, "Rehearsal model", "{path}");
    }
    let endpoint =
        json!({ "name": "Big", "slug": "big", "model": "a-big-model", "endpoint": "https://models.example.com/v1" });
    tenant.post("/v1/models", endpoint).await.expect(201);
    let settings = json!({ "settings": { "models": { "npc": "big" } } });
    tenant.patch("/v1/campaigns/port-town", settings).await.expect(200);
    assert_eq!(shown("/admin/c/port-town/lore").await, "a-big-model");
    assert_eq!(shown("/admin/campaigns").await, "Rehearsal model");
    tenant.patch("/v1/tenant", json!({ "features": { "llm": false } })).await.expect(200);
    assert_eq!(shown("/admin/c/port-town").await, "AI is off");
}
