//! Forms without script: create, change, conflict, delete; hostile text; who the journal says did it.

use edge::users::Role;
use serde_json::json;

use super::{Visitor, field};
use crate::support::{Server, until};

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_made_changed_and_deleted_by_forms() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let kinds = [
        (
            "npcs",
            &[
                ("name", "Zed"),
                ("stats-hp", "12"),
                ("stats-max_hp", "12"),
                ("stats-attacks", r#"[{"name":"Bite","damage":"1d6"}]"#),
            ][..],
        ),
        ("owners", &[("name", "Zed"), ("monitored_aspect", "race"), ("associated_id", "elf")]),
        ("characters", &[("name", "Zed"), ("level", "3"), ("skill_proficiencies", "stealth\narcana")]),
        ("scenes", &[("name", "Zed"), ("active", "true")]),
    ];
    for (kind, fields) in kinds {
        let form = mara.get(&format!("/admin/c/port-town/{kind}/new")).await.expect(200).text;
        let form_id = field(&form, "form_id");
        let mut all = vec![("form_id", form_id.as_str())];
        all.extend(fields);
        let list = format!("/admin/c/port-town/{kind}");
        let made = mara.post(&list, &all).await.expect(303);
        let path = made.header("location").to_owned();
        // Sent twice, there is one.
        assert_eq!(mara.post(&list, &all).await.expect(303).header("location"), path);
        assert_eq!(world.get(&format!("/{kind}?q=Zed")).await.items().len(), 1, "{kind}");
        let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
        let version = field(&page, "version");
        let sent: Vec<(String, String)> = fields_of(&page);
        let mut changed: Vec<(&str, &str)> = sent.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        changed.retain(|(name, _)| !matches!(*name, "form_token" | "name"));
        changed.push(("name", "Zed the Second"));
        let saved = mara.post(&path, &changed).await;
        assert_eq!((saved.status, saved.header("location")), (303, path.as_str()), "{kind}: {}", saved.text);
        let row = world.get(&format!("/{kind}/zed")).await.expect(200).body;
        assert_eq!(row["name"], "Zed the Second");
        assert_eq!(row["version"], 2, "{kind}");
        // The second to come sees both versions, and nothing is overwritten.
        let mut late = changed.clone();
        late.retain(|(name, _)| *name != "name");
        late.push(("name", "Zed the Late"));
        let conflict = mara.post(&path, &late).await.expect(409).text;
        assert!(
            conflict.contains("changed this while you were editing")
                && conflict.contains("Zed the Late")
                && conflict.contains("Zed the Second"),
            "{conflict}"
        );
        assert_eq!(field(&conflict, "version"), "2", "{version}");
        assert_eq!(world.get(&format!("/{kind}/zed")).await.body["name"], "Zed the Second");
        late.retain(|(name, _)| *name != "version");
        late.push(("version", "2"));
        mara.post(&path, &late).await.expect(303);
        assert_eq!(world.get(&format!("/{kind}/zed")).await.body["name"], "Zed the Late");
        // Deleted by who has seen what it is now.
        mara.post(&format!("{path}/delete"), &[("version", "2")]).await.expect(409);
        let ask = mara.get(&format!("{path}/delete")).await.expect(200).text;
        mara.post(&format!("{path}/delete"), &[("version", &field(&ask, "version"))]).await.expect(303);
        world.get(&format!("/{kind}/zed")).await.problem(404, "not_found");
    }
    let journal = tenant.get("/v1/campaigns/port-town/changes?after=0&limit=200").await.expect(200);
    let own: Vec<_> = journal.items().iter().filter(|c| !c["user_id"].is_null()).collect();
    assert_eq!(own.len(), 16, "{own:?}");
    assert!(own.iter().all(|c| c["actor"].is_null() && c["origin"] == "api"));
}

