//! Memories in prompts: what stands in the base, what is recalled for an action, and that it is never kept.

use base::tokens;
use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use super::{BOB, HORSE, many, noted};
use crate::support::{Server, World, until};

const COUNCIL: &str = "/owners/town_council_owner/memories";

/// The text of a section; empty if it is not listed.
pub fn section<'a>(prompt: &'a Value, name: &str) -> &'a str {
    let sections = prompt["sections"].as_array().unwrap();
    sections.iter().find(|s| s["name"] == name).map_or("", |s| s["text"].as_str().unwrap())
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("- ")).collect()
}

/// The last message of the newest request.
fn asked(server: &Server) -> String {
    let request = server.model.requests().pop().unwrap();
    request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
}

pub async fn look(world: &World<'_>, action: &str) -> Value {
    world.prompt("innkeeper_bob", "player_alice", action).await
}

pub async fn budget(world: &World<'_>, tokens: u32) {
    world.patch("", json!({ "settings": { "prompt_budgets": { "memories": tokens } } })).await.expect(200);
}

/// An innkeeper with a thousand memories of Alice.
pub async fn innkeeper(server: &Server, world: &World<'_>) {
    for (text, _, _) in HORSE {
        many(server, world, BOB, 160, "Alice drank cider number # and sang about the harbour.").await;
        noted(world, BOB, "player_alice", text).await;
        many(server, world, BOB, 170, "Alice paid for room number # at the Salty Cat.").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matters_to_the_action_is_recalled_in_three_languages_and_not_kept() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    innkeeper(&server, &world).await;
    server.model.set_script(Script::always(Reply::text("Hm.")));
    for (memory, question, _) in HORSE {
        let prompt = look(&world, question).await;
        assert!(section(&prompt, "recalled").contains(memory), "{question}: {}", section(&prompt, "recalled"));
        assert!(!section(&prompt, "memories").contains(memory) && !section(&prompt, "turn").contains(memory));
        let names: Vec<_> =
            prompt["sections"].as_array().unwrap().iter().map(|s| s["name"].as_str().unwrap()).collect();
        assert_eq!(names[names.len() - 3..], ["history", "recalled", "turn"]);
        // The model reads it right before the action, and a trace shows what it read.
        let turn = world.bob("player_alice", question).await.expect(200);
        let read = asked(&server);
        let (before, after) = read.split_once("</recalled>\n").unwrap();
        assert!(before.contains(memory) && after.starts_with("<player_action"), "{read}");
        let record = world.get(&format!("/turns/{}", turn.id())).await.expect(200).body;
        let told = record["trace"]["turn_text"].as_str().unwrap();
        assert!(told.contains(memory) && read.ends_with(told), "{told}");
        let sections = record["prompt"]["sections"].as_array().unwrap();
        let tokens: u64 = sections.iter().map(|section| section["tokens"].as_u64().unwrap()).sum();
        assert_eq!(Value::from(tokens), prompt["total_tokens"]);
    }
    // No stored prompt has it, and what is kept of a turn counts without it.
    let kept = sqlx::query_as::<_, (String, i32)>(
        "SELECT prompt_text, tokens FROM message WHERE prompt_text IS NOT NULL ORDER BY id",
    );
    let kept = kept.fetch_all(&mut server.owner().await).await.unwrap();
    assert_eq!(kept.len(), HORSE.len());
    for ((text, counted), (_, question, _)) in kept.iter().zip(HORSE) {
        assert!(!text.contains("recalled") && !text.contains("cider"), "{text}");
        let whole = text.replace("</>", question);
        assert_eq!(u32::try_from(*counted).unwrap(), tokens::count(&whole), "{whole}");
    }
    // So a server that keeps the conversation and one that reads it tell the same one.
    let replica = Server::on(server.db.clone(), &[]).await;
    let there = tenant.at(&replica);
    let elsewhere = World { client: &there, slug: world.slug.clone() };
    let (here, there) = (look(&world, "Farewell.").await, look(&elsewhere, "Farewell.").await);
    assert_eq!(here["messages"], there["messages"]);
    let history = section(&here, "history");
    assert!(HORSE.iter().all(|(memory, question, _)| history.contains(question) && !history.contains(memory)));
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_subjects_have_one_base_and_24_new_memories_change_it_three_times() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let subjects = ["horse", "cider", "lighthouse", "sister", "debt", "storm", "emerald", "fire", "letter", "wedding"];
    for subject in subjects {
        many(&server, &world, BOB, 30, &format!("Alice spoke of the {subject}, # times that day.")).await;
    }
    server.model.set_script(Script::always(Reply::text("Hm.")));
    let mut bases = Vec::new();
    for subject in subjects {
        let turn = world.bob("player_alice", &format!("Do you remember the {subject}?")).await.expect(200);
        bases.push(turn.body["prompt"]["base_hash"].clone());
        let request = server.model.requests().pop().unwrap();
        let beginning = [0, 1].map(|n| request["messages"][n]["content"].as_str().unwrap());
        bases.push(beginning.concat().split_once("<situation>").unwrap().0.into());
        let read = asked(&server);
        let recalled = read.split_once("<recalled").unwrap().1;
        assert!(recalled.matches(&format!("the {subject},")).count() > 20, "{recalled}");
    }
    let first = bases[..2].to_vec();
    assert!(bases.chunks(2).all(|base| base == first));
    let hash = async || look(&world, "Hello.").await["base_hash"].clone();
    let (mut last, mut changes) = (hash().await, 0);
    for n in 0..24 {
        let text = format!("Alice said farewell for the {n}th time.");
        noted(&world, BOB, "player_alice", &text).await;
        let prompt = look(&world, "Hello.").await;
        let everywhere = [section(&prompt, "memories"), section(&prompt, "recalled")].concat();
        assert!(everywhere.contains(&text), "the newest is always there");
        changes += u32::from(prompt["base_hash"] != last);
        last = prompt["base_hash"].clone();
    }
    assert_eq!(changes, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_all_have_room_they_move_to_the_base_in_steps_of_eight() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // The demo world brings one.
    for n in 1..20 {
        let body = json!({ "player_id": "player_alice", "text": format!("Number {n}."), "game_time": (n == 9).then_some("Midsummer <b>") });
        world.post(BOB, body).await.expect(201);
        let prompt = look(&world, "Number 3?").await;
        let (base, recalled) = (lines(section(&prompt, "memories")), lines(section(&prompt, "recalled")));
        let settled = if n < 8 { n + 1 } else { (n + 1) / 8 * 8 };
        assert_eq!((base.len(), recalled.len()), (settled, n + 1 - settled), "{n}");
        let newest = if n == 9 { "[Midsummer &lt;b>] Number 9.".to_owned() } else { format!("Number {n}.") };
        assert_eq!(**recalled.last().or(base.last()).unwrap(), newest);
        let cut =
            prompt["sections"].as_array().unwrap().iter().any(|s| s["cut"].as_str().is_some_and(|cut| !cut.is_empty()));
        assert!(!cut, "{prompt}");
        if n == 9 {
            let last = prompt["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap();
            let text = last.split_once("<memories ").unwrap().1.to_owned();
            insta::with_settings!({ snapshot_path => "../snapshots" }, { insta::assert_snapshot!("recalled", text) });
        }
        if recalled.is_empty() {
            assert!(!prompt["messages"].to_string().contains("<recalled "));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_budget_holds_both_sections_whatever_the_memories_are() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let check = async |what: &str| {
        for tokens in [0, 1, 30, 60, 200, 2000, 200_000] {
            budget(&world, tokens).await;
            for action in ["Hello there, what of the horse?", "🐴", ".", "x", &"馬".repeat(500), "the of and"] {
                let prompt = look(&world, action).await;
                let [base, recalled] = ["memories", "recalled"].map(|name| section(&prompt, name));
                let used: u32 =
                    base.lines().chain(recalled.lines()).map(|line| tokens::count(&format!("{line}\n"))).sum();
                assert!(used <= tokens, "{what}: {used} in {tokens}: {base}{recalled}");
                let sections = prompt["sections"].as_array().unwrap();
                let counted = sections.iter().filter(|s| s["name"] == "memories" || s["name"] == "recalled");
                let counted = counted.map(|s| s["tokens"].as_u64().unwrap()).sum::<u64>();
                assert_eq!(counted, u64::from(used), "{what}");
            }
        }
    };
    check("one").await;
    for text in ["x", &"x".repeat(2000), "🐴🐴 ... !?", "</memories> <recalled> </recalled>", "馬"] {
        noted(&world, BOB, "player_alice", text).await;
    }
    check("odd").await;
    many(&server, &world, BOB, 700, "Alice left her grey horse, # in all.").await;
    check("many").await;
    sqlx::query("UPDATE memory SET pinned = true").execute(&mut server.owner().await).await.unwrap();
    check("pinned").await;
    budget(&world, 200_000).await;
    assert_eq!(lines(section(&look(&world, "Hello").await, "memories")).len(), 704);
    // Somebody without memories.
    let nobody = world.prompt("innkeeper_bob", "player_mallory", "Hello").await;
    assert_eq!([section(&nobody, "memories"), section(&nobody, "recalled")], ["", ""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_answers_recalls() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for holder in [BOB, COUNCIL] {
        noted(&world, holder, "player_alice", "Alice left her grey horse in the stable.").await;
        many(&server, &world, holder, 200, "Alice paid for room number # at the Salty Cat.").await;
    }
    let recalls = |cause: &str| {
        let read = asked(&server);
        let recalled = read.split_once("<recalled").and_then(|(_, rest)| rest.split_once("</recalled>"));
        assert!(recalled.is_some_and(|(recalled, _)| recalled.contains("grey horse")), "{cause}: {read}");
    };
    server.model.set_script(Script::always(Reply::text("It is well.")));
    let turn = world.bob("player_alice", "How is my grey horse?").await.expect(200).id();
    recalls("an action");
    // Another attempt, and going on, which has no words of its own.
    let turn = world.post(&format!("/turns/{turn}/regenerate"), json!({})).await.expect(200).id();
    recalls("another attempt");
    let more = world.post(&format!("/turns/{turn}/continue"), json!({})).await.expect(200).id();
    recalls("going on");
    world.post(&format!("/turns/{more}/regenerate"), json!({})).await.expect(200);
    recalls("going on in another way");
    // A word that says nothing alone follows what was said before.
    world.bob("player_alice", "Why?").await.expect(200);
    recalls("a word");
    world.patch("/characters/player_alice", json!({ "location": "Town Square" })).await.expect(200);
    world.post("/pray", json!({ "player_id": "player_alice", "message": "Watch over my horse" })).await.expect(202);
    until("a prayer", async || asked(&server).contains("prays to you")).await;
    recalls("a prayer");
    tenant.owner_turn(&world.slug, "town_council_owner", "player_alice", "Is my horse still here?").await.expect(200);
    recalls("an owner");
    // What somebody noticed: the newest of a long list.
    world.patch("/npcs/innkeeper_bob", json!({ "location": "Town Square", "reaction_threshold": 1 })).await.expect(200);
    let action = json!({ "player_id": "player_alice", "type": "attack", "targets": ["innkeeper_bob"],
        "text": format!("{} and takes the grey horse", "She shouts ".repeat(30)) });
    world.post("/actions", action).await.expect(202);
    until("a reaction", async || asked(&server).contains("<noticed_actions")).await;
    recalls("a reaction");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_recalled_gives_way_to_a_small_context_and_templates_know_it() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    innkeeper(&server, &world).await;
    let pinned = noted(&world, BOB, "player_alice", "Alice is the innkeeper's niece.").await;
    world.patch(&format!("/memories/{pinned}"), json!({ "pinned": true })).await.expect(200);
    let small = json!({ "slug": "small", "name": "Small", "parameters": { "max_output_tokens": 300 } });
    tenant.post("/v1/models", small).await.expect(201);
    world.patch("/npcs/innkeeper_bob", json!({ "model": "small" })).await.expect(200);
    let (memory, question, _) = HORSE[0];
    let whole = look(&world, question).await;
    let total = whole["total_tokens"].as_u64().unwrap();
    // The base goes first, its pinned memory last; then what matters least.
    let mut seen = Vec::new();
    for tokens in (600..total + 400).rev().step_by(60) {
        tenant.patch("/v1/models/small", json!({ "context_tokens": tokens })).await.expect(200);
        let prompt = look(&world, question).await;
        let [base, recalled] = ["memories", "recalled"].map(|name| section(&prompt, name));
        assert!(base.is_empty() || lines(recalled).len() == lines(section(&whole, "recalled")).len());
        seen.push((base.contains("niece"), recalled.contains(memory), lines(base).len(), lines(recalled).len()));
        if prompt.get("too_large").is_none() {
            let read = section(&prompt, "turn");
            assert!(read.ends_with(&format!("{question}\n</player_action>\n")), "{read}");
        }
    }
    assert!(seen.is_sorted_by(|a, b| a.0 >= b.0 && a.1 >= b.1 && a.2 >= b.2 && a.3 >= b.3), "{seen:?}");
    assert!(seen.iter().any(|(niece, _, base, _)| *niece && *base == 1), "{seen:?}");
    assert!(seen.iter().any(|(_, horse, _, recalled)| *horse && *recalled < 10), "{seen:?}");
    assert_eq!(*seen.last().unwrap(), (false, false, 0, 0));
    // What is left is what the model reads, each in its place.
    let turn = world.bob("player_alice", question).await.problem(422, "prompt_too_large");
    let needed = turn.body["needed"].as_u64().unwrap();
    tenant.patch("/v1/models/small", json!({ "context_tokens": needed + 200 })).await.expect(200);
    world.bob("player_alice", question).await.expect(200);
    let read = asked(&server);
    let (before, after) = read.split_once("</recalled>\n<player_action").unwrap();
    assert!(before.contains(memory) && after.contains(question), "{read}");
    tenant.patch("/v1/models/small", json!({ "context_tokens": 20_000 })).await.expect(200);
    // A template may let it go first. Without memories there is nothing to recall.
    for (sections, has_base, has_recalled) in [
        (json!([{ "name": "memories" }, { "name": "history" }, { "name": "turn" }]), true, true),
        (json!([{ "name": "memories" }, { "name": "recalled", "cut": 1 }, { "name": "turn" }]), true, true),
        (json!([{ "name": "personality" }, { "name": "turn" }]), false, false),
    ] {
        let templates = json!({ "npc": { "sections": sections } });
        world.patch("", json!({ "settings": { "prompt_templates": templates } })).await.expect(200);
        let prompt = look(&world, question).await;
        let has = ["memories", "recalled"].map(|name| !section(&prompt, name).is_empty());
        assert_eq!(has, [has_base, has_recalled], "{sections}");
        if sections[1].get("cut").is_some() {
            let tokens = prompt["total_tokens"].as_u64().unwrap() - 200;
            tenant.patch("/v1/models/small", json!({ "context_tokens": tokens })).await.expect(200);
            let cut = look(&world, question).await;
            assert_eq!(section(&cut, "memories"), section(&prompt, "memories"));
            assert!(lines(section(&cut, "recalled")).len() < lines(section(&prompt, "recalled")).len());
            tenant.patch("/v1/models/small", json!({ "context_tokens": 20_000 })).await.expect(200);
        }
    }
    let budget = json!({ "settings": { "prompt_budgets": { "recalled": 100 } } });
    let refused = tenant.patch(&world.path(""), budget).await.problem(422, "validation_failed");
    assert_eq!(refused.pointers(), ["/settings/prompt_budgets/recalled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn previews_traces_and_pages_say_why() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let (memory, question, _) = HORSE[0];
    let report = look(&world, question).await["recall"].clone();
    let used = |prompt: &Value| -> u64 {
        let sections = prompt["sections"].as_array().unwrap().iter();
        let sections = sections.filter(|s| s["name"] == "memories" || s["name"] == "recalled");
        sections.map(|s| s["tokens"].as_u64().unwrap()).sum()
    };
    let all = json!({ "query": question, "rows": 1, "budget": 2000, "used": used(&look(&world, "").await), "left_out": 0, "items": [] });
    assert_eq!(report, all);
    innkeeper(&server, &world).await;
    let twin = "Alyce left her grey horse in my stable, too.";
    let [horse, echo, pinned] = [
        noted(&world, BOB, "player_alice", memory).await,
        noted(&world, BOB, "player_alice", twin).await,
        noted(&world, BOB, "player_alice", "Alice is the innkeeper's <niece>.").await,
    ];
    world.patch(&format!("/memories/{pinned}"), json!({ "pinned": true })).await.expect(200);
    many(&server, &world, BOB, 60, "Alice paid for supper number #.").await;
    let prompt = look(&world, question).await;
    let report = &prompt["recall"];
    let items = report["items"].as_array().unwrap();
    let item = |id: &str| items.iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("{id}: {report}"));
    let shown = lines(section(&prompt, "memories")).len() + lines(section(&prompt, "recalled")).len();
    assert_eq!(items.iter().filter(|item| item["included"] == true).count(), shown);
    assert_eq!(items.len(), shown + 50);
    assert_eq!(report["left_out"].as_u64().unwrap(), report["rows"].as_u64().unwrap() - shown as u64);
    assert_eq!((&report["query"], report["used"].as_u64().unwrap()), (&json!(question), used(&prompt)));
    for item in items {
        let (section, reason) = (item["section"].as_str(), item["reason"].as_str().unwrap());
        let is_in = item["included"] == true;
        assert_eq!(is_in, section.is_some(), "{item}");
        assert_eq!(is_in, ["pinned", "newest", "relevant"].contains(&reason), "{item}");
        assert!(item["kind"] == "memory" && (section != Some("memories") || reason != "relevant"), "{item}");
    }
    assert_eq!((&item(&pinned)["reason"], &item(&pinned)["section"]), (&json!("pinned"), &json!("memories")));
    let both = [item(&horse), item(&echo)];
    assert!(both.iter().any(|item| item["reason"] == "relevant" && item["section"] == "recalled"), "{both:?}");
    assert!(both.iter().any(|item| item["reason"] == "echo" && item["included"] == false), "{both:?}");
    assert!(both.iter().all(|item| item["words"].as_array().unwrap().contains(&json!("left"))), "{both:?}");
    assert!(both[0]["score"]["own"].as_f64().unwrap() > 1.0);
    // A turn's trace says the same, and its stored form does not repeat the action.
    let turn = world.bob("player_alice", question).await.expect(200).id();
    let record = world.get(&format!("/turns/{turn}")).await.expect(200).body;
    assert_eq!(&record["trace"]["recall"], report);
    let stored: Value = sqlx::query_scalar("SELECT record -> 'trace' -> 'recall' FROM turn WHERE id::text = $1")
        .bind(&turn)
        .fetch_one(&mut server.owner().await)
        .await
        .unwrap();
    assert_eq!(stored.get("query"), None);
    assert!(stored.to_string().len() * 2 < report.to_string().len(), "{stored}");
    // What goes on is about the action before it.
    let more = world.post(&format!("/turns/{turn}/continue"), json!({})).await.expect(200).id();
    let record = world.get(&format!("/turns/{more}")).await.expect(200).body;
    assert_eq!(record["trace"]["recall"]["query"], question);
    // People read it in words, also when a memory is gone.
    world.delete(&format!("/memories/{horse}")).await.expect(204);
    let mut mara = crate::admin::Visitor::signed_in(&server, tenant.tenant, edge::users::Role::Owner).await;
    let page = mara.get(&format!("/admin/c/port-town/turns/{turn}")).await.expect(200).text;
    for words in [
        "Memories, and why",
        "pinned",
        "matters to the action; shares <bdi>",
        "(gone since)",
        "says what another one says",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let lab = "/admin/c/port-town/lab?entity=npc:innkeeper_bob&player=player_alice&action=horse";
    let page = mara.get(lab).await.expect(200).text;
    assert!(page.contains("Memories, and why") && page.contains("&#60;niece&#62;"), "{page}");
    // A small context leaves out what the report says.
    let small = json!({ "slug": "small", "name": "Small", "parameters": { "max_output_tokens": 300 },
        "context_tokens": prompt["total_tokens"].as_u64().unwrap() - 500 });
    tenant.post("/v1/models", small).await.expect(201);
    world.patch("/npcs/innkeeper_bob", json!({ "model": "small" })).await.expect(200);
    let prompt = look(&world, question).await;
    let included = prompt["recall"]["items"].as_array().unwrap().iter().filter(|item| item["included"] == true).count();
    let shown = lines(section(&prompt, "memories")).len() + lines(section(&prompt, "recalled")).len();
    assert!(included == shown && shown > 0, "{included} {shown}");
    assert_eq!(prompt["recall"]["used"].as_u64().unwrap(), used(&prompt));
}
