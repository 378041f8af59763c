//! The story so far: pages and files, and older lines at the table.

use edge::users::Role;
use rehearsal::{Reply, Script};
use serde_json::json;

use super::{ALICE, Guest, MALLORY, says, sit_down, token};
use crate::{
    admin::{Visitor, words},
    support::{Server, World},
};

const STORY: &str = "/play/port-town/story";

/// What was said one evening, and to whom.
async fn told(world: &World<'_>) {
    world.client.server.model.set_script(Script::always(Reply::text("*nods* \"Sit, [friend](http://e.test).\"")));
    world.bob(ALICE, "I knock.").await.expect(200);
    says(world, json!({ "content": "It *rains*.\n\n# Hard.", "speaker": { "name": "Narrator" } })).await;
    says(world, json!({ "content": "For Alice alone.", "whisper_to": [ALICE], "speaker": { "name": "M*ra" } })).await;
    says(world, json!({ "content": "For Mallory alone.", "whisper_to": [MALLORY] })).await;
    says(world, json!({ "content": "A secret roll.", "blind": true })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_reads_what_they_may_and_takes_it_away() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    told(&world).await;
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let roll = alice.form("/play/port-town/say", &[("text", "/r 1d1+16 # Stealth")]);
    alice.send(roll).await.expect(303);
    alice.send(alice.form("/play/port-town/say", &[("text", "/me bows")])).await.expect(303);
    // What is asked of the game in vain is no line; what comes of it is.
    let plan = json!({ "command": "error", "args": { "message": "No." } });
    let rolls = json!({ "command": "roll", "args": { "expr": "2d1" } });
    server.model.set_script(Script::replies([plan, rolls].map(|plan| Reply::text(plan.to_string()))));
    alice.send(alice.form("/play/port-town/say", &[("to", "*"), ("text", "I fly to the moon.")])).await;
    alice.send(alice.form("/play/port-town/say", &[("to", "*"), ("text", "roll 2d1 for luck")])).await.expect(303);
    let page = alice.get(STORY).await.expect(200).text;
    for seen in
        ["I knock.", "<em>nods</em>", "<em>rains</em>", "For Alice alone.", "roll 2d1 for luck", "<strong>17</strong>"]
    {
        assert!(page.contains(seen), "{seen}: {page}");
    }
    for hidden in ["For Mallory alone.", "A secret roll.", "I fly to the moon."] {
        assert!(!page.contains(hidden), "{hidden}: {page}");
    }
    let file = alice.get(&format!("{STORY}.md")).await.expect(200);
    assert_eq!(file.header("content-type"), "text/markdown; charset=utf-8");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"port-town.story.md\"");
    let lines: Vec<&str> = file.text.lines().collect();
    assert_eq!(lines[0], "# port-town");
    assert!(lines[2].starts_with("## 20") && lines[2].ends_with(", session 1"), "{}", file.text);
    let is_line = |begin: &str, end: &str| lines.iter().any(|line| line.starts_with(begin) && line.ends_with(end));
    for (begin, end) in [
        ("**Alice** (", "): I knock."),
        ("**Innkeeper Bob** (", "): *nods* \"Sit, \\[friend\\](http://e.test).\""),
        ("**Narrator** (", "): It *rains*."),
        ("\\# Hard.", ""),
        ("**M\\*ra** to **Alice** (", "): For Alice alone."),
        ("**Alice** (", ") rolls Stealth, 1d1+16: **17**"),
        ("**Alice** (", ") bows"),
    ] {
        assert!(is_line(begin, end), "{begin}…{end}: {}", file.text);
    }
    assert!(!file.text.contains("Mallory alone") && !file.text.contains("secret roll"), "{}", file.text);
    let file = alice.get(&format!("{STORY}.html")).await.expect(200).text;
    assert!(file.starts_with("<!DOCTYPE html>") && file.ends_with("</html>\n"), "{file}");
    assert!(file.contains("<em>rains</em>") && file.contains("[friend](http://e.test)"), "{file}");
    assert!(
        !file.contains("<script") && !file.contains("http://e.test\"") && !file.contains("Mallory alone"),
        "{file}"
    );
    // A game master reads everything, a viewer what anybody may read.
    for (role, reads) in [(Role::Editor, true), (Role::Viewer, false)] {
        let mut user = Visitor::signed_in(&server, tenant.tenant, role).await;
        let page = user.get("/admin/c/port-town/story").await.expect(200).text;
        let file = user.get("/admin/c/port-town/story.md").await.expect(200).text;
        for text in [words(&page), file] {
            assert_eq!(text.contains("For Mallory alone."), reads, "{text}");
            assert_eq!(text.contains("A secret roll."), reads, "{text}");
            assert!(text.contains("I knock."), "{text}");
        }
    }
    let stranger = Guest::at(&server);
    for path in [STORY, "/play/port-town/story.md", "/play/port-town/story.html", "/play/port-town/lines?before=x"] {
        let refused = stranger.get(path).await.expect(401);
        assert!(refused.text.contains("Your visit is over"), "{path}: {}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_story_is_paged_and_searched() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for n in 0..130 {
        says(
            &world,
            json!({ "content": format!("Line {n:03}."), "speaker": { "name": if n == 7 { "Zoë" } else { "Maya" } } }),
        )
        .await;
    }
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let page = alice.get(STORY).await.expect(200).text;
    let count = |page: &str| page.matches("class=\"line\"").count();
    assert_eq!((count(&page), page.contains("Line 029."), page.contains("Line 030.")), (100, false, true));
    let older = page.split_once("rel=\"prev\"").unwrap().0.rsplit_once("href=\"").unwrap().1.split('"').next().unwrap();
    let page = alice.get(older).await.expect(200).text;
    assert_eq!(
        (count(&page), page.contains("Line 029."), page.contains("Line 000."), page.contains("rel=\"prev\"")),
        (30, true, true, false)
    );
    for (q, found) in
        [("line%20012", 1), ("LINE+12", 10), ("ZOE%CC%88", 1), ("nothing", 0), ("%25", 0), (".", 100), ("%5B", 0)]
    {
        let page = alice.get(&format!("{STORY}?q={q}")).await.expect(200).text;
        assert_eq!(count(&page), found, "{q}");
    }
    for (query, status) in [(format!("?q={}", "x".repeat(201)), 422), ("?before=nonsense".to_owned(), 200)] {
        alice.get(&format!("{STORY}{query}")).await.expect(status);
    }
    let file = alice.get(&format!("{STORY}.md")).await.expect(200).text;
    let at = |n: usize| file.find(&format!("Line {n:03}.")).unwrap();
    assert!((1..130).all(|n| at(n - 1) < at(n)), "all lines, in order");
    // At the table: the newest fifty, and with a look at the first line those before it.
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    assert_eq!(browser.count("#said article").await, 50);
    browser.js("document.getElementById('log').scrollTop = 0").await;
    browser.until("fifty more", "return document.querySelectorAll('#said article').length === 100").await;
    browser.until("to be at the same line", "return document.getElementById('log').scrollTop > 500").await;
    for _ in 0..2 {
        browser.js("document.getElementById('log').scrollTop = 0").await;
        browser.until("older ones", "return document.querySelectorAll('#said article').length >= 130").await;
    }
    let lines = "return [...document.querySelectorAll('#said article > p')].map((p) => p.textContent)";
    let lines: Vec<String> = serde_json::from_value(browser.js(lines).await).unwrap();
    assert_eq!(lines, (0..130).map(|n| format!("Line {n:03}.")).collect::<Vec<_>>());
    assert_eq!((browser.count("#said .older").await, browser.text("#alert").await.as_str()), (0, ""));
}
