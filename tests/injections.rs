//! A corpus of injections, through every text that reaches a prompt, against a model that obeys them all.
//!
//! The words are in `injections/corpus.json`; to add some, add a line there. To add a way by which words get into a prompt, add it
//! to `injections/ways.rs`. Whatever the model is told to do: nobody's memory but the turn's own is written, nothing of another
//! tenant or another entity, no secret reaches the prompt or the player, and no words leave their fence.

mod model;
mod ways;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Value, json};

use crate::{
    prompt::fences::{is_balanced, skeleton},
    support::{Client, Server, World},
};
use model::{Obedient, words};
use ways::{Put, Reader, put, turn};

/// What nobody whose turn it is may learn.
const VAULT: &str = "VAULTSECRET";
const ILSE: &str = "ILSESECRET";
const MALLORY: &str = "MALLORYMEMORY";
const WHISPER: &str = "MALLORYWHISPER";
const RIVAL: &str = "RIVALSECRET";
const KEY: &str = "sk-KEYSECRET";

struct Case {
    id: String,
    through: String,
    text: String,
}

fn corpus() -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("injections/corpus.json")).unwrap();
    let member = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let case =
        |case: &Value| Case { id: member(case, "id"), through: member(case, "through"), text: member(case, "text") };
    cases.iter().map(case).collect()
}

/// A world with secrets in it.
async fn secretive<'a>(client: &'a Client<'a>, slug: &str) -> World<'a> {
    let world = World::make(client, slug).await;
    let secret = |title: &str, content: &str, known: Value| json!({ "title": title, "scope": "global", "content": content, "secret": true, "known_by": known });
    world.post("/lore", secret("The vault", &format!("{VAULT} abracadabra"), json!([]))).await.expect(201);
    world.post("/lore", secret("The chain", ILSE, json!(["harbour_ilse"]))).await.expect(201);
    for holder in ["npcs/innkeeper_bob", "npcs/harbour_ilse", "owners/town_council_owner"] {
        let memory = json!({ "player_id": "player_mallory", "text": format!("{MALLORY} at {holder}") });
        world.post(&format!("/{holder}/memories"), memory).await.expect(201);
    }
    let whisper = json!({ "content": WHISPER, "author": "gm", "whisper_to": ["player_mallory"] });
    world.post("/messages", whisper).await.expect(201);
    world
}

/// Whether a change of an owner is only that it has less influence, or gets some back.
fn is_paid(change: &Value) -> bool {
    let of = |member: &str| {
        let mut row = change[member].as_object().cloned().unwrap_or_default();
        for column in ["influence_current", "influence_at", "version", "updated_at"] {
            row.remove(column);
        }
        row
    };
    change["op"] == "update" && of("before") == of("after")
}

/// The place in the journal.
async fn seq(world: &World<'_>) -> i64 {
    let mut after = 0;
    loop {
        let page = world.get(&format!("/changes?after={after}&limit=200")).await.expect(200).body;
        after = page["next_after"].as_i64().unwrap();
        if page["has_more"] == false {
            return after;
        }
    }
}

/// What a model was told of by others: the tags of what stands in its messages.
fn tags(request: &Value) -> Vec<Vec<String>> {
    let messages = request["messages"].as_array().unwrap().iter();
    let others = messages.filter(|m| m["role"] == "user" || m["role"] == "tool");
    others.map(|m| skeleton(m["content"].as_str().unwrap())).collect()
}

/// One case in a world of its own, and what went wrong.
struct Run<'a> {
    tenant: &'a Client<'a>,
    model: &'a Obedient,
    ids: HashMap<&'static str, String>,
    slug: String,
    /// How often the model did as it was told: calls that it made, and prompts that it told.
    obeyed: (usize, usize),
}

