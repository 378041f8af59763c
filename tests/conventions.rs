//! What every kind of resource keeps to: creation, ETags, merge patches, slugs, references, lists, and the headers and
//! problems of every answer.

use std::collections::BTreeSet;

use base::{clock, error::Code};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use edge::http::patch::merge;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::{Answer, Client, Server, World};

/// A kind as a client meets it.
struct Kind {
    /// Where it is listed and created.
    list: &'static str,
    /// The member people know a row by.
    label: &'static str,
    /// Members a creation needs, with values for them.
    required: &'static [(&'static str, &'static str)],
    has_slug: bool,
    has_patch: bool,
    read_only: &'static [&'static str],
}

const ALWAYS_READ_ONLY: [&str; 5] = ["id", "campaign_id", "version", "created_at", "updated_at"];

const KINDS: &[Kind] = &[
    Kind {
        list: "/v1/campaigns",
        label: "name",
        required: &[("name", "Inland")],
        has_slug: true,
        has_patch: true,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/characters",
        label: "name",
        required: &[("name", "Carol")],
        has_slug: true,
        has_patch: true,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/npcs",
        label: "name",
        required: &[("name", "Dora")],
        has_slug: true,
        has_patch: true,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/owners",
        label: "name",
        required: &[("name", "Guild"), ("monitored_aspect", "faction"), ("associated_id", "guild")],
        has_slug: true,
        has_patch: true,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/lore",
        label: "title",
        required: &[("title", "Tides"), ("scope", "global"), ("content", "They turn.")],
        has_slug: true,
        has_patch: true,
        read_only: &["tokens"],
    },
    Kind {
        list: "/v1/campaigns/port-town/scenes",
        label: "name",
        required: &[("name", "The quay")],
        has_slug: true,
        has_patch: true,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/messages",
        label: "content",
        required: &[("content", "Ahoy.")],
        has_slug: false,
        has_patch: false,
        read_only: &[],
    },
    Kind {
        list: "/v1/campaigns/port-town/npcs/innkeeper_bob/memories",
        label: "text",
        required: &[("player_id", "player_alice"), ("text", "Pays well.")],
        has_slug: false,
        has_patch: true,
        read_only: &["holder", "player_id", "player_slug", "source", "broadcast_id", "author", "turn_id"],
    },
];

impl Kind {
    fn body(&self) -> Value {
        Value::Object(self.required.iter().map(|(k, v)| ((*k).to_owned(), json!(v))).collect())
    }
}

