//! Forty turns of one campaign, measured at the provider: how much of each prompt it had read before.

use rehearsal::{Reply, Script};
use serde_json::{Value, json};

use crate::support::{Server, World};

/// Words that do not repeat soon, so that nothing is cached by accident.
fn prose(seed: u32, words: usize) -> String {
    const LIST: [&str; 16] = [
        "harbour", "lantern", "winter", "guild", "oath", "silver", "raven", "tide", "cellar", "market", "bridge",
        "storm", "ledger", "saint", "orchard", "stone",
    ];
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    let mut out = String::new();
    for n in 0..words {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        out.push_str(LIST[(state >> 7) as usize % LIST.len()]);
        out.push_str(if n % 12 == 11 { ". " } else { " " });
    }
    out
}

async fn realistic<'a>(client: &'a crate::support::Client<'a>) -> World<'a> {
    let world = client.world().await;
    for n in 0..8 {
        let entry = json!({ "slug": format!("world_{n}"), "title": format!("World {n}"), "scope": "global", "content": prose(n, 180) });
        world.post("/lore", entry).await.expect(201);
    }
    for n in 0..6 {
        let entry = json!({ "slug": format!("square_{n}"), "title": format!("Square {n}"), "scope": "zone",
            "associated_id": "town_square", "content": prose(100 + n, 180) });
        world.post("/lore", entry).await.expect(201);
    }
    world.patch("/npcs/innkeeper_bob", json!({ "personality_prompt": prose(200, 150) })).await.expect(200);
    world
}

/// The share of prompt tokens a provider had cached.
#[derive(Default)]
struct Share {
    prompt: u64,
    cached: u64,
}

impl Share {
    fn add(&mut self, usage: &Value, cached: &Value) {
        self.prompt += usage["prompt_tokens"].as_u64().unwrap();
        self.cached += cached.as_u64().unwrap_or_default();
    }

    fn percent(&self) -> f64 {
        100.0 * self.cached as f64 / self.prompt as f64
    }
}

/// The order of the design this one grew from: personality, tools, memories, then lore and what was said, in one message.
fn naive(preview: &Value) -> Value {
    let text = |name: &str| {
        let sections = preview["sections"].as_array().unwrap();
        sections.iter().find(|s| s["name"] == name).unwrap()["text"].as_str().unwrap()
    };
    let order = [
        "engine_rules",
        "personality",
        "tools",
        "memories",
        "player_lore",
        "global_lore",
        "scoped_lore",
        "history",
        "turn",
    ];
    let content: String = order.map(text).concat();
    json!({ "model": "naive", "messages": [{ "role": "user", "content": content }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_has_read_nine_tenths_before() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = realistic(&tenant).await;
    let other = rehearsal::start(rehearsal::Options::default()).await.unwrap();
    let http = reqwest::Client::new();
    let (mut ours, mut theirs) = (Share::default(), Share::default());
    for n in 1..=40 {
        let action = format!("Action {n}: {}", prose(1000 + n, 25));
        let answer = Reply::text(prose(2000 + n, 60));
        let memory =
            json!({ "player_id": "player_alice", "memory_string": format!("Memory {n}: {}", prose(3000 + n, 12)) });
        server.model.set_script(match n % 8 {
            0 => Script::replies([Reply::tool("NPC_memorize", memory), answer]),
            _ => Script::replies([answer]),
        });
        let preview = world.prompt("innkeeper_bob", "player_alice", &action).await;
        let url = format!("{}/chat/completions", other.base_url());
        let sent: Value = http.post(url).json(&naive(&preview)).send().await.unwrap().json().await.unwrap();
        let turn = world.bob("player_alice", &action).await.expect(200);
        if n >= 3 {
            ours.add(&turn.body["usage"], &turn.body["usage"]["cached_tokens"]);
            theirs.add(&sent["usage"], &sent["usage"]["prompt_tokens_details"]["cached_tokens"]);
        }
    }
    println!(
        "cached by the provider in 40 turns: {:.1} % of {} tokens; in the naive order {:.1} % of {}",
        ours.percent(),
        ours.prompt,
        theirs.percent(),
        theirs.prompt
    );
    assert!(ours.percent() >= 90.0, "{:.1} %", ours.percent());
    assert!(ours.percent() > theirs.percent());
}

/// A second NPC of the same place finds rules and lore read already; so does another player.
#[tokio::test(flavor = "multi_thread")]
async fn entities_share_what_is_the_same() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = realistic(&tenant).await;
    let twin = json!({ "slug": "twin", "name": "Twin", "owner_ids": ["town_council_owner"], "available_tools": ["NPC_memorize"] });
    world.post("/npcs", twin).await.expect(201);
    // A provider reads the tools before everything else: own words for a tool are a prompt of its own.
    for npc in ["innkeeper_bob", "harbour_ilse"] {
        world.patch(&format!("/npcs/{npc}"), json!({ "available_tools": ["NPC_memorize"] })).await.expect(200);
    }
    server.model.set_script(Script::always(Reply::text("Hm.")));
    world.bob("player_alice", "Hello.").await.expect(200);
    for (npc, player) in
        [("innkeeper_bob", "player_mallory"), ("harbour_ilse", "player_alice"), ("twin", "player_alice")]
    {
        let turn = tenant.npc_turn(&world.slug, npc, player, "Hello.").await.expect(200);
        let usage = &turn.body["usage"];
        let share = usage["cached_tokens"].as_f64().unwrap() / usage["prompt_tokens"].as_f64().unwrap();
        let lowest = if npc == "harbour_ilse" { 0.5 } else { 0.75 };
        assert!(share >= lowest, "{npc} {player}: {share:.2}");
    }
}
