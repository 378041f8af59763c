//! Keys and the tokens made of them: what they are narrowed to, what forges are refused, when they stop, and which
//! pages may use them.

use std::time::Duration;

use base::{clock, secrets::Secrets};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use edge::caller::{
    Scope,
    jwt::{Claims, Narrowed, Tokens},
    keys::FRESH,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, crypto, encode};
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Client, SECRET, Server, until};

/// Asks until the answer is `status`: a change of a key is known as soon as what is known of it is too old.
async fn becomes(client: &Client<'_>, path: &str, status: u16) {
    assert!(FRESH < Duration::from_secs(1));
    until(&format!("{status} of {path}"), async || client.get(path).await.status == status).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_credential_says_who_it_is() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let tenant_id = tenant.get("/v1/tenant").await.expect(200).id();

    let key = tenant.with_scopes(&[Scope::Read]).await.get("/v1/whoami").await.expect(200).body;
    assert_eq!((&key["kind"], &key["scopes"]), (&json!("api_key"), &json!(["read"])));
    assert_eq!((&key["tenant_id"], &key["tenant_slug"]), (&json!(tenant_id), &json!("acme")));
    for none in ["campaign", "player", "expires_at"] {
        assert_eq!(key.get(none), Some(&Value::Null), "{none}");
    }

    let how =
        json!({ "campaign": "port-town", "player_id": "player_alice", "ttl_seconds": 600, "scopes": ["read", "play"] });
    let token = tenant.token(how).await.get("/v1/whoami").await.expect(200).body;
    assert_eq!((&token["kind"], &token["scopes"]), (&json!("access_token"), &json!(["read", "play"])));
    assert_eq!(token["campaign"]["id"], world.get("").await.expect(200).id());
    assert_eq!((&token["campaign"]["slug"], &token["player"]["slug"]), (&json!("port-town"), &json!("player_alice")));
    assert_eq!((&token["tenant_slug"], &token["key_name"]), (&Value::Null, &Value::Null), "the tenant's own business");
    let left = clock::parse(token["expires_at"].as_str().unwrap()).unwrap() - clock::now();
    assert!(left.is_positive() && left.whole_seconds() <= 600, "{left}");

    tenant.with_credential("tk_00000000_no").get("/v1/whoami").await.problem(401, "unauthenticated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_traded_for_a_narrower_token() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    tenant.post("/v1/campaigns", json!({ "slug": "inland", "name": "Inland" })).await.expect(201);

    let whole = tenant.post("/v1/auth/token", json!({})).await.expect(200);
    assert_eq!((&whole.body["token_type"], &whole.body["expires_in"]), (&json!("Bearer"), &json!(900)));
    // What is the tenant's business has to be asked for.
    assert_eq!(whole.body["scope"], "read write play tools gm");
    assert_eq!(whole.body.as_object().unwrap().len(), 4);
    let token = tenant.with_credential(whole.body["access_token"].as_str().unwrap());
    token.post("/v1/campaigns", json!({ "name": "x" })).await.expect(201);
    token.post("/v1/auth/token", json!({})).await.problem(403, "forbidden");

    let reader = tenant.token(json!({ "scopes": ["read"] })).await;
    reader.get(&world.path("/npcs")).await.expect(200);
    reader.post(&world.path("/npcs"), json!({ "name": "x" })).await.problem(403, "forbidden");
    reader.get("/v1/api-keys").await.problem(403, "forbidden");
    let none = tenant.token(json!({ "scopes": [] })).await;
    none.get("/v1/campaigns").await.problem(403, "forbidden");

    let key = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    key.post("/v1/auth/token", json!({ "scopes": ["read", "gm"] })).await.problem(403, "forbidden");
    assert_eq!(key.post("/v1/auth/token", json!({})).await.expect(200).body["scope"], "read play");

    let in_port = tenant.token(json!({ "campaign": "port-town" })).await;
    in_port.get(&world.path("")).await.expect(200);
    in_port.get("/v1/campaigns/inland").await.problem(404, "not_found");
    for (body, pointer, code) in [
        (json!({ "campaign": "nowhere" }), "/campaign", "unknown_reference"),
        (json!({ "player_id": "player_alice" }), "/campaign", "required"),
        (json!({ "campaign": "inland", "player_id": "player_alice" }), "/player_id", "unknown_reference"),
        (json!({ "campaign": "port-town", "player_id": "innkeeper_bob" }), "/player_id", "unknown_reference"),
        (json!({ "ttl_seconds": 59 }), "/ttl_seconds", "invalid_value"),
        (json!({ "ttl_seconds": 3601 }), "/ttl_seconds", "invalid_value"),
        (json!({ "ttl_seconds": "60" }), "/ttl_seconds", "invalid_value"),
        (json!({ "scopes": ["root"] }), "/scopes/0", "invalid_value"),
        (json!({ "scope": "read" }), "/scope", "unknown_field"),
    ] {
        let answer = tenant.post("/v1/auth/token", body).await.problem(422, "validation_failed");
        assert_eq!(
            (answer.pointers(), &answer.body["errors"][0]["code"]),
            (vec![pointer], &json!(code)),
            "{}",
            answer.text
        );
    }
    for ttl in [60, 3600] {
        let answer = tenant.post("/v1/auth/token", json!({ "ttl_seconds": ttl })).await.expect(200);
        assert_eq!(answer.body["expires_in"], ttl);
    }
}

fn encoded(value: &Value) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_tokens_are_refused() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let other = server.tenant("other").await;
    let (kid, secret) = Secrets::parse(SECRET).unwrap().signing().next().unwrap();
    let key = EncodingKey::from_secret(&secret);
    let prefix = |client: &Client<'_>| client.credential.split('_').nth(1).unwrap().to_owned();
    let now = clock::now().unix_timestamp();
    let claims = json!({
        "iss": "tavernkeep", "aud": "tavernkeep-api", "sub": prefix(&tenant), "tid": tenant.tenant, "scope": "read",
        "iat": now, "nbf": now, "exp": now + 600,
    });
    let with = |member: &str, value: Value| {
        let mut claims = claims.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(member)
        } else {
            claims.as_object_mut().unwrap().insert(member.to_owned(), value)
        };
        claims
    };
    let header = |alg: Algorithm| Header { kid: Some(kid.clone()), ..Header::new(alg) };
    let sign = |claims: &Value| encode(&header(Algorithm::HS256), claims, &key).unwrap();
    let by_hand = |header: Value, alg: Option<Algorithm>| {
        let message = format!("{}.{}", encoded(&header), encoded(&claims));
        let signature = alg.map(|alg| crypto::sign(message.as_bytes(), &key, alg).unwrap()).unwrap_or_default();
        format!("{message}.{signature}")
    };

    let genuine = sign(&claims);
    for good in [
        genuine.clone(),
        sign(&with("exp", json!(now - 20))),
        sign(&with("nbf", json!(now + 20))),
        by_hand(json!({ "alg": "HS256", "kid": kid }), Some(Algorithm::HS256)),
    ] {
        tenant.with_credential(&good).get("/v1/campaigns").await.expect(200);
    }
    let (body, signature) = genuine.rsplit_once('.').unwrap();
    let admin = encoded(&with("scope", json!("read admin")));
    let other_key = EncodingKey::from_secret(b"another secret that is forty characters long");
    let forges = [
        ("expired", sign(&with("exp", json!(now - 40)))),
        ("of the future", sign(&with("nbf", json!(now + 40)))),
        ("without end", sign(&with("exp", Value::Null))),
        ("without beginning", sign(&with("nbf", Value::Null))),
        ("an end that is no number", sign(&with("exp", json!("never")))),
        ("for another audience", sign(&with("aud", json!("another-api")))),
        ("for no audience", sign(&with("aud", Value::Null))),
        ("of another issuer", sign(&with("iss", json!("someone")))),
        ("of no issuer", sign(&with("iss", Value::Null))),
        ("of no key", sign(&with("sub", Value::Null))),
        ("of an unknown key", sign(&with("sub", json!("abcdefgh")))),
        ("of another tenant's key", sign(&with("sub", json!(prefix(&other))))),
        ("for another tenant", sign(&with("tid", json!(other.tenant)))),
        ("for no tenant", sign(&with("tid", Value::Null))),
        ("HS512", encode(&header(Algorithm::HS512), &claims, &key).unwrap()),
        ("HS384", encode(&header(Algorithm::HS384), &claims, &key).unwrap()),
        ("alg none", by_hand(json!({ "alg": "none", "kid": kid }), None)),
        ("alg none, signed", by_hand(json!({ "alg": "none", "kid": kid }), Some(Algorithm::HS256))),
        ("HS256 without signature", by_hand(json!({ "alg": "HS256", "kid": kid }), None)),
        ("RS256 with the secret", by_hand(json!({ "alg": "RS256", "kid": kid }), Some(Algorithm::HS256))),
        ("alg in another case", by_hand(json!({ "alg": "hs256", "kid": kid }), Some(Algorithm::HS256))),
        ("another kid", by_hand(json!({ "alg": "HS256", "kid": "00000000" }), Some(Algorithm::HS256))),
        ("no kid", by_hand(json!({ "alg": "HS256" }), Some(Algorithm::HS256))),
        ("another secret", encode(&header(Algorithm::HS256), &claims, &other_key).unwrap()),
        (
            "the secret itself",
            encode(&header(Algorithm::HS256), &claims, &EncodingKey::from_secret(SECRET.as_bytes())).unwrap(),
        ),
        ("other claims", format!("{}.{admin}.{signature}", body.split('.').next().unwrap())),
        ("no signature", format!("{body}.")),
        ("a cut signature", format!("{body}.{}", &signature[..signature.len() - 2])),
        ("long", sign(&with("scope", json!("read ".repeat(1000))))),
    ];
    for (what, forged) in forges {
        let answer = tenant.with_credential(&forged).get("/v1/campaigns").await;
        assert_eq!((answer.status, answer.body["code"].as_str()), (401, Some("unauthenticated")), "{what}");
    }
    // A genuine signature gives no more than its key has.
    let key_of_reader = tenant.with_scopes(&[Scope::Read]).await;
    let mut wide = with("scope", json!("read write admin nonsense"));
    wide["sub"] = json!(prefix(&key_of_reader));
    let wide = tenant.with_credential(&sign(&wide));
    wide.get("/v1/campaigns").await.expect(200);
    wide.post("/v1/campaigns", json!({ "name": "x" })).await.problem(403, "forbidden");
}

