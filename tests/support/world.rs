//! A campaign with the people of the demo's first documents: Alice, Innkeeper Bob, the Town Council, and their lore.

use serde_json::{Value, json};

use super::{Answer, Client};

/// A campaign, by its slug, and the client that made it.
pub struct World<'a> {
    pub client: &'a Client<'a>,
    pub slug: String,
}

impl<'a> World<'a> {
    /// Makes the campaign `slug` and imports the people.
    pub async fn make(client: &'a Client<'a>, slug: &str) -> Self {
        client.post("/v1/campaigns", json!({ "slug": slug, "name": slug })).await.expect(201);
        let world = Self { client, slug: slug.to_owned() };
        client.post(&world.path("/import/seed"), Self::documents()).await.expect(200);
        world
    }

    /// The documents, in the PascalCase of the design they come from.
    pub fn documents() -> Value {
        json!({
            "Players": [
                { "ID": "player_alice", "Name": "Alice", "Race": "human", "Profession": "adventurer", "CurrentRoomID": "starting_room",
                  "VisitedRoomIDs": {}, "Inventory": [], "Health": 100, "MaxHealth": 100 },
                { "ID": "player_mallory", "Name": "Mallory", "Race": "elf", "Profession": "thief", "CurrentRoomID": "starting_room",
                  "Health": 50, "MaxHealth": 50 },
            ],
            "Owners": [{
                "ID": "town_council_owner", "Name": "The Town Council", "Description": "The town's governing body.",
                "MonitoredAspect": "location", "AssociatedID": "town_square",
                "MemoriesAboutPlayers": { "player_alice": ["Initial assessment: Newcomer, potential asset."] },
                "AvailableTools": [
                    { "Name": "OWNER_memorize", "Description": "Records a private memory about a player.",
                      "Parameters": { "player_id": { "type": "string" }, "memory_string": { "type": "string" } } },
                    { "Name": "OWNER_memorize_dependables", "Description": "Broadcasts a memory to all subordinate NPCs.",
                      "Parameters": { "player_id": { "type": "string" }, "memory_string": { "type": "string" } } },
                ],
            }],
            "NPCs": [
                { "ID": "innkeeper_bob", "Name": "Innkeeper Bob", "Description": "A jovial innkeeper with a booming laugh.",
                  "OwnerIDs": ["town_council_owner"],
                  "MemoriesAboutPlayers": { "player_alice": ["Initial impression: Seems friendly."] },
                  "AvailableTools": [{ "Name": "NPC_memorize", "Description": "Records a personal memory about a player.",
                      "Parameters": { "player_id": { "type": "string" }, "memory_string": { "type": "string" } } }],
                  "PersonalityPrompt": "You are Innkeeper Bob. You love gossip.", "Inventory": [] },
                { "ID": "harbour_ilse", "Name": "Ilse", "OwnerIDs": [], "CurrentRoomID": "harbour", "AvailableTools": [{ "Name": "NPC_memorize" }] },
            ],
            "Lore": [
                { "ID": "the_reach", "Title": "The Reach", "Scope": "global", "Content": "The Reach is a cold sea." },
                { "ID": "the_square", "Title": "The square", "Scope": "zone", "AssociatedID": "town_square", "Content": "No blades in the square." },
                { "ID": "the_harbour", "Title": "The harbour", "Scope": "zone", "AssociatedID": "harbour", "Content": "A chain closes it at night." },
                { "ID": "the_adventurers", "Title": "Adventurers", "Scope": "profession", "AssociatedID": "adventurer", "Content": "They sign the book." },
            ],
        })
    }

    /// Lets owners remember and tell without paying, for tests that are about something else.
    pub async fn free_of_charge(&self) {
        let prices = json!({ "OWNER_memorize": 0, "OWNER_memorize_dependables": 0 });
        self.patch("", json!({ "settings": { "tool_prices": prices } })).await.expect(200);
    }

    /// A path below the campaign.
    pub fn path(&self, rest: &str) -> String {
        format!("/v1/campaigns/{}{rest}", self.slug)
    }

    pub async fn get(&self, rest: &str) -> Answer {
        self.client.get(&self.path(rest)).await
    }

    pub async fn post(&self, rest: &str, body: Value) -> Answer {
        self.client.post(&self.path(rest), body).await
    }

    pub async fn patch(&self, rest: &str, body: Value) -> Answer {
        self.client.patch(&self.path(rest), body).await
    }

    pub async fn delete(&self, rest: &str) -> Answer {
        self.client.delete(&self.path(rest)).await
    }

    /// Bob answers a player.
    pub async fn bob(&self, player: &str, action: &str) -> Answer {
        self.client.npc_turn(&self.slug, "innkeeper_bob", player, action).await
    }

    /// The texts an NPC remembers about a player, oldest first.
    pub async fn memories(&self, holder: &str, player: &str) -> Vec<String> {
        let answer = self.get(&format!("/{holder}/memories?player_id={player}&limit=200")).await.expect(200);
        answer.items().iter().map(|m| m["text"].as_str().unwrap().to_owned()).collect()
    }

    /// The prompt of an NPC for a player, as a preview.
    pub async fn prompt(&self, npc: &str, player: &str, action: &str) -> Value {
        self.post(&format!("/npcs/{npc}/prompt"), json!({ "player_id": player, "action": action }))
            .await
            .expect(200)
            .body
    }
}
