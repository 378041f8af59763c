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
    says(&world, json!({ "content": "Hm.", "speaker": { "name": "Baron Vex", "alias": "A hooded stranger" } })).await;
    let dice = |total: u8| json!({ "formula": "1d20", "total": total, "flavor": "Stealth", "dice": [] });
    let rolls = json!({ "content": "two", "type": "roll", "roll": { "rolls": [dice(11), dice(12)] }, "speaker": { "name": "Maya" } });
    says(&world, rolls).await;
    for (q, found) in [("vex", 0), ("hooded", 1)] {
        let page = alice.get(&format!("{STORY}?q={q}")).await.expect(200).text;
        assert_eq!(page.matches("class=\"line\"").count(), found, "who is disguised is not found by the name: {q}");
    }
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
        ("**A hooded stranger** (", "): Hm."),
        ("**Maya** (", ") rolls Stealth, 1d20: **12**"),
    ] {
        assert!(is_line(begin, end), "{begin}…{end}: {}", file.text);
    }
    assert!(
        lines.iter().zip(&lines[1..]).all(|(one, next)| one.is_empty() || next.is_empty() || one.ends_with('\\')),
        "{}",
        file.text
    );
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
    for n in 0..230 {
        let speaker = json!({ "name": if n == 7 { "Zoë" } else { "Maya" } });
        says(&world, json!({ "content": format!("Line {n:03}."), "speaker": speaker })).await;
    }
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let count = |page: &str| page.matches("class=\"line\"").count();
    let (mut path, mut first) = (STORY.to_owned(), 230);
    for (lines, is_last) in [(100, false), (100, false), (30, true)] {
        let page = alice.get(&path).await.expect(200).text;
        assert_eq!((count(&page), page.contains("rel=\"prev\"")), (lines, !is_last), "{path}");
        assert!(
            page.contains(&format!("Line {:03}.", first - 1)) && !page.contains(&format!("Line {first:03}.")),
            "{path}"
        );
        first -= lines;
        assert!(page.contains(&format!("Line {first:03}.")), "{path}");
        if let Some((before, _)) = page.split_once("\" rel=\"prev\"") {
            path = before.rsplit('"').next().unwrap().to_owned();
        }
    }
    for (query, found) in [
        ("q=line%20012", 1),
        ("q=LINE+12", 10),
        ("q=ZOE%CC%88", 1),
        ("q=nothing", 0),
        ("q=%25", 0),
        ("q=.", 100),
        ("q=%5B", 0),
        ("q=%E2%80%8B", 100),
        ("q=line%20012&before=nonsense", 1),
        ("before=0", 0),
    ] {
        let page = alice.get(&format!("{STORY}?{query}")).await.expect(200).text;
        assert_eq!(count(&page), found, "{query}");
    }
    alice.get(&format!("{STORY}?q={}", "x".repeat(201))).await.expect(422);
    // And forward, from the first line.
    let (mut path, mut first) = (format!("{STORY}?after=0"), 0);
    for (lines, is_last) in [(100, false), (100, false), (30, true)] {
        let page = alice.get(&path).await.expect(200).text;
        assert_eq!((count(&page), page.contains("rel=\"next\"")), (lines, !is_last), "{path}");
        assert!(page.contains(&format!("Line {first:03}.")) && page.contains("rel=\"prev\"") == (first > 0), "{path}");
        first += lines;
        assert!(page.contains(&format!("Line {:03}.", first - 1)) && !page.contains(&format!("Line {first:03}.")));
        if let Some((after, _)) = page.split_once("\" rel=\"next\"") {
            path = after.rsplit('"').next().unwrap().to_owned();
        }
    }
    let file = alice.get(&format!("{STORY}.md")).await.expect(200).text;
    let at = |n: usize| file.find(&format!("Line {n:03}.")).unwrap();
    assert!((1..230).all(|n| at(n - 1) < at(n)), "all lines, in order");
    // At the table: the newest fifty, and with a look at the first line those before it.
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    for lines in [50, 100, 150, 200, 230] {
        browser
            .until(
                format!("{lines} lines"),
                format!("return document.querySelectorAll('#said article').length === {lines}"),
            )
            .await;
        let is_back = "return document.getElementById('log').scrollTop > 500";
        browser.until("to be at the same line", is_back).await;
        browser.js("document.getElementById('log').scrollTop = 0").await;
    }
    let lines = "return [...document.querySelectorAll('#said article > p')].map((p) => p.textContent)";
    let lines: Vec<String> = serde_json::from_value(browser.js(lines).await).unwrap();
    assert_eq!(lines, (0..230).map(|n| format!("Line {n:03}.")).collect::<Vec<_>>());
    assert_eq!((browser.count("#said .older").await, browser.text("#alert").await.as_str()), (0, ""));
}

/// Times are those of the reader's clock, and days begin at the reader's midnight.
#[tokio::test(flavor = "multi_thread")]
async fn times_are_local() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for (text, at) in [("Late.", "2024-05-01 23:30:00Z"), ("Early.", "2024-05-02 00:30:00Z")] {
        let id = says(&world, json!({ "content": text })).await;
        sqlx::query("UPDATE message SET created_at = $1::timestamptz WHERE id = $2::uuid")
            .bind(at)
            .bind(id)
            .execute(&mut server.owner().await)
            .await
            .unwrap();
    }
    let alice = Guest::seated(&server, &token(&tenant, ALICE).await).await;
    let page = alice.get("/play/port-town").await.expect(200).text;
    assert!(page.contains("<time datetime=\"2024-05-01T23:30:00Z\">2024-05-01 23:30</time>"), "{page}");
    let page = alice.get(STORY).await.expect(200).text;
    assert!(page.contains("<h2>2024-05-01</h2>") && page.contains("<h2>2024-05-02</h2>"), "{page}");
    let Some(browser) = sit_down(&tenant, ALICE).await else { return };
    browser.in_zone("Asia/Tokyo").await;
    for path in ["/play/port-town", STORY] {
        browser.goto(&format!("{}{path}", server.url)).await;
        browser.until("local times", "return document.querySelector('time').title !== ''").await;
        let times = "return [...document.querySelectorAll('time')].map((time) => time.textContent)";
        let times: Vec<String> = serde_json::from_value(browser.js(times).await).unwrap();
        assert!(times[0].contains("8:30") && times[1].contains("9:30"), "{times:?}");
    }
    let days = browser.text(".lines-told h2").await;
    assert!(browser.count(".lines-told h2").await == 1 && days.contains("May 2, 2024"), "{days}");
    assert!(browser.html().await.contains("Times are those of your clock"));
    // What comes later, too.
    browser.goto(&format!("{}/play/port-town", server.url)).await;
    says(&world, json!({ "content": "Now." })).await;
    browser.until("a new line", "return document.querySelector('#said article:nth-of-type(3) time')?.title").await;
}