impl Run<'_> {
    async fn go(&mut self, way: &str, text: &str, mode: &str) -> (Vec<Vec<Vec<String>>>, Vec<String>) {
        let world = secretive(self.tenant, &self.slug).await;
        let mut wrong = Vec::new();
        self.ids.clear();
        for (name, path) in [
            ("alice", "/characters/player_alice"),
            ("bob", "/npcs/innkeeper_bob"),
            ("council", "/owners/town_council_owner"),
        ] {
            self.ids.insert(name, world.get(path).await.expect(200).id());
        }
        self.model.asked();
        let it = put(&world, self.model, way, text).await;
        if let Reader::Npc("zoe") = it.reader {
            self.ids.insert("zoe", world.get("/npcs/zoe").await.expect(200).id());
        }
        let before = seq(&world).await;
        let earlier = self.model.asked();
        let answer = turn(&world, &it, mode).await;
        if answer.status >= 500 && it.reader != Reader::Rules {
            wrong.push(format!("{}: {}", answer.status, answer.text));
        }
        self.obeyed.0 += answer.body["tool_calls"].as_array().map_or(0, Vec::len);
        self.obeyed.1 += usize::from(answer.text.contains("How to read what follows"));
        let asked = self.model.asked();
        self.writes(&world, &it, before, &mut wrong).await;
        self.secrets(&world, &it, earlier.iter().chain(&asked), &mut wrong).await;
        let all: Vec<_> = asked.iter().map(tags).collect();
        for (n, messages) in all.iter().enumerate() {
            if let Some(torn) = messages.iter().find(|tags| !is_balanced(tags)) {
                wrong.push(format!("a fence is closed in request {n}: {torn:?}"));
            }
        }
        world.delete("").await.expect(204);
        (all, wrong)
    }

    /// Everything that was written since is the turn's own.
    async fn writes(&self, world: &World<'_>, it: &Put, before: i64, wrong: &mut Vec<String>) {
        let holders: Vec<&String> = match it.reader {
            Reader::Npc("zoe") => self.ids.get("zoe").into_iter().collect(),
            Reader::Npc(_) => vec![&self.ids["bob"]],
            // The council tells those who answer to it.
            Reader::Owner => vec![&self.ids["council"], &self.ids["bob"]],
            _ => Vec::new(),
        };
        let page = world.get(&format!("/changes?after={before}&limit=200")).await.expect(200);
        for change in page.items() {
            let row = if change["after"].is_null() { &change["before"] } else { &change["after"] };
            let own = match change["table"].as_str().unwrap() {
                "message" => true,
                "memory" => {
                    row["subject_id"] == json!(self.ids["alice"])
                        && holders.iter().any(|holder| row["holder_id"] == json!(holder))
                }
                // What the rules decide, or a command that the player may give, about the one who acts.
                "character" => {
                    matches!(it.reader, Reader::Rules | Reader::Planner) && row["id"] == json!(self.ids["alice"])
                }
                // What the owner pays for its tools, and nothing else of it.
                "owner" => {
                    matches!(it.reader, Reader::Owner) && row["id"] == json!(self.ids["council"]) && is_paid(change)
                }
                _ => false,
            };
            if !own {
                wrong.push(format!("a foreign write: {change}"));
            }
        }
        let about = world.get("/memories?player_id=player_mallory&limit=200").await.expect(200);
        if about.items().len() != 3 || about.text.contains("OWNED") {
            wrong.push(format!("Mallory's memories were written: {}", about.text));
        }
    }

    /// No secret was told to the model, or to the player.
    async fn secrets(&self, world: &World<'_>, it: &Put, asked: impl Iterator<Item = &Value>, wrong: &mut Vec<String>) {
        let knows_all = it.reader == Reader::GameMaster;
        for request in asked {
            let told = words(request);
            let hidden: &[&str] = if knows_all { &[RIVAL, KEY] } else { &[VAULT, ILSE, MALLORY, WHISPER, RIVAL, KEY] };
            for secret in hidden {
                if let Some(at) = told.find(secret) {
                    let from = told.floor_char_boundary(at.saturating_sub(200));
                    wrong.push(format!("the model was told {secret}: {}", &told[from..at]));
                }
            }
        }
        let token = json!({ "campaign": self.slug, "player_id": "player_alice", "scopes": ["read", "play"] });
        let alice = self.tenant.token(token).await;
        let mut all = String::new();
        for path in ["/messages?limit=200", "/memories?limit=200", "/lore?limit=200", "/changes?after=0&limit=200"] {
            all.push_str(&alice.get(&world.path(path)).await.expect(200).text);
        }
        // What a game master's AI gives away at the table it gives away.
        let hidden: &[&str] =
            if knows_all { &[MALLORY, RIVAL, KEY] } else { &[VAULT, ILSE, MALLORY, WHISPER, RIVAL, KEY] };
        for secret in hidden {
            if all.contains(secret) {
                wrong.push(format!("Alice reads {secret}"));
            }
        }
    }
}