async fn with_if(client: &Client<'_>, method: Method, path: &str, header: (&str, &str), body: Option<Value>) -> Answer {
    let request = client.request(method, path).header(header.0, header.1);
    client.send(if let Some(body) = body { request.json(&body) } else { request }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_created_read_and_deleted() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for kind in KINDS {
        let made = tenant.post(kind.list, kind.body()).await.expect(201);
        let (id, path) = (made.id(), made.header("location").to_owned());
        assert!(path.starts_with("/v1/campaigns") && path.ends_with(&id), "{path}");
        assert_eq!((made.header("etag"), &made.body["version"]), ("\"v1\"", &json!(1)), "{path}");
        assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 7, "{path}");
        for stamp in ["created_at", "updated_at"] {
            let text = made.body[stamp].as_str().unwrap();
            base::clock::parse(text).unwrap();
            assert!(text.ends_with('Z'), "{path}: {text}");
        }
        assert!(made.body.get("tenant_id").is_none());

        let read = tenant.get(&path).await.expect(200);
        assert_eq!((&read.body, read.header("etag")), (&made.body, "\"v1\""), "{path}");
        assert_eq!(read.header("content-type"), "application/json");
        for known in ["\"v1\"", "*", "\"v7\", \"v1\"", "W/\"v1\"", "W/\"v7\",W/\"v1\""] {
            let same = with_if(&tenant, Method::GET, &path, ("if-none-match", known), None).await.expect(304);
            assert_eq!((same.text.as_str(), same.header("etag")), ("", "\"v1\""), "{path}");
        }
        for other in ["\"v2\"", "W/\"v2\"", "w/\"v1\"", "v1"] {
            with_if(&tenant, Method::GET, &path, ("if-none-match", other), None).await.expect(200);
        }
        let listed = tenant.get(&format!("{}?limit=200", kind.list)).await.expect(200);
        assert!(listed.items().contains(&read.body), "{path}");
        assert_eq!(listed.body["next_cursor"], Value::Null);

        for stale in ["\"v2\"", "\"\"", "v1", "W/\"v1\""] {
            let kept = with_if(&tenant, Method::DELETE, &path, ("if-match", stale), None).await;
            kept.problem(412, "precondition_failed");
        }
        let gone = with_if(&tenant, Method::DELETE, &path, ("if-match", "\"v1\""), None).await.expect(204);
        assert_eq!(gone.text, "");
        tenant.get(&path).await.problem(404, "not_found");
        tenant.delete(&path).await.problem(404, "not_found");
        if kind.has_patch {
            tenant.patch(&path, json!({})).await.problem(404, "not_found");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_changed_by_merge_patches() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for kind in KINDS.iter().filter(|k| k.has_patch) {
        let made = tenant.post(kind.list, kind.body()).await.expect(201);
        let path = made.header("location").to_owned();

        // What is absent stays; a value replaces; the version rises by one.
        let changed = tenant.patch(&path, json!({ kind.label: "Changed" })).await.expect(200);
        assert_eq!((changed.header("etag"), &changed.body[kind.label]), ("\"v2\"", &json!("Changed")), "{path}");
        for (member, value) in made.body.as_object().unwrap() {
            if ![kind.label, "version", "updated_at", "tokens"].contains(&member.as_str()) {
                assert_eq!(&changed.body[member], value, "{path}: {member}");
            }
        }
        assert_eq!(tenant.get(&path).await.expect(200).body, changed.body);

        // Null removes, at any depth.
        let set =
            json!({ "external_ref": "ref-1", "extensions": { "a": 1, "b": { "c": 2, "list": [1, { "x": null }] } } });
        tenant.patch(&path, set).await.expect(200);
        let kept = tenant.patch(&path, json!({ "extensions": { "a": null, "b": { "d": 3 } } })).await.expect(200);
        assert_eq!(kept.body["external_ref"], "ref-1");
        assert_eq!(kept.body["extensions"], json!({ "b": { "c": 2, "list": [1, { "x": null }], "d": 3 } }), "{path}");
        let nulled = tenant.patch(&path, json!({ "external_ref": null, "extensions": null })).await.expect(200);
        assert_eq!((&nulled.body["external_ref"], &nulled.body["extensions"]), (&Value::Null, &json!({})), "{path}");
        let missing = tenant.patch(&path, json!({ kind.label: null })).await.problem(422, "validation_failed");
        assert_eq!(
            (missing.pointers(), &missing.body["errors"][0]["code"]),
            (vec![format!("/{}", kind.label).as_str()], &json!("required"))
        );

        // Both media types are taken; anything but an object is not.
        let typed = tenant.request(Method::PATCH, &path).header("content-type", "application/merge-patch+json");
        tenant.send(typed.body("{}")).await.expect(200);
        for body in [json!([]), json!(null), json!("x"), json!(1)] {
            tenant.patch(&path, body).await.problem(422, "validation_failed");
        }

        // Preconditions.
        let now = tenant.get(&path).await.expect(200);
        let stale =
            with_if(&tenant, Method::PATCH, &path, ("if-match", "\"v1\""), Some(json!({ kind.label: "Lost" }))).await;
        stale.problem(412, "precondition_failed");
        assert_eq!(tenant.get(&path).await.expect(200).body, now.body);
        let tag = now.header("etag");
        with_if(&tenant, Method::PATCH, &path, ("if-match", tag), Some(json!({ kind.label: "Won" }))).await.expect(200);
        with_if(&tenant, Method::PATCH, &path, ("if-match", tag), Some(json!({ kind.label: "Late" })))
            .await
            .problem(412, "precondition_failed");
        with_if(&tenant, Method::PATCH, &path, ("if-match", "*"), Some(json!({}))).await.expect(200);

        // Members that are not the client's.
        for member in ALWAYS_READ_ONLY.iter().chain(kind.read_only) {
            for value in [json!("x"), Value::Null] {
                let refused = tenant.patch(&path, json!({ *member: value })).await.problem(422, "validation_failed");
                assert_eq!(refused.pointers(), [format!("/{member}")], "{path}");
                assert_eq!(refused.body["errors"][0]["code"], "read_only");
            }
        }
        let unknown = tenant.patch(&path, json!({ "nonsense": 1 })).await.problem(422, "validation_failed");
        assert_eq!(
            (unknown.pointers(), &unknown.body["errors"][0]["code"]),
            (vec!["/nonsense"], &json!("unknown_field"))
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn creation_names_what_is_missing_unknown_or_wrong() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    for kind in KINDS {
        let refuse = async |body: Value, pointer: &str, code: &str| {
            let answer = tenant.post(kind.list, body).await.problem(422, "validation_failed");
            assert_eq!(answer.pointers(), [pointer], "{}: {}", kind.list, answer.text);
            assert_eq!(answer.body["errors"][0]["code"], code, "{}: {}", kind.list, answer.text);
        };
        for (member, _) in kind.required {
            let mut body = kind.body();
            body.as_object_mut().unwrap().remove(*member);
            refuse(body, &format!("/{member}"), "required").await;
            let mut body = kind.body();
            body[*member] = json!(7);
            refuse(body, &format!("/{member}"), "invalid_value").await;
            let mut body = kind.body();
            body[*member] = Value::Null;
            refuse(body, &format!("/{member}"), "invalid_value").await;
        }
        let mut body = kind.body();
        body["nonsense"] = json!(1);
        refuse(body, "/nonsense", "unknown_field").await;
        let mut body = kind.body();
        body["a/b~c"] = json!(1);
        refuse(body, "/a~1b~0c", "unknown_field").await;
        for member in ["id", "version", "created_at"] {
            let mut body = kind.body();
            body[member] = json!("x");
            refuse(body, &format!("/{member}"), "unknown_field").await;
        }
        let mut body = kind.body();
        body[kind.label] = json!("");
        refuse(body, &format!("/{}", kind.label), "invalid_value").await;
        if kind.has_slug {
            for slug in
                ["", "UPPER", "_x", "-x", "a b", "a/b", "ä", &"x".repeat(64), "018f3c5e-0000-7000-8000-000000000000"]
            {
                let mut body = kind.body();
                body["slug"] = json!(slug);
                refuse(body, "/slug", "invalid_value").await;
            }
        }
    }
    // Pointers reach into nested values.
    let path = "/v1/campaigns/port-town/characters";
    for (body, pointer) in [
        (json!({ "name": "x", "abilities": { "strength": "strong" } }), "/abilities/strength"),
        (json!({ "name": "x", "abilities": { "luck": 3 } }), "/abilities/luck"),
        (json!({ "name": "x", "weapons": [{ "name": "Club" }, { "dice": "1d4" }] }), "/weapons/1/name"),
        (json!({ "name": "x", "spell_slots": { "1": { "max": 2 } } }), "/spell_slots/1/remaining"),
        (json!({ "name": "x", "hp": 11, "max_hp": 10 }), "/hp"),
        (json!({ "name": "x", "level": 21 }), "/level"),
    ] {
        let answer = tenant.post(path, body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{}", answer.text);
    }
}

/// The test cases of RFC 7396, appendix A: original, patch, result.
#[test]
fn merge_patches_are_those_of_the_rfc() {
    let cases = [
        (json!({ "a": "b" }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "b" }), json!({ "b": "c" }), json!({ "a": "b", "b": "c" })),
        (json!({ "a": "b" }), json!({ "a": null }), json!({})),
        (json!({ "a": "b", "b": "c" }), json!({ "a": null }), json!({ "b": "c" })),
        (json!({ "a": ["b"] }), json!({ "a": "c" }), json!({ "a": "c" })),
        (json!({ "a": "c" }), json!({ "a": ["b"] }), json!({ "a": ["b"] })),
        (json!({ "a": { "b": "c" } }), json!({ "a": { "b": "d", "c": null } }), json!({ "a": { "b": "d" } })),
        (json!({ "a": [{ "b": "c" }] }), json!({ "a": [1] }), json!({ "a": [1] })),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({ "a": "b" }), json!(["c"]), json!(["c"])),
        (json!({ "a": "foo" }), json!(null), json!(null)),
        (json!({ "a": "foo" }), json!("bar"), json!("bar")),
        (json!({ "e": null }), json!({ "a": 1 }), json!({ "e": null, "a": 1 })),
        (json!([1, 2]), json!({ "a": "b", "c": null }), json!({ "a": "b" })),
        (json!({}), json!({ "a": { "bb": { "ccc": null } } }), json!({ "a": { "bb": {} } })),
    ];
    for (mut target, patch, result) in cases {
        let case = format!("{target} + {patch}");
        merge(&mut target, patch);
        assert_eq!(target, result, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slugs_are_derived_from_names() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let slug = async |path: &str, name: &str| {
        let made = world.post(path, json!({ "name": name })).await.expect(201);
        let slug = made.body["slug"].as_str().unwrap().to_owned();
        assert_eq!(world.get(&format!("{path}/{slug}")).await.expect(200).id(), made.id(), "{name}");
        slug
    };
    assert_eq!(slug("/npcs", "  Grün, der Älte!  ").await, "grun_der_alte");
    assert_eq!(slug("/npcs", "Innkeeper  BOB").await, "innkeeper_bob_2");
    assert_eq!(slug("/characters", "Innkeeper Bob").await, "innkeeper_bob_3");
    assert_eq!(slug("/scenes", "Innkeeper Bob").await, "innkeeper_bob");
    assert_eq!(slug("/npcs", "!!!").await, "npc");
    assert_eq!(slug("/npcs", &"long ".repeat(39)).await.len(), 56);
    // What looks like an id would never be found as a slug.
    slug("/npcs", "0123456789abcdef0123456789abcdef").await;
    slug("/npcs", "01234567-89ab-cdef-0123-456789abcdef").await;
    let campaign = tenant.post("/v1/campaigns", json!({ "name": "Port Town" })).await.expect(201);
    assert_eq!(campaign.body["slug"], "port-town-2");
    let lore =
        world.post("/lore", json!({ "title": "The Reach", "scope": "global", "content": "x" })).await.expect(201);
    assert_eq!(lore.body["slug"], "the_reach_2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slug_is_taken_once() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let owner = |slug: &str| json!({ "slug": slug, "name": "x", "monitored_aspect": "race", "associated_id": "elf" });
    for taken in ["player_alice", "innkeeper_bob", "town_council_owner"] {
        world.post("/characters", json!({ "slug": taken, "name": "x" })).await.problem(409, "slug_taken");
        world.post("/npcs", json!({ "slug": taken, "name": "x" })).await.problem(409, "slug_taken");
        world.post("/owners", owner(taken)).await.problem(409, "slug_taken");
        world.patch("/npcs/harbour_ilse", json!({ "slug": taken })).await.problem(409, "slug_taken");
        // Lore and scenes have their own names.
        world.post("/scenes", json!({ "slug": taken, "name": "x" })).await.expect(201);
        world.post("/scenes", json!({ "slug": taken, "name": "x" })).await.problem(409, "slug_taken");
    }
    let lore = json!({ "slug": "the_reach", "title": "x", "scope": "global", "content": "x" });
    world.post("/lore", lore).await.problem(409, "slug_taken");
    tenant.post("/v1/campaigns", json!({ "slug": "port-town", "name": "x" })).await.problem(409, "slug_taken");
    World::make(&server.tenant("other").await, "port-town").await;

    // A slug given up is free again, also for another kind.
    world.patch("/npcs/harbour_ilse", json!({ "slug": "ilse" })).await.expect(200);
    world.get("/npcs/harbour_ilse").await.problem(404, "not_found");
    world.post("/characters", json!({ "slug": "harbour_ilse", "name": "x" })).await.expect(201);
    world.delete("/npcs/ilse").await.expect(204);
    world.post("/owners", owner("ilse")).await.expect(201);
    // Null asks for no other slug.
    let kept = world.patch("/characters/harbour_ilse", json!({ "slug": null })).await.expect(200);
    assert_eq!(kept.body["slug"], "harbour_ilse");
}

#[tokio::test(flavor = "multi_thread")]
async fn references_must_exist_and_hold_what_they_name() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let nobody = clock::id().to_string();
    let lore = |known_by: Value| json!({ "title": "x", "scope": "global", "content": "x", "secret": true, "known_by": known_by });
    for name in ["nobody", &nobody] {
        for (path, body, pointer) in [
            ("/npcs", json!({ "name": "x", "owner_ids": ["town_council_owner", name] }), "/owner_ids/1"),
            ("/lore", lore(json!([name])), "/known_by/0"),
            ("/messages", json!({ "content": "x", "player_id": name }), "/player_id"),
            ("/messages", json!({ "content": "x", "scene_id": name }), "/scene_id"),
            ("/messages", json!({ "content": "x", "whisper_to": [name] }), "/whisper_to/0"),
            ("/npcs/innkeeper_bob/memories", json!({ "player_id": name, "text": "x" }), "/player_id"),
            ("/npcs/innkeeper_bob/turns", json!({ "player_id": name, "action": "x" }), "/player_id"),
            ("/npcs/innkeeper_bob/prompt", json!({ "player_id": name, "action": "x" }), "/player_id"),
        ] {
            let answer = world.post(path, body).await.problem(422, "validation_failed");
            assert_eq!(answer.pointers(), [pointer], "{path}: {}", answer.text);
            assert_eq!(answer.body["errors"][0]["code"], "unknown_reference", "{path}");
        }
    }
    // A reference of the wrong kind is none.
    for (path, body) in [
        ("/npcs", json!({ "name": "x", "owner_ids": ["innkeeper_bob"] })),
        ("/lore", lore(json!(["the_reach"]))),
        ("/messages", json!({ "content": "x", "player_id": "innkeeper_bob" })),
    ] {
        world.post(path, body).await.problem(422, "validation_failed");
    }
    world.get("/npcs/player_alice").await.problem(404, "not_found");
    world.get("/owners/innkeeper_bob/memories").await.problem(404, "not_found");

    // An owner with NPCs stays until they are freed.
    world.delete("/owners/town_council_owner").await.problem(409, "referenced");
    world.patch("/npcs/innkeeper_bob", json!({ "owner_ids": [] })).await.expect(200);
    world.delete("/owners/town_council_owner").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_go_with_their_holder_and_their_subject() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let add = async |holder: &str, player: &str| {
        let made =
            world.post(&format!("/{holder}/memories"), json!({ "player_id": player, "text": "x" })).await.expect(201);
        made.header("location").to_owned()
    };
    let about_alice = add("npcs/harbour_ilse", "player_alice").await;
    let about_mallory = add("npcs/harbour_ilse", "player_mallory").await;
    let of_bob = add("npcs/innkeeper_bob", "player_mallory").await;
    let of_council = add("owners/town_council_owner", "player_mallory").await;
    world.delete("/characters/player_alice").await.expect(204);
    tenant.get(&about_alice).await.problem(404, "not_found");
    tenant.get(&about_mallory).await.expect(200);
    world.delete("/npcs/harbour_ilse").await.expect(204);
    tenant.get(&about_mallory).await.problem(404, "not_found");
    world.delete("/npcs/innkeeper_bob").await.expect(204);
    tenant.get(&of_bob).await.problem(404, "not_found");
    tenant.get(&of_council).await.expect(200);
    world.delete("/owners/town_council_owner").await.expect(204);
    assert!(world.get("/memories").await.expect(200).items().is_empty());

    // A campaign takes everything with it, and its slug is free.
    tenant.delete("/v1/campaigns/port-town").await.expect(204);
    for rest in ["", "/lore", "/characters/player_mallory", "/changes"] {
        world.get(rest).await.problem(404, "not_found");
    }
    tenant.world().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sheet_has_at_most_sixteen_kibibytes() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let sheet = |bytes: usize| json!({ "name": "x", "inventory": ["ü".repeat(bytes / 2)] });
    world.post("/characters", sheet(17 * 1024)).await.problem(413, "payload_too_large");
    let fits = world.post("/characters", sheet(15 * 1024)).await.expect(201);
    let path = format!("/characters/{}", fits.id());
    world.patch(&path, json!({ "features": [{ "name": "x".repeat(2048) }] })).await.problem(413, "payload_too_large");
    assert_eq!(world.get(&path).await.expect(200).body, fits.body);
    let large = json!({ "x": "x".repeat(64 * 1024) });
    for kind in KINDS.iter().filter(|k| !k.list.ends_with("memories") && !k.list.ends_with("characters")) {
        let mut body = kind.body();
        body["extensions"] = large.clone();
        let answer = tenant.post(kind.list, body).await.problem(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/extensions"], "{}", kind.list);
    }
}

/// Walks a list to its end while rows are added, and returns the ids in the order met.
async fn walk(tenant: &Client<'_>, path: &str, query: &str, add: impl AsyncFn()) -> Vec<String> {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for page in 0..500 {
        let answer = tenant.get(&format!("{path}?{query}{cursor}")).await.expect(200);
        seen.extend(answer.items().iter().map(|row| row["id"].as_str().unwrap().to_owned()));
        let Some(next) = answer.body["next_cursor"].as_str() else { return seen };
        assert!(!answer.items().is_empty());
        cursor = format!("&cursor={next}");
        if page < 4 {
            add().await;
        }
    }
    panic!("{path}?{query} has no end");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_have_no_gap_and_no_duplicate_while_rows_are_added() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let names = ["Ada", "ada", "Bea", "Bea", "Bea", "Ünal", "zoe", "Émile", "_", "Ada B", "2"];
    for (list, label) in [
        ("/v1/campaigns/port-town/npcs", "name"),
        ("/v1/campaigns/port-town/npcs/innkeeper_bob/memories", "text"),
        ("/v1/campaigns/port-town/messages", "content"),
    ] {
        let kind = KINDS.iter().find(|k| k.list == list).unwrap();
        let add = async |name: &str| {
            let mut body = kind.body();
            body[label] = json!(name);
            tenant.post(list, body).await.expect(201);
        };
        for name in names {
            add(name).await;
        }
        for sort in ["created_at", "-created_at", "updated_at", "-updated_at", "name", "-name"] {
            let whole = tenant.get(&format!("{list}?limit=200&sort={sort}")).await.expect(200);
            assert_eq!(whole.body["next_cursor"], Value::Null);
            for limit in [1, 3, 7] {
                let before = tenant.get(&format!("{list}?limit=200&sort={sort}")).await.expect(200);
                let before: Vec<_> = before.items().iter().map(|r| r["id"].as_str().unwrap().to_owned()).collect();
                let seen = walk(&tenant, list, &format!("sort={sort}&limit={limit}"), async || add("Bea").await).await;
                assert_eq!(
                    seen.iter().collect::<BTreeSet<_>>().len(),
                    seen.len(),
                    "{list} {sort} {limit}: a duplicate"
                );
                let again: Vec<_> = seen.into_iter().filter(|id| before.contains(id)).collect();
                assert_eq!(again, before, "{list} {sort} {limit}: a gap, or another order");
            }
        }
        let up = tenant.get(&format!("{list}?limit=200&sort=name")).await.expect(200);
        let mut down = tenant.get(&format!("{list}?limit=200&sort=-name")).await.expect(200).items().clone();
        down.reverse();
        assert_eq!(up.items(), &down, "{list}");
    }
    // Lists with an order of their own keep to it, too.
    for name in ["b", "a", "c"] {
        tenant.post("/v1/api-keys", json!({ "name": name, "scopes": ["read"] })).await.expect(201);
    }
    for (list, sort) in [("/v1/campaigns", "name"), ("/v1/api-keys", "created_at"), ("/v1/api-keys", "-created_at")] {
        let whole = tenant.get(&format!("{list}?limit=200&sort={sort}")).await.expect(200);
        let ids: Vec<_> = whole.items().iter().map(|r| r["id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(walk(&tenant, list, &format!("sort={sort}&limit=1"), async || {}).await, ids, "{list} {sort}");
        let mut sorted = ids.clone();
        sorted.sort();
        if sort.starts_with('-') {
            sorted.reverse();
        }
        assert!(sort == "name" || ids == sorted, "{list} {sort}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_good_for_its_list_only() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (path, sort) in [
        ("/npcs", "created_at"),
        ("/npcs", "updated_at"),
        ("/npcs", "name"),
        ("/memories", "created_at"),
        ("/memories", "updated_at"),
        ("/memories", "-name"),
    ] {
        let page = world.get(&format!("{path}?limit=1&sort={sort}")).await.expect(200);
        let cursor = page.body["next_cursor"].as_str().unwrap().to_owned();
        world.get(&format!("{path}?limit=2&sort={sort}&cursor={cursor}")).await.expect(200);
        for other in ["sort=-created_at", "sort=-updated_at", "q=bob", "updated_since=2026-01-01T00:00:00Z"] {
            world.get(&format!("{path}?limit=1&cursor={cursor}&{other}")).await.problem(400, "bad_request");
        }
        // Nor can it be made up.
        let plain: Value = serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(&cursor).unwrap()).unwrap();
        for (member, value) in
            [("v", json!("nonsense")), ("v", json!(7)), ("v", json!("a\0")), ("i", json!("x")), ("f", json!("x"))]
        {
            if (member, &value, sort) == ("v", &json!("nonsense"), "name")
                || (member, &value, sort) == ("v", &json!("nonsense"), "-name")
            {
                continue;
            }
            let mut forged = plain.clone();
            forged[member] = value;
            let forged = BASE64_URL_SAFE_NO_PAD.encode(forged.to_string());
            world.get(&format!("{path}?limit=1&sort={sort}&cursor={forged}")).await.problem(400, "bad_request");
        }
        for garbage in ["x", "", "e30", "bnVsbA", "%00"] {
            world.get(&format!("{path}?sort={sort}&cursor={garbage}")).await.problem(400, "bad_request");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let council = world.get("/owners/town_council_owner").await.expect(200).id();
    let alice = world.get("/characters/player_alice").await.expect(200).id();
    world.patch("/characters/player_alice", json!({ "player_name": "Ann" })).await.expect(200);
    world.patch("/npcs/harbour_ilse", json!({ "faction": "Guild" })).await.expect(200);
    let scene =
        world.post("/scenes", json!({ "name": "Quay", "active": true, "channel": "c1" })).await.expect(201).id();
    world.post("/scenes", json!({ "name": "Hall" })).await.expect(201);
    world
        .post("/messages", json!({ "content": "100% ale", "player_id": "player_alice", "scene_id": scene }))
        .await
        .expect(201);
    world.post("/messages", json!({ "content": "A roll", "type": "roll" })).await.expect(201);
    let secret = json!({ "title": "Tunnels", "scope": "zone", "associated_id": "Town Square", "content": "Smugglers dig.",
        "tags": ["crime", "below"], "secret": true, "activation": "keyword", "keys": ["dig"], "enabled": false });
    world.post("/lore", secret).await.expect(201);
    for (query, slugs) in [
        ("characters?player_name=Ann", vec!["player_alice"]),
        ("characters?location=starting_room&q=mall", vec!["player_mallory"]),
        ("characters?q=PLAYER_M", vec!["player_mallory"]),
        ("npcs?location=harbour", vec!["harbour_ilse"]),
        ("npcs?faction=Guild", vec!["harbour_ilse"]),
        (&format!("npcs?owner_id={council}"), vec!["innkeeper_bob"]),
        ("npcs?q=%25", vec![]),
        ("npcs?q=_bob", vec!["innkeeper_bob"]),
        ("npcs?q=innkeeper%20b", vec!["innkeeper_bob"]),
        ("owners?monitored_aspect=location", vec!["town_council_owner"]),
        ("owners?associated_id=Town%20SQUARE", vec!["town_council_owner"]),
        ("owners?monitored_aspect=race", vec![]),
        ("lore?scope=profession", vec!["the_adventurers"]),
        ("lore?associated_id=town-square&sort=name", vec!["the_square", "tunnels"]),
        ("lore?tag=crime", vec!["tunnels"]),
        ("lore?tag=cri", vec![]),
        ("lore?enabled=false", vec!["tunnels"]),
        ("lore?secret=true", vec!["tunnels"]),
        ("lore?activation=keyword", vec!["tunnels"]),
        ("lore?q=smugglers", vec!["tunnels"]),
        ("lore?q=smugglers%20blades", vec![]),
        ("lore?q=chain&scope=zone", vec!["the_harbour"]),
        ("scenes?active=true", vec!["quay"]),
        ("scenes?channel=c1", vec!["quay"]),
    ] {
        let answer = world.get(&format!("/{query}")).await.expect(200);
        assert_eq!(answer.items().iter().map(|r| r["slug"].as_str().unwrap()).collect::<Vec<_>>(), slugs, "{query}");
    }
    for (query, texts) in [
        (format!("messages?player_id={alice}"), vec!["100% ale"]),
        (format!("messages?scene_id={scene}"), vec!["100% ale"]),
        ("messages?type=roll".to_owned(), vec!["A roll"]),
        ("messages?q=ALE".to_owned(), vec!["100% ale"]),
        ("messages?q=0%25%20a".to_owned(), vec!["100% ale"]),
        ("messages?q=%25%25".to_owned(), vec![]),
        ("memories?player_id=player_mallory".to_owned(), vec![]),
        ("memories?holder_id=innkeeper_bob".to_owned(), vec!["Initial impression: Seems friendly."]),
        ("memories?holder_id=nobody".to_owned(), vec![]),
        ("memories?q=newcomer".to_owned(), vec!["Initial assessment: Newcomer, potential asset."]),
        ("memories?source=editor".to_owned(), vec![]),
        ("npcs/innkeeper_bob/memories?source=import".to_owned(), vec!["Initial impression: Seems friendly."]),
        ("npcs/innkeeper_bob/memories?holder_id=harbour_ilse".to_owned(), vec![]),
    ] {
        let answer = world.get(&format!("/{query}")).await.expect(200);
        let text = |row: &Value| row.get("text").or(row.get("content")).unwrap().as_str().unwrap().to_owned();
        assert_eq!(answer.items().iter().map(text).collect::<Vec<_>>(), texts, "{query}");
    }
    // Only what changed at or after a moment.
    let changed = world.patch("/npcs/innkeeper_bob", json!({ "disposition": "wary" })).await.expect(200);
    let since = changed.body["updated_at"].as_str().unwrap();
    let recent = world.get(&format!("/npcs?updated_since={since}")).await.expect(200);
    assert_eq!(recent.items(), std::slice::from_ref(&changed.body));
    assert_eq!(world.get("/npcs?updated_since=9999-12-31T23:59:59Z").await.expect(200).items().len(), 0);
    assert_eq!(world.get("/npcs?updated_since=0000-01-01T00:00:00Z").await.expect(200).items().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn query_parameters_are_known_and_in_bounds() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lists = KINDS.iter().map(|k| k.list).chain([
        "/v1/campaigns/port-town/memories",
        "/v1/campaigns/port-town/turns",
        "/v1/campaigns/port-town/dice/seeds",
        "/v1/dice/seeds",
        "/v1/api-keys",
    ]);
    for list in lists {
        let long = "q=".to_owned() + &"x".repeat(201);
        for bad in [
            "nonsense=1",
            "limit=0",
            "limit=201",
            "limit=-1",
            "limit=1.5",
            "limit=",
            "limit=99999999999999999999",
            "sort=size",
            "sort=--name",
            "sort=",
            "updated_since=yesterday",
            "updated_since=2026-01-01",
            "limit=1&limit=2",
            "q=a&q=b",
            "q=%00",
            "q=%ff",
            &long,
            "cursor=x",
            "LIMIT=1",
            "tenant_id=1",
        ] {
            tenant.get(&format!("{list}?{bad}")).await.problem(400, "bad_request");
        }
        for good in
            ["limit=1", "limit=200", "q=", "q=x", "sort=-created_at", "updated_since=2026-01-01T00:00:00%2B02:00"]
        {
            tenant.get(&format!("{list}?{good}")).await.expect(200);
        }
    }
    for bad in [
        "lore?secret=maybe",
        "lore?scope=moon",
        "turns?kind=song",
        "messages?type=shout",
        "messages?turn_id=x",
        "changes?after=-1",
        "changes?limit=0",
        "changes?limit=201",
        "changes?after=x",
        "changes?q=x",
    ] {
        world.get(&format!("/{bad}")).await.problem(400, "bad_request");
    }
    for bad in ["group_by=mood", "group_by=day,day", "from=yesterday", "nonsense=1"] {
        tenant.get(&format!("/v1/usage?{bad}")).await.problem(400, "bad_request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_with_those_allowed() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let message = world.post("/messages", json!({ "content": "x" })).await.expect(201).id();
    for (method, path, allowed) in [
        (Method::PUT, "/v1/campaigns".to_owned(), "GET, HEAD, POST, OPTIONS"),
        (Method::DELETE, "/v1/campaigns".to_owned(), "GET, HEAD, POST, OPTIONS"),
        (Method::POST, "/v1/campaigns/port-town".to_owned(), "GET, HEAD, PATCH, DELETE, OPTIONS"),
        (Method::PUT, world.path(&format!("/messages/{message}")), "GET, HEAD, PATCH, DELETE, OPTIONS"),
        (Method::GET, "/v1/auth/token".to_owned(), "POST, OPTIONS"),
    ] {
        let answer = tenant.send(tenant.request(method, &path)).await.problem(405, "method_not_allowed");
        assert_eq!(answer.header("allow"), allowed, "{path}");
        assert_eq!(answer.body["detail"], format!("This path accepts only {allowed}."), "{path}");
    }
    for path in [
        "/v1/nonsense",
        "/v1",
        "/v1/",
        "/v1/campaigns/port-town/nonsense",
        "/v1/campaigns/",
        "/v2/campaigns",
        "//",
        "/v1/campaigns/port-town/memories/not-an-id",
    ] {
        tenant.get(path).await.problem(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_names_its_request_and_the_rate() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let anonymous = server.anonymous();
    let uuid = clock::id().to_string();
    for (client, path, status) in [
        (&tenant, "/v1/campaigns", 200),
        (&tenant, "/v1/campaigns/none", 404),
        (&tenant, "/v1/campaigns?limit=0", 400),
        (&anonymous, "/v1/campaigns", 401),
        (&anonymous, "/healthz", 200),
        (&anonymous, "/docs", 200),
        (&anonymous, "/nonsense", 404),
    ] {
        let answer = client.get(path).await.expect(status);
        assert_eq!(Uuid::parse_str(answer.header("x-request-id")).unwrap().get_version_num(), 7, "{path}");
        let (policy, state) = (answer.header("ratelimit-policy"), answer.header("ratelimit"));
        assert!(policy.starts_with('"') && policy.contains(";q=") && policy.ends_with(";w=60"), "{path}: {policy}");
        assert!(state.starts_with('"') && state.contains(";r=") && state.contains(";t="), "{path}: {state}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        for kept in [uuid.as_str(), "abc-123", "Root=1-67891233/abc:d@e~f+g_h.i", &"x".repeat(128)] {
            let request = client.request(Method::GET, path).header("x-request-id", kept);
            let answer = client.send(request).await.expect(status);
            assert_eq!(answer.header("x-request-id"), kept, "{path}");
            if status >= 400 {
                assert_eq!(answer.body["request_id"], kept, "{path}");
                assert_eq!(answer.body["type"], format!("/problems/{}", answer.body["code"].as_str().unwrap()));
                assert_eq!(answer.body["status"], status);
                assert!(
                    !answer.body["title"].as_str().unwrap().is_empty()
                        && !answer.body["detail"].as_str().unwrap().is_empty()
                );
            }
        }
        for replaced in [
            "",
            "a b",
            &"x".repeat(129),
            "tab\there",
            "é",
            "a';DROP/**/TABLE/**/npc;--",
            "<b>",
            "a\"b",
            "${x}",
            "a%0ab",
            "a,b",
        ] {
            let request = client.request(Method::GET, path).header("x-request-id", replaced);
            let answer = client.send(request).await.expect(status);
            assert!(Uuid::parse_str(answer.header("x-request-id")).is_ok(), "{path}: {replaced}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_code_has_a_page() {
    let server = Server::start().await;
    let reader = server.anonymous();
    for code in Code::ALL {
        let page = reader.get(&format!("/problems/{}", code.as_str())).await.expect(200);
        assert!(page.header("content-type").starts_with("text/html"));
        assert!(page.text.contains(code.as_str()) && page.text.contains(&code.status().to_string()), "{}", page.text);
    }
    reader.get("/problems/nonsense").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn users_come_in_pages() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut all = Vec::new();
    for n in 0..3 {
        let user = json!({ "email": format!("user{n}@example.org"), "role": "viewer" });
        all.push(tenant.post("/v1/users", user).await.expect(201).id());
    }
    for limit in [1, 2, 3] {
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        for _ in 0..=all.len() {
            let page = tenant.get(&format!("/v1/users?sort=created_at&limit={limit}{cursor}")).await.expect(200);
            seen.extend(page.items().iter().map(|user| user["id"].as_str().unwrap().to_owned()));
            let Some(next) = page.body["next_cursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!(seen, all, "{limit} a page");
    }
}

/// What a scene's grid may be: the size of a square, or the frontend's own object with that.
#[tokio::test(flavor = "multi_thread")]
async fn a_grid_is_a_size_or_an_object() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let scene = world.post("/scenes", json!({ "name": "Quay" })).await.expect(201);
    assert_eq!(scene.body["grid"], json!({}));
    for grid in [
        json!(50),
        json!(0),
        json!(2.5),
        json!({}),
        json!({ "size": 50, "type": "hex", "offset": [1, 2] }),
        json!({ "size": null }),
    ] {
        let patched = world.patch("/scenes/quay", json!({ "grid": grid })).await.expect(200);
        assert!(patched.body["grid"] == grid || grid["size"].is_null(), "{}", patched.text);
    }
    for grid in [
        json!("50"),
        json!(true),
        json!([50]),
        json!(-1),
        json!(1_000_001),
        json!({ "size": "50" }),
        json!({ "size": {} }),
        json!({ "size": -5 }),
    ] {
        let refused =
            world.post("/scenes", json!({ "name": "Hall", "grid": grid })).await.problem(422, "validation_failed");
        assert!(refused.pointers()[0].starts_with("/grid"), "{}", refused.text);
    }
}
