//! Lore and memories: forms by plain HTTP, and the same by a person with a browser; two who write at once.

use edge::users::Role;
use serde_json::json;

use super::{EMAIL, Visitor, field, sign_in};
use crate::support::{Server, browser::Browser};

const HOSTILE: &str = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script> [a](javascript:alert(1)) ![p](http://evil.example/p.png) [[<b>x</b>]]";

/// The fields of a page's form for a lore entry, as they would be sent, with some changed.
fn sent<'a>(page: &'a str, changed: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = [
        "title",
        "associated_id",
        "tags",
        "keys",
        "secondary_keys",
        "scan_depth",
        "priority",
        "known_by",
        "slug",
        "external_ref",
        "version",
    ]
    .iter()
    .map(|name| ((*name).to_owned(), unescaped(&field(page, name))))
    .collect();
    let content = page
        .split_once("name=\"content\"")
        .unwrap()
        .1
        .split_once(">\n")
        .unwrap()
        .1
        .split("</textarea>")
        .next()
        .unwrap();
    fields.push(("content".to_owned(), unescaped(content)));
    fields.extend(
        [("scope", "global"), ("activation", "always"), ("logic", "and_any"), ("enabled", "true")]
            .map(|(n, v)| (n.to_owned(), v.to_owned())),
    );
    for (name, value) in changed {
        fields.retain(|(known, _)| known != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    fields
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&#60;", "<").replace("&#62;", ">").replace("&#34;", "\"").replace("&#39;", "'");
    text.replace("&#38;", "&")
}

async fn post(visitor: &Visitor, path: &str, fields: &[(String, String)]) -> crate::support::Answer {
    let fields: Vec<(&str, &str)> = fields.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    visitor.post(path, &fields).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_is_made_changed_and_deleted_without_script() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let new = mara.get("/admin/c/port-town/lore/new").await.expect(200).text;
    let form_id = field(&new, "form_id");
    let fields = [
        ("form_id", form_id.as_str()),
        ("title", HOSTILE),
        ("scope", "zone"),
        ("associated_id", "Harbour"),
        ("content", HOSTILE),
        ("tags", "sea\ndark"),
        ("activation", "keyword"),
        ("keys", "gull\n Paris, France \n\ntern"),
        ("logic", "and_any"),
        ("scan_depth", "2"),
        ("priority", "5"),
        ("secret", "true"),
        ("known_by", "innkeeper_bob"),
    ];
    let short: Vec<_> =
        fields.iter().copied().filter(|(name, _)| *name != "title").chain([("title", "Gulls")]).collect();
    let lore = "/admin/c/port-town/lore";
    // A line is at most 200 characters; what was written stays.
    let long =
        mara.post(lore, &[("title", &"x".repeat(201)), ("content", "kept"), ("scope", "zone")]).await.expect(422).text;
    assert!(long.contains("This cannot be saved yet") && long.contains("kept"), "{long}");
    let made = mara.post(lore, &short).await.expect(303);
    let path = made.header("location").to_owned();
    assert_eq!(mara.post(lore, &short).await.expect(303).header("location"), path, "sent twice, there is one");
    let entry = world.get("/lore/gulls").await.expect(200).body;
    assert_eq!(
        (&entry["enabled"], &entry["secret"], &entry["tags"]),
        (&json!(false), &json!(true), &json!(["sea", "dark"]))
    );
    assert_eq!(
        (&entry["keys"], &entry["known_by"][0]),
        (&json!(["gull", "Paris, France", "tern"]), &world.get("/npcs/innkeeper_bob").await.body["id"])
    );
    let page = mara.get(&path).await.expect(200).text;
    assert!(
        !page.contains("<img")
            && !page.contains("<script>d")
            && !page.contains("href=\"javascript")
            && !page.contains("<b>x"),
        "{page}"
    );
    assert_eq!(field(&page, "known_by"), "innkeeper_bob");
    let saved = post(
        &mara,
        &path,
        &sent(
            &page,
            &[
                ("scope", "zone"),
                ("activation", "keyword"),
                ("secret", "true"),
                ("title", "Gulls & terns"),
                ("content", "See [[The Reach]]."),
            ],
        ),
    )
    .await;
    assert_eq!(saved.status, 303, "{}", saved.text);
    assert!(saved.header("location").contains("?renamed=Gulls"));
    let page = mara.get(&path).await.expect(200).text;
    assert!(page.contains("<a href=\"/admin/c/port-town/lore/") && page.contains(">The Reach</a>"), "{page}");
    // A form that was not touched sends words as they are.
    assert_eq!(field(&page, "keys"), "gull\nParis, France\ntern");
    assert_eq!(world.get("/lore/gulls").await.body["keys"], json!(["gull", "Paris, France", "tern"]));
    let list = mara.get(&format!("{lore}?q=reach&tag=dark")).await.expect(200).text;
    assert!(list.contains("Gulls &#38; terns") && list.contains("<b>1</b> entry"), "{list}");
    for query in ["scope=zone&associated_id=harbour", "sort=-tokens", "state=nonsense"] {
        mara.get(&format!("{lore}?{query}")).await.expect(200);
    }
    // The gulls are secret, the reach is not and is switched off.
    world.patch("/lore/gulls", json!({ "enabled": true })).await.expect(200);
    world.patch("/lore/the_reach", json!({ "enabled": false })).await.expect(200);
    for (state, is_of_gulls) in [("secret", true), ("open", false), ("disabled", false), ("enabled", true)] {
        let list = mara.get(&format!("{lore}?state={state}")).await.expect(200).text;
        assert_eq!(list.contains(">Gulls &#38; terns</a>"), is_of_gulls, "{state}: {list}");
        assert_eq!(list.contains(">The Reach</a>"), !is_of_gulls, "{state}: {list}");
    }
    let copy = mara.post(&format!("{path}/duplicate"), &[]).await.expect(303).header("location").to_owned();
    assert!(mara.get(&copy).await.expect(200).text.contains("Gulls &#38; terns (copy)"));
    let ask = mara.get(&format!("{path}/delete")).await.expect(200).text;
    mara.post(&format!("{path}/delete"), &[("version", &field(&ask, "version"))]).await.expect(303);
    mara.get(&path).await.expect(404);
    // It is brought back from where it was deleted.
    let tidy = mara.get(&format!("{lore}/tidy")).await.expect(200).text;
    let action =
        tidy.split("action=\"").find(|part| part.contains("/history/")).unwrap().split('"').next().unwrap().to_owned();
    mara.post(&action, &[]).await.expect(303);
    assert!(mara.get(&path).await.expect(200).text.contains("Gulls"));
    // A viewer sees neither secrets nor forms that can be sent.
    let mut viewer = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    assert!(!viewer.get(lore).await.expect(200).text.contains("Gulls"));
    viewer.get(&path).await.expect(404);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_entries_are_previewed_changed_and_undone_by_forms() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    world.patch("/lore/the_square", json!({ "content": HOSTILE })).await.expect(200);
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let lore = "/admin/c/port-town/lore";
    let form = mara.get(&format!("{lore}/bulk?all=1&scope=zone")).await.expect(200).text;
    assert!(form.contains("<b>2</b> entries"), "{form}");
    let base = [
        ("all", "1"),
        ("filters", "scope=zone"),
        ("in", "content"),
        ("find", "broken"),
        ("with", "<i>whole</i>"),
        ("tags_add", "new\nParis, France"),
    ];
    let preview: Vec<_> = base.iter().copied().chain([("do", "preview")]).collect();
    let page = mara.post(&format!("{lore}/bulk"), &preview).await.expect(200).text;
    assert!(
        page.contains("<b>2</b> of 2 would change") && !page.contains("<i>whole") && !page.contains("<img"),
        "{page}"
    );
    assert_eq!(world.get("/lore/the_square").await.body["tags"], json!([]));
    // What nobody saw is shown before it is done: other fields, or entries that somebody changed.
    let digest = field(&page, "previewed");
    let other = [("find", "cold"), ("with", "warm"), ("do", "run"), ("previewed", digest.as_str())];
    let other: Vec<_> = base[..3].iter().copied().chain(other).collect();
    let shown = mara.post(&format!("{lore}/bulk"), &other).await.expect(200).text;
    assert!(shown.contains("this is not what you saw before") && shown.contains("value=\"run\""), "{shown}");
    world.patch("/lore/the_square", json!({ "priority": 7 })).await.expect(200);
    let run: Vec<_> = base.iter().copied().chain([("do", "run"), ("previewed", &digest)]).collect();
    let shown = mara.post(&format!("{lore}/bulk"), &run).await.expect(200).text;
    assert!(shown.contains("this is not what you saw before"), "{shown}");
    assert_eq!(world.get("/lore/the_square").await.body["tags"], json!([]));
    let digest = field(&shown, "previewed");
    let run: Vec<_> = base.iter().copied().chain([("do", "run"), ("previewed", &digest)]).collect();
    let step = mara.post(&format!("{lore}/bulk"), &run).await.expect(303).header("location").to_owned();
    assert_eq!(world.get("/lore/the_square").await.body["tags"], json!(["new", "Paris, France"]));
    assert!(mara.get(&step).await.expect(200).text.contains("<b>2</b> entries were changed"));
    // Somebody changes one of them: nothing is undone.
    let before = world.get("/lore/the_square").await.body["content"].clone();
    world.patch("/lore/the_square", json!({ "content": "Mine." })).await.expect(200);
    let refused = mara.post(&format!("{step}/undo"), &[]).await.expect(409).text;
    assert!(refused.contains(">The square</a>: `content` was changed after the step."), "{refused}");
    world.patch("/lore/the_square", json!({ "content": before })).await.expect(200);
    let undone = mara.post(&format!("{step}/undo"), &[]).await.expect(303).header("location").to_owned();
    assert_eq!(world.get("/lore/the_square").await.body["content"], HOSTILE);
    mara.post(&format!("{undone}/undo"), &[]).await.expect(303);
    assert_eq!(world.get("/lore/the_square").await.body["tags"], json!(["new", "Paris, France"]));
    for (fields, says) in [
        (&[("ids", "the_reach"), ("do", "preview")][..], "Give at least one change."),
        (
            &[("ids", "the_reach"), ("find", "("), ("in", "content"), ("regex", "1"), ("do", "run")],
            "not a valid regular expression",
        ),
        (&[("ids", "the_reach"), ("priority", "x"), ("do", "run")], "Write a number."),
        (&[("ids", "nobody"), ("enabled", "no"), ("do", "run")], "no such lore entry"),
    ] {
        let page = mara.post(&format!("{lore}/bulk"), fields).await.expect(422).text;
        assert!(page.contains(says), "{says}: {page}");
    }
    // What would break a rule is refused also after it was seen.
    let wrong = [("ids", "the_reach"), ("scope", "zone"), ("do", "run")];
    let page = mara.post(&format!("{lore}/bulk"), &wrong).await.expect(200).text;
    assert!(page.contains("must have a name"), "{page}");
    let digest = field(&page, "previewed");
    let wrong: Vec<_> = wrong.into_iter().chain([("previewed", digest.as_str())]).collect();
    let page = mara.post(&format!("{lore}/bulk"), &wrong).await.expect(422).text;
    assert!(page.contains("must have a name"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memories_are_written_moved_and_taken_back_by_forms() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let list = "/admin/c/port-town/memories";
    world.patch("", json!({ "game_time": "second <i>day</i>" })).await.expect(200);
    let new = mara.get(&format!("{list}/new?holder_id=innkeeper_bob")).await.expect(200).text;
    assert_eq!(field(&new, "holder_id"), "innkeeper_bob");
    assert!(
        new.contains("value=\"second &#60;i&#62;day&#60;/i&#62;\""),
        "the campaign's game time is filled in: {new}"
    );
    let form_id = field(&new, "form_id");
    let wrong =
        mara.post(list, &[("holder_id", "nobody"), ("player_id", "player_alice"), ("text", "Kept <b>here</b>")]).await;
    assert!(wrong.expect(422).text.contains("Kept &#60;b&#62;here"));
    let fields = [
        ("form_id", form_id.as_str()),
        ("holder_id", "innkeeper_bob"),
        ("player_id", "player_alice"),
        ("text", HOSTILE),
        ("game_time", " first <i>day</i> "),
        ("pinned", "true"),
    ];
    let path = mara.post(list, &fields).await.expect(303).header("location").to_owned();
    assert_eq!(mara.post(list, &fields).await.expect(303).header("location"), path);
    let page = mara.get(&path).await.expect(200).text;
    assert!(page.contains("a person") && !page.contains("<img"), "{page}");
    assert!(page.contains("value=\"first &#60;i&#62;day&#60;/i&#62;\"") && page.contains(" checked"), "{page}");
    let listed = mara.get(list).await.expect(200).text;
    assert!(listed.contains(">pinned<") && listed.contains("first &#60;i&#62;day"), "{listed}");
    let version = field(&page, "version");
    let long = "x".repeat(121);
    let fields = [("version", version.as_str()), ("text", "Pays."), ("game_time", &long)];
    let wrong = mara.post(&path, &fields).await.expect(422).text;
    assert!(wrong.contains("at most 120 characters") && wrong.contains(&long), "{wrong}");
    mara.post(&path, &[("version", &version), ("text", "Pays her debts."), ("game_time", "third day")])
        .await
        .expect(303);
    let stored = world.get(&format!("/memories/{}", path.rsplit('/').next().unwrap())).await.expect(200).body;
    assert_eq!((&stored["game_time"], &stored["pinned"]), (&json!("third day"), &json!(false)));
    let told = mara.get(&format!("{path}/history")).await.expect(200).text;
    assert!(told.contains("Game time") && told.contains("Pinned") && !told.contains(">Seq<"), "{told}");
    let late = mara.post(&path, &[("version", &version), ("text", "Mine.")]).await.expect(409).text;
    assert!(
        late.contains("changed this while you were editing")
            && late.contains("<ins>debts.</ins>")
            && late.contains("Mine."),
        "{late}"
    );
    let version = field(&mara.get(&path).await.text, "version");
    mara.post(
        &format!("{path}/move"),
        &[("version", &version), ("holder_id", "nobody"), ("player_id", "player_alice")],
    )
    .await
    .expect(422);
    let to = [("version", version.as_str()), ("holder_id", "town_council_owner"), ("player_id", "player_alice")];
    mara.post(&format!("{path}/move"), &to).await.expect(303);
    let listed = mara.get(&format!("{list}?holder_id=town_council_owner&q=debts&source=editor")).await.expect(200).text;
    assert!(listed.contains("Pays her debts.") && listed.contains("Town Council (owner)"), "{listed}");
    // It is asked for first.
    assert!(mara.get(&path).await.text.contains(&format!("href=\"{path}/delete\"")));
    let ask = mara.get(&format!("{path}/delete")).await.expect(200).text;
    assert!(ask.contains("Delete this memory?") && ask.contains("Pays her debts."), "{ask}");
    mara.post(&format!("{path}/delete"), &[("version", &field(&ask, "version"))]).await.expect(303);
    mara.get(&path).await.expect(404);
    // A broadcast is one thing.
    let call = json!({
        "arguments": { "player_id": "player_alice", "memory_string": "An ally." },
        "actor": { "type": "owner", "id": "town_council_owner" },
    });
    world.post("/tools/OWNER_memorize_dependables", call).await.expect(200);
    let told = mara.get(&format!("{list}/broadcasts")).await.expect(200).text;
    assert!(told.contains("Heard by 1") && told.contains("Innkeeper Bob"), "{told}");
    let action =
        told.split("href=\"").find(|part| part.contains("/retract")).unwrap().split('"').next().unwrap().to_owned();
    let ask = mara.get(&action).await.expect(200).text;
    assert!(ask.contains("Retract this broadcast?") && ask.contains("An ally."), "{ask}");
    mara.post(&action, &[]).await.expect(303);
    mara.get(&action).await.expect(404);
    assert!(mara.get(&format!("{list}/broadcasts")).await.text.contains("No broadcasts found."));
    assert!(!world.get("/npcs/innkeeper_bob/memories").await.text.contains("An ally."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_says_who_and_what_and_writes_forward() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Editor).await;
    let id = world.patch("/lore/the_reach", json!({ "content": "A warm <i>sea</i>." })).await.expect(200).id();
    let path = format!("/admin/c/port-town/lore/{id}");
    let page = mara.get(&path).await.text;
    post(&mara, &path, &sent(&page, &[("content", "A warm shallow sea.")])).await.expect(303);
    let history = mara.get(&format!("{path}/history")).await.expect(200).text;
    assert!(history.contains("<ins>shallow") && history.contains("<del>&#60;i&#62;sea"), "{history}");
    assert!(
        history.contains("<b dir=\"auto\">test</b> imported it")
            && history.contains("<b dir=\"auto\">test</b> changed it"),
        "{history}"
    );
    let first =
        history.split("action=\"").filter(|part| part.contains("/history/")).last().unwrap().split('"').next().unwrap();
    mara.post(first, &[("version", "1")]).await.expect(412);
    let version = field(&history, "version");
    mara.post(first, &[("version", &version)]).await.expect(303);
    let now = world.get("/lore/the_reach").await.body;
    assert_eq!((&now["content"], &now["version"]), (&json!("The Reach is a cold sea."), &json!(4)));
    // Every kind has its history.
    for (kind, slug) in [("npcs", "innkeeper_bob"), ("owners", "town_council_owner"), ("characters", "player_alice")] {
        mara.get(&format!("/admin/c/port-town/{kind}/{slug}/history")).await.expect(200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_write_at_once_lose_nothing() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let other_password = server.user(tenant.tenant, "zoe@example.org", Role::Editor).await;
    let text = "First line.\n\nSecond line.\n\nThird line.\n";
    let id = world.patch("/lore/the_reach", json!({ "content": text })).await.expect(200).id();
    let url = format!("{}/admin/c/port-town/lore/{id}", server.url);
    let (Some(mara), Some(zoe)) = (Browser::open().await, Browser::open().await) else { return };
    sign_in(&mara, &server, EMAIL, &password).await;
    sign_in(&zoe, &server, "zoe@example.org", &other_password).await;
    mara.sees("h1", "Campaigns").await;
    zoe.sees("h1", "Campaigns").await;
    mara.goto(&url).await;
    zoe.goto(&url).await;
    // Zoe's page saves by itself.
    zoe.write("#tags", "sea").await;
    zoe.write("#content", "First line, by Zoe.\n\nSecond line.\n\nThird line, cold.\n").await;
    zoe.sees("#saved", "Saved").await;
    zoe.until("kept", "return document.querySelector('#version').value !== '2'").await;
    assert!(world.get("/lore/the_reach").await.text.contains("by Zoe"));
    // Mara's does not: it says so, and puts both together.
    mara.write("#title", "The Deep").await;
    mara.write("#content", "First line.\n\nSecond line, by Mara.\n\nThird line, warm.\n").await;
    mara.sees("#saved", "Somebody else changed this entry").await;
    assert!(!world.get("/lore/the_reach").await.text.contains("by Mara"));
    mara.click("#saved button").await;
    mara.sees("h1", "Merge").await;
    mara.sees(".alert", "zoe").await;
    mara.sees("main", "Taken from the other version, because you did not change it: Tags").await;
    mara.sees(".theirs-text", "line, cold.").await;
    assert_eq!(mara.value("#content").await, "First line, by Zoe.\n\nSecond line, by Mara.\n\nThird line, warm.\n");
    assert_eq!((mara.value("#title").await, mara.value("#tags").await), ("The Deep".to_owned(), "sea".to_owned()));
    mara.click("#entry .buttons button").await;
    mara.sees("[role=status]", "was saved").await;
    let now = world.get("/lore/the_reach").await.body;
    assert_eq!((&now["title"], &now["tags"]), (&json!("The Deep"), &json!(["sea"])));
    assert_eq!(now["content"], "First line, by Zoe.\n\nSecond line, by Mara.\n\nThird line, warm.\n");
    // Now Zoe is the slower one, and takes what is stored.
    zoe.write("#content", "Only mine.").await;
    zoe.click("#entry .buttons button").await;
    zoe.click("#saved button[name=merge]").await;
    zoe.sees("h1", "Merge").await;
    zoe.click("input[name=use-content][value=theirs]").await;
    zoe.click("#entry .buttons button").await;
    zoe.sees("[role=status]", "was saved").await;
    assert_eq!(world.get("/lore/the_reach").await.body["content"], now["content"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worldbuilder_edits_lore_in_a_browser() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..30 {
        let content = format!("The old bridge number {n}. {HOSTILE}");
        let tags = if n % 2 == 0 { json!(["even"]) } else { json!([]) };
        world
            .post(
                "/lore",
                json!({ "title": format!("Bridge {n:02}"), "scope": "global", "content": content, "tags": tags }),
            )
            .await
            .expect(201);
    }
    world
        .post(
            "/lore",
            json!({ "title": "Guide", "scope": "global", "content": "[[Bridge 00]] and [[bridge 00|that]]" }),
        )
        .await
        .expect(201);
    let password = server.user(tenant.tenant, EMAIL, Role::Editor).await;
    let Some(browser) = Browser::open().await else { return };
    sign_in(&browser, &server, EMAIL, &password).await;
    browser.sees("h1", "Campaigns").await;
    browser.goto(&format!("{}/admin/c/port-town/lore", server.url)).await;
    browser.sees(".totals", "35 entries").await;
    // Words and a filter change the rows alone; a tag's list is fetched when it is needed.
    let press = |keys: &'static str| format!("dispatchEvent(new KeyboardEvent('keydown', {keys}))");
    browser.js(&press("{ key: '/', bubbles: true, cancelable: true }")).await;
    assert_eq!(browser.js("return document.activeElement.id").await, "q");
    browser.write("#q", "brid").await;
    browser.sees(".totals", "31 entries").await;
    browser.click("#tag").await;
    browser.until("tags", "return document.querySelector('#tags option[value=even]')").await;
    browser.write("#tag", "even").await;
    browser.js("document.activeElement.blur()").await;
    browser.sees(".totals", "15 entries").await;
    // By keys through the list.
    for key in [
        "{ key: 'j', bubbles: true }",
        "{ key: 'x', bubbles: true }",
        "{ key: 'j', bubbles: true }",
        "{ key: 'j', bubbles: true }",
        "{ key: 'k', bubbles: true }",
        "{ key: 'x', bubbles: true }",
    ] {
        browser.js(&press(key)).await;
    }
    assert_eq!(
        browser.js("return [...document.querySelectorAll('[name=ids]:checked')].map((b) => b.ariaLabel)").await,
        json!(["Bridge 00", "Bridge 02"])
    );
    browser.js(&press("{ key: '?', bubbles: true, cancelable: true }")).await;
    browser.sees("dialog", "the next row").await;
    browser.click("dialog button").await;
    browser.until("closed", "return !document.querySelector('dialog')").await;
    // The ticked are edited: a preview first, then the edit, then the way back.
    browser.click("button[name=chosen]").await;
    browser.sees("h1", "Edit many entries").await;
    browser.write("#find", "old").await;
    browser.write("#with", "ancient").await;
    browser.click("button[value=preview]").await;
    browser.sees("#preview", "2 of 2 would change").await;
    assert_eq!(browser.text("#preview ins").await.trim(), "ancient");
    browser.click("button[value=run]").await;
    browser.sees("[role=status]", "Entries changed: 2.").await;
    assert!(world.get("/lore/bridge_02").await.text.contains("ancient"));
    browser.click("main form button").await;
    browser.sees("[role=status]", "was undone").await;
    assert!(!world.get("/lore/bridge_02").await.text.contains("ancient"));
    // One entry: preview and tokens while it is written, saved by itself, then renamed with its links.
    let id = world.get("/lore/bridge_00").await.id();
    browser.goto(&format!("{}/admin/c/port-town/lore/{id}", server.url)).await;
    let (tokens, version) = (browser.text("#tokens").await, browser.value("#version").await);
    browser.sees(".side", "Guide").await;
    browser.write("#content", "A **stone** bridge over [[The Reach]], not [[nowhere]].").await;
    browser.sees("#preview strong", "stone").await;
    browser.until("a link", "return document.querySelectorAll('#preview a').length === 1").await;
    browser.until("tokens", format!("return document.querySelector('#tokens').textContent !== '{tokens}'")).await;
    browser.sees("#saved", "Saved").await;
    browser.until("stored", format!("return document.querySelector('#version').value !== '{version}'")).await;
    assert!(world.get("/lore/bridge_00").await.text.contains("stone"));
    browser.write("#title", "The Stone Bridge").await;
    browser.js(&press("{ key: 's', ctrlKey: true, bubbles: true, cancelable: true }")).await;
    browser.sees("#renamed", "1 entry links to Bridge 00").await;
    browser.sees("h1", "The Stone Bridge").await;
    assert_eq!(browser.js("return document.activeElement.id").await, "title", "one goes on where one was");
    browser.click("#renamed button").await;
    browser.sees("[role=status]", "Entries with updated links: 1.").await;
    assert_eq!(world.get("/lore/guide").await.body["content"], "[[The Stone Bridge]] and [[The Stone Bridge|that]]");
    browser.goto(&format!("{}/admin/c/port-town/lore/{id}/history", server.url)).await;
    browser.sees("ins", "The Stone").await;
    browser.goto(&format!("{}/admin/c/port-town/lore/bridge_04", server.url)).await;
    assert_eq!(browser.js("return document.title.includes('broken')").await, false);
    assert_eq!(browser.js("return document.querySelectorAll('main img, main script').length").await, 0);
}