#[test]
fn two_secrets_live_while_one_is_replaced() {
    let (old, new) = ("the old secret that is forty characters", "the new secret that is forty characters");
    let tokens = |text: &str| Tokens::new(&Secrets::parse(text).unwrap());
    let both = format!("{new},{old}");
    let sign = |text: &str| {
        let narrowed = Narrowed { scope: "read".to_owned(), campaign: None, player: None };
        tokens(text).sign(&Claims::of_token("abcdefgh", Uuid::nil(), narrowed, 600)).unwrap()
    };
    let of_old = sign(old);
    assert!(tokens(old).check(&of_old).is_some());
    assert!(tokens(&both).check(&of_old).is_some());
    assert!(tokens(new).check(&of_old).is_none());
    let of_both = sign(&both);
    assert!(tokens(new).check(&of_both).is_some(), "the first secret signs");
    assert!(tokens(old).check(&of_both).is_none());

    let tenant = clock::id();
    let secrets = |text: &str| Secrets::parse(text).unwrap();
    let sealed = secrets(old).seal(tenant, "sk-provider").unwrap();
    assert_eq!(secrets(&both).open(tenant, &sealed).unwrap(), "sk-provider");
    assert!(secrets(new).open(tenant, &sealed).is_err());
    assert!(secrets(old).open(clock::id(), &sealed).is_err(), "a row moved to another tenant");
    for bad in ["", "short", ",", &format!("{old},{new},{old}"), &format!("{old},short")] {
        assert!(Secrets::parse(bad).is_err(), "{bad}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_stops_within_a_second_and_its_tokens_with_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let made = tenant.post("/v1/api-keys", json!({ "name": "game", "scopes": ["read"] })).await.expect(201);
    let key = tenant.with_credential(made.body["key"].as_str().unwrap());
    let token = key.token(json!({ "ttl_seconds": 3600 })).await;
    key.get("/v1/campaigns").await.expect(200);
    token.get("/v1/campaigns").await.expect(200);
    tenant.delete(made.header("location")).await.expect(204);
    becomes(&key, "/v1/campaigns", 401).await;
    becomes(&token, "/v1/campaigns", 401).await;
    // The record stays, and a second revocation changes nothing.
    let record = tenant.get(made.header("location")).await.expect(200);
    assert!(record.body["revoked_at"].is_string());
    tenant.delete(made.header("location")).await.expect(204);
    assert_eq!(tenant.get(made.header("location")).await.expect(200).body["revoked_at"], record.body["revoked_at"]);
    tenant.get("/v1/campaigns").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_expire() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let made = tenant.post("/v1/api-keys", json!({ "scopes": ["read"], "expires_in_seconds": 3600 })).await.expect(201);
    let key = tenant.with_credential(made.body["key"].as_str().unwrap());
    let token = key.token(json!({})).await;
    key.get("/v1/campaigns").await.expect(200);
    let back = "UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = $1";
    let id: Uuid = made.id().parse().unwrap();
    sqlx::query(back).bind(id).execute(&mut server.owner().await).await.unwrap();
    becomes(&key, "/v1/campaigns", 401).await;
    becomes(&token, "/v1/campaigns", 401).await;
    for seconds in [0, -1, 315_360_001] {
        let body = json!({ "scopes": ["read"], "expires_in_seconds": seconds });
        let refused = tenant.post("/v1/api-keys", body).await.problem(422, "validation_failed");
        assert_eq!(refused.pointers(), ["/expires_in_seconds"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_listed_changed_and_never_shown_again() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let made = tenant.post("/v1/api-keys", json!({ "name": "game", "scopes": ["write", "read"] })).await.expect(201);
    let (path, secret) = (made.header("location").to_owned(), made.body["key"].as_str().unwrap().to_owned());
    assert_eq!(path, format!("/v1/api-keys/{}", made.id()));
    let prefix = made.body["prefix"].as_str().unwrap();
    assert!(secret.starts_with(&format!("tk_{prefix}_")) && secret.len() == 3 + 8 + 1 + 43, "{secret}");
    assert_eq!(made.body["scopes"], json!(["read", "write"]));
    assert_eq!(made.body["last_used_at"], Value::Null);

    let key = tenant.with_credential(&secret);
    key.get("/v1/campaigns").await.expect(200);
    key.get("/v1/api-keys").await.problem(403, "forbidden");
    let read = tenant.get(&path).await.expect(200);
    assert!(read.body["last_used_at"].is_string());
    assert_eq!(tenant.get(&format!("/v1/api-keys/{prefix}")).await.expect(200).id(), made.id());
    let listed = tenant.get("/v1/api-keys?q=GAME").await.expect(200);
    assert_eq!(listed.items().len(), 1);
    for shown in [&read.text, &listed.text] {
        assert!(!shown.contains(&secret) && !shown.contains("hash") && !shown.contains("\"key\""), "{shown}");
    }
    // Only a hash is stored.
    let stored = "SELECT to_jsonb(k)::text FROM api_key k WHERE k.prefix = $1";
    let stored: String = sqlx::query_scalar(stored).bind(prefix).fetch_one(&mut server.owner().await).await.unwrap();
    assert!(!stored.contains(&secret[12..]), "{stored}");

    let tag = read.header("etag").to_owned();
    let changed = tenant.patch(&path, json!({ "name": "server", "scopes": ["read"] })).await.expect(200);
    assert_eq!((&changed.body["name"], &changed.body["scopes"]), (&json!("server"), &json!(["read"])));
    let stale = tenant.request(Method::PATCH, &path).header("if-match", &tag).json(&json!({ "name": "late" }));
    tenant.send(stale).await.problem(412, "precondition_failed");
    until("the scope to be gone", async || key.post("/v1/campaigns", json!({})).await.status == 403).await;
    for member in ["id", "prefix", "expires_at", "revoked_at", "last_used_at", "created_at", "version", "key"] {
        let refused = tenant.patch(&path, json!({ member: "x" })).await.problem(422, "validation_failed");
        assert_eq!(refused.body["errors"][0]["code"], "read_only", "{member}");
    }
    for body in [
        json!({ "scopes": [] }),
        json!({ "scopes": ["root"] }),
        json!({ "name": "x" }),
        json!({ "scopes": ["read"], "name": "x".repeat(201) }),
    ] {
        tenant.post("/v1/api-keys", body).await.problem(422, "validation_failed");
    }
    // Nobody gives a scope they do not have.
    let admin = tenant.with_scopes(&[Scope::Admin, Scope::Read]).await;
    admin.post("/v1/api-keys", json!({ "scopes": ["read", "gm"] })).await.problem(403, "forbidden");
    admin.patch(&path, json!({ "scopes": ["gm"] })).await.problem(403, "forbidden");
    admin.post("/v1/api-keys", json!({ "scopes": ["read"] })).await.expect(201);
    let strange = server.tenant("other").await;
    strange.get(&format!("/v1/api-keys/{prefix}")).await.problem(404, "not_found");
    strange.delete(&path).await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_tenants_origins_may_read_its_answers() {
    let server = Server::start().await;
    let (acme, other) = (server.tenant("acme").await, server.tenant("other").await);
    for (client, origin) in [(&acme, "https://play.acme.example"), (&other, "https://other.example:8443")] {
        client.patch("/v1/tenant", json!({ "origins": [origin] })).await.expect(200);
    }
    for origin in
        ["https://play.acme.example/", "play.acme.example", "ftp://x.example", "https://*.example", "null", ""]
    {
        acme.patch("/v1/tenant", json!({ "origins": [origin] })).await.problem(422, "validation_failed");
    }
    let preflight = async |origin: &str| {
        let request = server.anonymous().request(Method::OPTIONS, "/v1/campaigns").header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        server.anonymous().send(request.header("access-control-request-headers", "authorization")).await.expect(204)
    };
    // A preflight names no tenant: it is answered for the origins of all.
    for origin in ["https://play.acme.example", "https://other.example:8443"] {
        let answer = preflight(origin).await;
        assert_eq!(answer.header("access-control-allow-origin"), origin);
        assert!(answer.header("access-control-allow-methods").contains("PATCH"));
        let headers = answer.header("access-control-allow-headers");
        for needed in ["authorization", "content-type", "idempotency-key", "if-match", "if-none-match"] {
            assert!(headers.contains(needed), "{headers}");
        }
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
    for origin in ["https://evil.example", "http://play.acme.example", "https://play.acme.example.evil.example", "null"]
    {
        let answer = preflight(origin).await;
        assert_eq!((answer.header("access-control-allow-origin"), answer.header("vary")), ("", "Origin"), "{origin}");
    }
    // The answer itself is for the caller's own tenant's origins.
    let get = async |client: &Client<'_>, path: &str, origin: &str| {
        client.send(client.request(Method::GET, path).header("origin", origin)).await
    };
    for (client, origin) in [(&acme, "https://play.acme.example"), (&other, "https://other.example:8443")] {
        let told = async || get(client, "/v1/campaigns", origin).await.header("access-control-allow-origin") == origin;
        until("what is known of the tenant to be new", told).await;
    }
    for (client, own, not) in [
        (&acme, "https://play.acme.example", "https://other.example:8443"),
        (&other, "https://other.example:8443", "https://play.acme.example"),
    ] {
        for (path, status) in [("/v1/campaigns", 200), ("/v1/campaigns/none", 404), ("/v1/campaigns?limit=0", 400)] {
            let answer = get(client, path, own).await.expect(status);
            assert_eq!(answer.header("access-control-allow-origin"), own, "{path}");
            assert!(answer.header("access-control-expose-headers").contains("etag"), "{path}");
            assert_eq!(get(client, path, not).await.header("access-control-allow-origin"), "", "{path}");
        }
    }
    // Without a caller the server knows no tenant.
    let nobody = server.anonymous();
    for (origin, allowed) in [
        ("https://play.acme.example", "https://play.acme.example"),
        ("https://other.example:8443", "https://other.example:8443"),
        ("https://evil.example", ""),
    ] {
        let answer = get(&nobody, "/v1/campaigns", origin).await.expect(401);
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
    }
}

/// What the game master wrote for themselves, and what others said in private.
const SECRETS: [&str; 7] = [
    "smugglers-dig",
    "bob-is-a-spy",
    "council-plots",
    "whisper-to-gm",
    "whisper-to-mallory",
    "blind-roll",
    "bob-fears-mallory",
];

#[tokio::test(flavor = "multi_thread")]
async fn players_see_no_secrets() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lore = json!({ "title": "Tunnels", "scope": "global", "content": "smugglers-dig", "secret": true, "known_by": ["innkeeper_bob"] });
    let lore = world.post("/lore", lore).await.expect(201);
    world
        .patch(
            "/npcs/innkeeper_bob",
            json!({ "personality_prompt": "bob-is-a-spy", "extensions": { "note": "bob-is-a-spy" } }),
        )
        .await
        .expect(200);
    world.patch("/owners/town_council_owner", json!({ "personality_prompt": "council-plots" })).await.expect(200);
    let say = async |body: Value| world.post("/messages", body).await.expect(201).id();
    say(json!({ "content": "For all to hear." })).await;
    let own = say(json!({ "content": "To alice.", "whisper_to": ["player_alice"] })).await;
    say(json!({ "content": "Of alice.", "player_id": "player_alice", "whisper_to": ["gm"] })).await;
    let hidden = [
        say(json!({ "content": "whisper-to-gm", "player_id": "player_mallory", "whisper_to": ["gm"] })).await,
        say(json!({ "content": "whisper-to-mallory", "whisper_to": ["player_mallory"] })).await,
        say(json!({ "content": "blind-roll", "type": "roll", "player_id": "player_alice", "blind": true })).await,
    ];
    let memory = json!({ "player_id": "player_mallory", "text": "bob-fears-mallory" });
    let memory = world.post("/npcs/innkeeper_bob/memories", memory).await.expect(201);
    let about_alice = world.get("/memories?player_id=player_alice").await.expect(200).items().clone();

    let alice = tenant.token(json!({ "campaign": "port-town", "player_id": "player_alice" })).await;
    let reader = tenant.with_scopes(&[Scope::Read, Scope::Play]).await;
    let mut read = String::new();
    for path in [
        "",
        "/lore",
        "/lore?secret=true",
        "/lore?q=smugglers",
        "/npcs",
        "/npcs/innkeeper_bob",
        "/owners",
        "/owners/town_council_owner",
        "/messages",
        "/messages?q=whisper",
        "/messages?type=roll",
        "/memories",
        "/memories?player_id=player_mallory",
        "/memories?q=fears",
        "/npcs/innkeeper_bob/memories",
        "/npcs/innkeeper_bob/memories?player_id=player_mallory",
        "/characters",
        "/scenes",
    ] {
        read += &alice.get(&world.path(path)).await.expect(200).text;
    }
    for secret in SECRETS {
        assert!(!read.contains(secret), "a player read {secret}");
    }
    for member in ["personality_prompt", "available_tools", "known_by"] {
        assert!(!read.contains(&format!("\"{member}\"")), "a player saw {member}");
    }
    let heard = alice.get(&world.path("/messages")).await.expect(200);
    let heard: Vec<_> = heard.items().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(heard, ["For all to hear.", "To alice.", "Of alice."]);
    assert_eq!(alice.get(&world.path("/memories")).await.expect(200).items(), &about_alice);
    alice.get(&world.path(&format!("/messages/{own}"))).await.expect(200);
    for id in &hidden {
        alice.get(&world.path(&format!("/messages/{id}"))).await.problem(404, "not_found");
    }
    alice.get(&world.path(&format!("/lore/{}", lore.id()))).await.problem(404, "not_found");
    alice.get(&world.path("/lore/tunnels")).await.problem(404, "not_found");
    alice.get(memory.header("location")).await.problem(404, "not_found");

    // A key without `gm` is nobody's game master, either.
    for path in ["/lore", "/lore?secret=true", "/lore?q=smugglers", "/messages"] {
        let seen = reader.get(&world.path(path)).await.expect(200);
        for secret in ["smugglers-dig", "whisper-to-gm", "whisper-to-mallory", "blind-roll", "To alice."] {
            assert!(!seen.text.contains(secret), "{path}: {secret}");
        }
    }
    let master = tenant.with_scopes(&[Scope::Read, Scope::Gm]).await;
    assert_eq!(master.get(&world.path("/messages")).await.expect(200).items().len(), 6);
    master.get(&world.path("/lore/tunnels")).await.expect(200);
}