/// The fields of a page as a browser would send them back: of a list without a chosen option the first.
pub(super) fn fields_of(page: &str) -> Vec<(String, String)> {
    let unescaped = |text: &str| {
        text.replace("&#34;", "\"")
            .replace("&#39;", "'")
            .replace("&#60;", "<")
            .replace("&#62;", ">")
            .replace("&#38;", "&")
    };
    let form = page.split_once("class=\"world\"").unwrap().1.split("</form>").next().unwrap();
    let mut fields = Vec::new();
    let mut is_first = false;
    for tag in form.split('<').skip(1) {
        let name = tag.split_once("name=\"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned());
        let value = tag.split_once("value=\"").map(|(_, rest)| unescaped(rest.split('"').next().unwrap()));
        if tag.starts_with("input") && (!tag.contains("checkbox") || tag.contains(" checked")) {
            fields.extend(name.map(|name| (name, value.unwrap_or_default())));
        } else if tag.starts_with("textarea") {
            let text = tag.split_once('>').unwrap().1;
            fields.extend(name.map(|name| (name, unescaped(text.strip_prefix('\n').unwrap_or(text)))));
        } else if tag.starts_with("select") {
            fields.extend(name.map(|name| (name, String::new())));
        } else if tag.starts_with("option") && (is_first || tag.contains(" selected")) {
            fields.last_mut().unwrap().1 = value.unwrap_or_default();
        }
        is_first = tag.starts_with("select");
    }
    fields
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_kept_says_why_beside_its_field() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    for (kind, fields, id, why) in [
        ("npcs", &[("name", "")][..], "name", "This field is required."),
        ("npcs", &[("name", "Zed"), ("stats-hp", "lots")], "stats-hp", "Write a number."),
        ("npcs", &[("name", "Zed"), ("stats-attacks", "{")], "stats-attacks", "This is not JSON"),
        (
            "npcs",
            &[("name", "Zed"), ("stats-attacks", r#"[{"name":"Bite"}]"#)],
            "stats-attacks",
            "This field is required. (row 1, Damage)",
        ),
        ("npcs", &[("name", "Zed"), ("owner_ids", "nobody")], "owner_ids", "There is no such owner"),
        ("npcs", &[("name", "Zed"), ("slug", "innkeeper_bob")], "slug", "This slug is taken"),
        ("npcs", &[("name", "Zed"), ("slug", "Not A Slug")], "slug", "Must be 1 to 63"),
        ("characters", &[("name", "Zed"), ("level", "21")], "level", "20"),
        ("characters", &[("name", "Zed"), ("hp", "5"), ("max_hp", "2")], "hp", "Must be at most max_hp"),
        ("owners", &[("name", "Zed"), ("monitored_aspect", "race")], "associated_id", "This field is required."),
    ] {
        let page = mara.post(&format!("/admin/c/port-town/{kind}"), fields).await.expect(422).text;
        let at_field =
            page.split_once(&format!("id=\"{id}-error\">")).unwrap_or_else(|| panic!("{fields:?}: {page}")).1;
        assert!(at_field.split("</p>").next().unwrap().contains(why), "{fields:?}: {at_field}");
        assert!(page.contains(&format!("<a href=\"#{id}\">")), "{fields:?}: not in the summary");
        assert!(page.contains("aria-invalid=\"true\""));
    }
    assert_eq!(world.get("/npcs?q=Zed").await.items().len(), 0);
    // What a secret names stays, and the form says so.
    let secret =
        json!({ "title": "T", "scope": "global", "content": "C", "secret": true, "known_by": ["innkeeper_bob"] });
    world.post("/lore", secret).await.expect(201);
    let bob = world.get("/npcs/innkeeper_bob").await.body;
    let version = bob["version"].to_string();
    let path = format!("/admin/c/port-town/npcs/{}/delete", bob["id"].as_str().unwrap());
    let kept = mara.post(&path, &[("version", &version)]).await.expect(409);
    assert!(kept.text.contains("class=\"alert\""), "{}", kept.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn untouched_parts_of_a_row_stay_as_they_are() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let full = json!({
        "name": "Full", "spell_slots": { "1": { "max": 4, "remaining": 2 }, "2": { "max": 2, "remaining": 1 } },
        "extensions": { "vtt": { "x": [1, 2.5, null], "s": "<b>" } }, "spells": ["Fire Bolt", { "name": "Zap", "level": 1, "attack": "ranged", "damage": { "dice": "1d6" }, "x": [1] }], "inventory": [{ "rope": 1 }],
        "armor": { "name": "Leather", "weight": 10 }, "shield": "Buckler", "conditions": [{ "name": "prone", "until_rest": true }],
        "location": " odd  place ", "hit_dice": { "die": 8, "max": 3, "remaining": 2 }, "concentration": { "spell": "Bless" },
        "weapons": [{ "name": "Dagger \"<b>\"", "bonus": 1, "properties": ["light", "a, b"], "range": { "normal": 20, "long": 60 } }],
        "features": [{ "name": "Luck", "percentage": 7, "source": "Fate" }], "resources": [{ "name": "Ki", "max": 3, "remaining": 2 }],
        "effects": [{ "name": "Bless", "rounds_remaining": 3 }],
    });
    world.post("/characters", full).await.expect(201);
    let before = world.get("/characters/full").await.body;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/characters/{}", before["id"].as_str().unwrap());
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    let sent = fields_of(&page);
    let mut fields: Vec<(&str, &str)> = sent.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    fields.retain(|(name, _)| *name != "form_token" && !name.starts_with("spell_slots"));
    // A key that is taken out of an object is gone.
    fields.push(("spell_slots", r#"{ "1": { "max": 4, "remaining": 2 } }"#));
    mara.post(&path, &fields).await.expect(303);
    let mut after = world.get("/characters/full").await.body;
    assert_eq!(after["spell_slots"], json!({ "1": { "max": 4, "remaining": 2 } }));
    for name in ["spell_slots", "version", "updated_at"] {
        after[name] = before[name].clone();
    }
    assert_eq!(after, before);
}

/// Things with parts have a row each: what has a field is changed, what has none stays, and a row without its name is gone.
#[tokio::test(flavor = "multi_thread")]
async fn things_with_parts_are_edited_in_rows() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let zed = json!({ "name": "Zed", "spells": ["Fire Bolt", "Light"], "spell_slots": { "1": { "max": 4, "remaining": 2 } },
        "weapons": [{ "name": "Dagger", "range": { "normal": 20, "long": 60 } }, { "name": "Club" }],
        "inventory": ["rope", { "name": "torch", "quantity": 3, "lit": true }] });
    let id = world.post("/characters", zed).await.expect(201).id();
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/characters/{id}");
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    for list in ["srd-weapons", "srd-spells", "srd-armor", "srd-conditions"] {
        assert_eq!(page.matches(&format!("<datalist id=\"{list}\">")).count(), 1, "{list}");
    }
    assert!(page.contains("<option value=\"Magic Missile\">") && page.contains("list=\"srd-weapons\""), "{page}");
    let changes = [
        ("weapons-0-bonus", "1"),
        ("weapons-0-properties", "light, thrown ,finesse"),
        ("weapons-1-name", " "),
        ("weapons-2-name", "Longbow"),
        ("spells-1-name", ""),
        ("spells-2-name", "Zap"),
        ("spells-2-level", "0"),
        ("spells-2-attack", "ranged"),
        ("spell_slots-0-level", "2"),
        ("spell_slots-1-level", "3"),
        ("spell_slots-1-max", "1"),
        ("spell_slots-1-remaining", "1"),
        ("inventory-1-quantity", ""),
        ("inventory-2-name", "chalk"),
        ("armor-0-name", "Leather"),
        ("armor-0-proficient", "yes"),
        ("concentration-0-spell", "Light"),
    ];
    post(&mara, &path, &filled(&page, &changes)).await.expect(303);
    let now = world.get("/characters/zed").await.body;
    let dagger = json!({ "name": "Dagger", "bonus": 1, "properties": ["light", "thrown", "finesse"], "range": { "normal": 20, "long": 60 } });
    assert_eq!(now["weapons"], json!([dagger, { "name": "Longbow", "bonus": 0, "properties": [] }]));
    assert_eq!(now["spells"], json!(["Fire Bolt", { "name": "Zap", "level": 0, "attack": "ranged" }]));
    assert_eq!(now["spell_slots"], json!({ "2": { "max": 4, "remaining": 2 }, "3": { "max": 1, "remaining": 1 } }));
    assert_eq!(now["inventory"], json!(["rope", { "name": "torch", "lit": true }, "chalk"]));
    assert_eq!(now["armor"], json!({ "name": "Leather", "proficient": true }));
    assert_eq!(now["concentration"], json!({ "spell": "Light" }));
    // A wrong number is named with its row, and stays where it was written.
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    let wrong = post(&mara, &path, &filled(&page, &[("weapons-1-bonus", "lots")])).await.expect(422).text;
    assert!(wrong.contains("(row 2, Magic bonus)") && field(&wrong, "weapons-1-bonus") == "lots", "{wrong}");
    // An emptied single thing is gone. A list that rows cannot show is JSON.
    let emptied = [("armor-0-name", ""), ("concentration-0-spell", "")];
    post(&mara, &path, &filled(&page, &emptied)).await.expect(303);
    let many: Vec<_> = (0..30).map(|n| json!({ "name": format!("Thing {n}") })).collect();
    world.patch("/characters/zed", json!({ "inventory": many, "spells": [] })).await.expect(200);
    let now = world.get("/characters/zed").await.body;
    assert!(now["armor"].is_null() && now["concentration"].is_null(), "{now}");
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    assert!(field(&page, "inventory").contains("Thing 29") && !page.contains("inventory-rows"), "{page}");
    post(&mara, &path, &filled(&page, &[("name", "Zed")])).await.expect(303);
    assert_eq!(world.get("/characters/zed").await.body["version"], now["version"]);
    // Nothing is lost: neither a row without its name, nor one of two with the same key, nor a row of which only the key is written.
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    for (lost, field, why) in [
        (("weapons-2-dice", "1d6"), "weapons", "required. (row 3, Weapon)"),
        (("spell_slots-1-level", "2"), "spell_slots", "This is not JSON"),
        (("spell_slots-2-level", "9"), "spell_slots", "required. (9, "),
    ] {
        let refused = post(&mara, &path, &filled(&page, &[lost])).await.expect(422).text;
        let at_field = refused.split_once(&format!("id=\"{field}-error\">")).unwrap().1;
        assert!(at_field.split("</p>").next().unwrap().contains(why), "{lost:?}: {at_field}");
    }
    // What a field would not give back as it is, is JSON: two lines in a field for one, parts of parts, things without a name.
    let odd = json!({ "weapons": [{ "name": "Dagger", "properties": ["two\nlines"] }], "inventory": ["", "rope"], "concentration": { "spell": "Light" },
        "spells": [{ "name": "Zap", "level": 1, "attack": "none", "damage": { "dice": "1d6" } }],
        "features": [{ "name": "Luck", "description": "Once.\nTwice." }] });
    world.patch("/characters/zed", odd).await.expect(200);
    let now = world.get("/characters/zed").await.body;
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    for (list, has_rows) in
        [("weapons", false), ("inventory", false), ("spells", false), ("features", true), ("concentration", true)]
    {
        assert_eq!(page.contains(&format!("name=\"{list}-rows\"")), has_rows, "{list}");
    }
    // A browser sends a line's end in its own way.
    post(&mara, &path, &filled(&page, &[("features-0-description", "Once.\r\nTwice.")])).await.expect(303);
    assert_eq!(world.get("/characters/zed").await.body["version"], now["version"]);
    world.patch("/characters/zed", json!({ "spells": [] })).await.expect(200);
    // Whatever a row carries is JSON or nothing.
    for whole in ["{", "7", "[[[[", "\"x\"", "null"] {
        let odd = [("spells-rows", "1"), ("spells-0-name", "Light"), ("spells-0-whole", whole)];
        let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
        post(&mara, &path, &filled(&page, &odd)).await.expect(303);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn campaigns_are_made_changed_and_deleted_by_forms() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let made = mara.post("/admin/campaigns", &[("name", "The Isles"), ("form_id", "1")]).await.expect(303);
    assert_eq!(made.header("location"), "/admin/c/the-isles");
    let message =
        made.headers.get_all("set-cookie").iter().any(|c| c.to_str().unwrap().starts_with("tavernkeep_message="));
    assert!(message, "what was done is not told");
    let page = mara.get("/admin/c/the-isles/edit").await.expect(200).text;
    let mut fields = vec![("name", "The Isles"), ("slug", "isles"), ("description", "Fog.\r\nMore fog.")];
    let version = field(&page, "version");
    fields.push(("version", &version));
    assert_eq!(mara.post("/admin/c/the-isles/edit", &fields).await.expect(303).header("location"), "/admin/c/isles");
    assert_eq!(tenant.get("/v1/campaigns/isles").await.body["description"], "Fog.\nMore fog.");
    // What is stored already is saved; what is not would overwrite.
    mara.post("/admin/c/isles/edit", &fields).await.expect(303);
    fields.retain(|(name, _)| *name != "description");
    fields.push(("description", "Sun."));
    let late = mara.post("/admin/c/isles/edit", &fields).await.expect(409).text;
    assert!(late.contains("Somebody changed this") && late.contains("Sun.") && late.contains("More fog."), "{late}");
    // A model profile that does not exist is refused here as it is by the API.
    let named = [("name", "The Isles"), ("settings", "{ \"models\": { \"npc\": \"nobody\" } }"), ("version", "2")];
    let refused = mara.post("/admin/c/isles/edit", &named).await.expect(422).text;
    assert!(refused.contains("There is no model profile `nobody`."), "{refused}");
    mara.post("/admin/c/isles/delete", &[("version", "2")]).await.expect(422);
    mara.post("/admin/c/isles/delete", &[("version", "1"), ("repeat", "isles")]).await.expect(409);
    mara.post("/admin/c/isles/delete", &[("version", "2"), ("repeat", "isles")]).await.expect(303);
    tenant.get("/v1/campaigns/isles").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn htmx_gets_the_block_that_it_asks_for() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let ask = |target: &'static str| {
        mara.request("GET", "/admin/c/port-town/npcs?q=bob").header("hx-request", "true").header("hx-target", target)
    };
    let rows = mara.send(ask("rows")).await.expect(200).text;
    assert!(
        rows.contains("Innkeeper Bob") && !rows.contains("Ilse") && !rows.contains("<h1>") && !rows.contains("<html"),
        "{rows}"
    );
    let main = mara.send(ask("main")).await.expect(200).text;
    assert!(main.contains("<h1>") && !main.contains("<html"), "{main}");
    let restored = mara.send(ask("rows").header("hx-history-restore-request", "true")).await.expect(200).text;
    assert!(restored.contains("<!DOCTYPE html>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_alone_is_as_the_api_would_have_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    for (kind, more, members) in [
        ("npcs", &[][..], &["/stats", "/disposition", "/reaction_threshold"][..]),
        ("characters", &[], &["/size", "/abilities", "/hp", "/spellcasting_ability"]),
        ("scenes", &[], &["/width", "/tokens"]),
        ("owners", &[("monitored_aspect", "race"), ("associated_id", "elf")], &["/influence", "/reaction_threshold"]),
    ] {
        let mut wanted = json!({ "name": "Plain" });
        for (name, value) in more {
            wanted[*name] = (*value).into();
        }
        let plain = world.post(&format!("/{kind}"), wanted).await.expect(201).body;
        let form = mara.get(&format!("/admin/c/port-town/{kind}/new")).await.expect(200).text;
        let name = format!("Form {kind}");
        let filled = filled(&form, &[&[("name", name.as_str())], more].concat());
        post(&mara, &format!("/admin/c/port-town/{kind}"), &filled).await.expect(303);
        let made = world.get(&format!("/{kind}/form_{kind}")).await.expect(200).body;
        for member in members {
            assert_eq!(made.pointer(member), plain.pointer(member), "{kind}{member}");
        }
    }
}

/// The fields of a page's form with some filled in.
fn filled(page: &str, with: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut fields = fields_of(page);
    fields.retain(|(name, _)| name != "form_token" && with.iter().all(|(given, _)| given != name));
    fields.extend(with.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    fields
}

async fn post(visitor: &Visitor, path: &str, fields: &[(String, String)]) -> crate::support::Answer {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    visitor.post(path, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_grows_by_itself_is_not_written_back() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let influence = json!({ "current": 1.0, "max": 1000000.0, "regen_per_hour": 100000.0 });
    let id = world.patch("/owners/town_council_owner", json!({ "influence": influence })).await.expect(200).id();
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let path = format!("/admin/c/port-town/owners/{id}");
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    // Time passes while she writes.
    let now = |body: &serde_json::Value| body["influence"]["current"].as_f64().unwrap();
    let shown = field(&page, "influence-current").parse::<f64>().unwrap();
    until("some influence", async || now(&world.get("/owners/town_council_owner").await.body) > shown + 1.0).await;
    let before = now(&world.get("/owners/town_council_owner").await.body);
    let fields: Vec<_> = filled(&page, &[("description", "Grave.")]);
    post(&mara, &path, &fields).await.expect(303);
    let after = world.get("/owners/town_council_owner").await.body;
    assert_eq!(after["description"], "Grave.");
    assert!(now(&after) >= before, "{} of {before} is left", now(&after));
    // What she writes counts, also after something else was wrong with the form; it grows by less than one an hour from here.
    let slow = json!({ "current": 1.0, "max": 1000000.0, "regen_per_hour": 0.5 });
    world.patch("/owners/town_council_owner", json!({ "influence": slow })).await.expect(200);
    let page = mara.get(&format!("{path}/edit")).await.expect(200).text;
    let wrong = filled(&page, &[("influence-current", "7"), ("influence-max", "lots")]);
    let again = post(&mara, &path, &wrong).await.expect(422).text;
    post(&mara, &path, &filled(&again, &[("influence-max", "100")])).await.expect(303);
    let after = world.get("/owners/town_council_owner").await.body;
    assert!((7.0..8.0).contains(&now(&after)), "{}", now(&after));
}

/// A file that was looked at waits for an hour, and for its user alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_waits_for_an_hour() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let zoe = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let token = mara.token();
    let book = json!({ "entries": { "0": { "key": ["k"], "comment": "The fog", "content": "It is thick." } } });
    let body = format!(
        "--x\r\ncontent-disposition: form-data; name=\"form_token\"\r\n\r\n{token}\r\n--x\r\n\
         content-disposition: form-data; name=\"file\"; filename=\"book.json\"\r\n\r\n{book}\r\n--x--\r\n"
    );
    let mut db = server.owner().await;
    for (waited, status) in [("59 minutes", 303), ("61 minutes", 410)] {
        let look = mara.request("POST", "/admin/c/port-town/exchange/look");
        let look = look.header("content-type", "multipart/form-data; boundary=x").body(body.clone());
        let page = mara.send(look).await.expect(200).text;
        let waits = "UPDATE pending_import SET created_at = now() - $1::interval";
        sqlx::query(waits).bind(waited).execute(&mut db).await.unwrap();
        let pending = field(&page, "pending");
        let fields = [("pending", pending.as_str())];
        zoe.post("/admin/c/port-town/exchange/confirm", &fields).await.expect(410);
        mara.post("/admin/c/port-town/exchange/confirm", &fields).await.expect(status);
        world.get("/lore/the_fog").await.expect(if status == 303 { 200 } else { 404 });
        if status == 303 {
            world.delete("/lore/the_fog").await.expect(204);
        }
    }
}
