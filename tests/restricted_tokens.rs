//! A token that was narrowed to a campaign or a player stays within that campaign: every route, whatever scopes it has.

use std::collections::BTreeMap;

use edge::caller::{
    Scope,
    access::{Reach, TABLE},
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Row};
use uuid::Uuid;

use crate::support::{Client, Rows, Server};

/// In every text outside of the campaign.
const CANARY: &str = "canary-90b2d4";
/// What a look alone changes.
const VOLATILE: &str = "- 'last_used_at' - 'seen_at'";

/// Every row of every table but those of a campaign, and of what a server keeps of any request.
async fn all_but(server: &Server, campaign: &str) -> BTreeMap<String, Vec<String>> {
    let mut db = server.owner().await;
    let campaign: Uuid = campaign.parse().unwrap();
    let tables = "SELECT c.relname::text AS name, \
                         EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'campaign_id') AS placed \
                  FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace";
    let mut rows = BTreeMap::new();
    for table in sqlx::query(tables).fetch_all(&mut db).await.unwrap() {
        let name: String = table.get("name");
        let own = match (name.as_str(), table.get("placed")) {
            ("idempotency", _) => continue,
            ("campaign", _) => "id <> $1",
            (_, true) => "campaign_id IS DISTINCT FROM $1",
            (_, false) => "$1::uuid IS NOT NULL",
        };
        let sql = format!("SELECT (to_jsonb(t) {VOLATILE})::text FROM {name} t WHERE {own} ORDER BY 1");
        rows.insert(name, sqlx::query_scalar(AssertSqlSafe(sql)).bind(campaign).fetch_all(&mut db).await.unwrap());
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_of_the_campaign_is_read_or_written() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let rows = Rows::make(&tenant, CANARY).await;
    let inland = tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201).id();
    tenant.post("/v1/campaigns/inland/characters", json!({ "slug": "wanda", "name": "Wanda" })).await.expect(201);
    tenant.get("/v1/campaigns/inland/dice/seeds").await.expect(200);
    let all: Vec<_> = Scope::ALL.into_iter().map(Scope::as_str).collect();
    let narrowed = [
        json!({ "campaign": "inland", "scopes": all }),
        json!({ "campaign": "inland" }),
        json!({ "campaign": "inland", "player_id": "wanda", "scopes": all }),
        json!({ "campaign": "inland", "player_id": "wanda" }),
    ];
    for how in narrowed {
        let token = tenant.token(how.clone()).await;
        let before = all_but(&server, &inland).await;
        for route in TABLE.iter().filter(|route| !route.in_first_frame) {
            let name = format!("{} {} with {how}", route.method, route.path);
            let answer = rows.send(&token, route).await;
            let (status, text) = (answer.status, &answer.text);
            assert!(!text.contains(CANARY), "{name}: {text}");
            match route.reach {
                Reach::Tenant => assert_eq!(status, 403, "{name}: {text}"),
                Reach::Campaign => assert!(matches!(status, 403 | 404), "{name}: {status} {text}"),
                Reach::Callers | Reach::Shared => assert!(status < 500, "{name}: {status} {text}"),
            }
        }
        assert_eq!(all_but(&server, &inland).await, before, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_narrowed_admin_is_none() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let all: Vec<_> = Scope::ALL.into_iter().map(Scope::as_str).collect();
    let token = tenant.token(json!({ "campaign": "port-town", "scopes": all })).await;
    let attempts: [(&str, &str, Value); 6] = [
        ("POST", "/v1/api-keys", json!({ "scopes": ["admin"] })),
        ("POST", "/v1/users", json!({ "email": "mine@example.org", "role": "owner" })),
        ("PATCH", "/v1/tenant", json!({ "name": "Mine" })),
        ("POST", "/v1/campaigns", json!({ "name": "Mine" })),
        ("POST", "/v1/campaigns/port-town/fork", json!({ "name": "Mine" })),
        ("POST", "/v1/dice/seeds/rotate", json!({})),
    ];
    for (method, path, body) in attempts {
        let request = token.request(method.parse().unwrap(), path).json(&body);
        token.send(request).await.problem(403, "forbidden");
    }
    for path in ["/v1/api-keys", "/v1/users", "/v1/tenant", "/v1/dice/seeds"] {
        token.get(path).await.problem(403, "forbidden");
    }
    // In its campaign it does what its scopes say.
    own(&token).await;
    // And the scope for all that is not given unless it is asked for.
    let usual = tenant.token(json!({})).await;
    usual.get("/v1/users").await.problem(403, "forbidden");
    tenant.token(json!({ "scopes": ["admin"] })).await.get("/v1/users").await.expect(200);
}

async fn own(token: &Client<'_>) {
    token.post("/v1/campaigns/port-town/npcs", json!({ "name": "Zed" })).await.expect(201);
    token.patch("/v1/campaigns/port-town", json!({ "description": "By the sea" })).await.expect(200);
    token.get("/v1/campaigns/port-town/dice/seeds").await.expect(200);
    token.post("/v1/dice/roll", json!({ "rolls": [{ "formula": "1d20" }] })).await.expect(200);
    assert_eq!(token.get("/v1/campaigns").await.expect(200).items().len(), 1);
    token.get("/v1/usage").await.expect(200);
}

#[test]
fn a_route_is_of_the_campaign_in_its_path_or_says_why_not() {
    let within: Vec<_> = TABLE.iter().filter(|r| r.path.contains("{c}") && r.reach != Reach::Campaign).collect();
    let names: Vec<_> = within.iter().map(|r| (r.method, r.path, r.reach)).collect();
    assert_eq!(names, [("POST", "/v1/campaigns/{c}/fork", Reach::Tenant)], "a fork is a campaign of its own");
    let without = TABLE.iter().filter(|r| !r.path.contains("{c}"));
    assert!(without.clone().count() > 10);
    assert!(without.clone().all(|r| r.reach != Reach::Campaign));
    let narrow: Vec<_> = without.filter(|r| r.reach == Reach::Callers).map(|r| (r.method, r.path)).collect();
    assert_eq!(
        narrow,
        [
            ("GET", "/v1/whoami"),
            ("GET", "/v1/usage"),
            ("POST", "/v1/dice/roll"),
            ("POST", "/v1/dice/verify"),
            ("GET", "/v1/campaigns"),
            ("POST", "/v1/campaigns/import"),
        ]
    );
}