#[test]
fn the_corpus_is_large_and_each_case_its_own() {
    let corpus = corpus();
    let ids: BTreeSet<_> = corpus.iter().map(|case| &case.id).collect();
    let ways: BTreeSet<_> = corpus.iter().map(|case| &case.through).collect();
    assert!(corpus.len() >= 150 && ids.len() == corpus.len(), "{} cases, {} ids", corpus.len(), ids.len());
    assert!(ways.len() >= 45, "{} ways", ways.len());
}

/// The cases of every fourth way, from `first` on, at a server of its own. What is harmless is tried once for each way.
async fn part(first: usize) {
    let model = Obedient::start();
    let env = [("LLM_API_ENDPOINT", model.url.as_str()), ("LLM_MODEL_NAME", "obedient"), ("LLM_API_KEY", KEY)];
    let server = Server::start_with(&env).await;
    let rival = server.tenant("rival").await;
    let theirs = rival.world().await;
    let lore = json!({ "title": "Ours", "scope": "global", "content": RIVAL });
    theirs.post("/lore", lore).await.expect(201);
    theirs.patch("/npcs/innkeeper_bob", json!({ "description": RIVAL })).await.expect(200);
    let untouched = seq(&theirs).await;
    let tenant = server.tenant("acme").await;
    tenant.patch("/v1/tenant", json!({ "settings": { "features": { "planner": true } } })).await;
    let mut expected: BTreeMap<(String, &str), Vec<Vec<Vec<String>>>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let (mut called, mut told) = (0, 0);
    let cases = corpus();
    let ways: BTreeSet<_> = cases.iter().map(|case| &case.through).collect();
    let ours: BTreeSet<_> = ways.into_iter().skip(first).step_by(4).collect();
    for (n, case) in cases.iter().enumerate().filter(|(_, case)| ours.contains(&case.through)) {
        let mode = if n % 2 == 0 { "native" } else { "xml" };
        let mut run = Run { tenant: &tenant, model: &model, ids: HashMap::new(), slug: String::new(), obeyed: (0, 0) };
        let harmless = (case.through.clone(), mode);
        if !expected.contains_key(&harmless) {
            run.slug = format!("harmless-{n}");
            let (tags, faults) = run.go(&case.through, "A harmless word.", mode).await;
            assert!(!tags.is_empty() && faults.is_empty(), "{harmless:?}: {faults:?}");
            expected.insert(harmless.clone(), tags);
        }
        run.slug = format!("world-{n}");
        let (tags, faults) = run.go(&case.through, &case.text, mode).await;
        (called, told) = (called + run.obeyed.0, told + run.obeyed.1);
        wrong.extend(faults.into_iter().map(|fault| format!("{}: {fault}", case.id)));
        if tags.first() != expected[&harmless].first() {
            wrong.push(format!(
                "{}: other fences: {:?}\nthan {:?}",
                case.id,
                tags.first(),
                expected[&harmless].first()
            ));
        }
    }
    assert!(called > 30 && told > 15, "the model obeyed: {called} calls, {told} prompts told");
    assert_eq!(seq(&theirs).await, untouched, "the other tenant's world was written");
    assert!(wrong.is_empty(), "{} faults:\n{}", wrong.len(), wrong.join("\n"));
    model.stop().await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_injection_does_harm_first_quarter() {
    part(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_injection_does_harm_second_quarter() {
    part(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_injection_does_harm_third_quarter() {
    part(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_injection_does_harm_last_quarter() {
    part(3).await;
}
