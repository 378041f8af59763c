//! The pages of NPCs, owners, characters, scenes and locations.

use edge::users::Role;
use serde_json::json;

use super::{Visitor, words};
use crate::support::Server;

const AT: &str = "/admin/c/port-town";

/// What stands between a heading and the end of its section.
fn section(page: &str, heading: &str) -> String {
    let part = page.split("<section").find(|part| words(part).contains(heading));
    words(part.unwrap_or_else(|| panic!("no section {heading}: {page}")).split("</section>").next().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_who_somebody_is_and_what_goes_on_around_them() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let bob = json!({ "name": "Bob <b>the</b> Keeper", "race": "human", "profession": "innkeeper", "location": "town_square",
        "description": "Laughs a lot.", "disposition": "friendly", "personality_prompt": "Never waters the ale.", "ai_lock": true,
        "available_tools": ["NPC_memorize", { "name": "roll_dice", "description": "Throw bones." }],
        "stats": { "armor_class": 13, "hp": 5, "max_hp": 11, "abilities": { "strength": 16, "dexterity": 8 },
            "saving_throws": { "strength": 5 }, "attacks": [{ "name": "Mug", "bonus": 4, "damage": "1d4+2", "damage_type": "bludgeoning" }] } });
    world.patch("/npcs/innkeeper_bob", bob).await.expect(200);
    world
        .post("/npcs/innkeeper_bob/memories", json!({ "player_id": "player_alice", "text": "Paid twice." }))
        .await
        .expect(201);
    for (title, secret) in [("Cellar", false), ("Vault", true)] {
        let entry = json!({ "title": title, "scope": "zone", "associated_id": "Town Square", "content": "Deep.", "secret": secret });
        world.post("/lore", entry).await.expect(201);
    }
    world.bob("player_alice", "Good evening.").await.expect(200);
    let mut mara = Visitor::signed_in(&server, tenant.tenant, Role::Owner).await;
    let page = mara.get(&format!("{AT}/npcs/innkeeper_bob")).await.expect(200).text;
    let all = words(&page);
    assert!(
        all.contains("Bob &#60;b&#62;the&#60;/b&#62; Keeper Human innkeeper Town Square friendly locked Edit"),
        "{all}"
    );
    assert!(section(&page, "About").contains("Laughs a lot. Personality Never waters the ale."), "{all}");
    assert!(section(&page, "Last words").contains("Good evening."), "{all}");
    assert!(section(&page, "Remembers").contains("Paid twice."), "{all}");
    let knows = section(&page, "Knows");
    assert!(
        knows.contains("Cellar about the location") && knows.contains("Vault about the location, secret"),
        "{knows}"
    );
    let stats = section(&page, "Stat block");
    assert!(stats.contains("Armor class 13 Hit points 5 of 11 Initiative −1 Speed 30 ft"), "{stats}");
    assert!(stats.contains("STR +3 16 save +5 , proficient DEX −1 8 save −1"), "{stats}");
    assert!(stats.contains("Mug +4 to hit 1d4+2 bludgeoning 5 ft"), "{stats}");
    assert!(section(&page, "Tools").contains("roll_dice Throw bones."), "{all}");
    assert!(section(&page, "Belongs to").contains("Town Council"), "{all}");
    for way in [
        "lab?entity=npc:innkeeper_bob",
        "exchange/card?npc=innkeeper_bob",
        "locations/town_square",
        "/edit",
        "/history",
        "/delete",
    ] {
        assert!(page.contains(way), "{way}: {page}");
    }
    // Its owner has it among its NPCs, its character and its location among those who are there.
    let owner = mara.get(&format!("{AT}/owners/town_council_owner")).await.expect(200).text;
    assert!(section(&owner, "Its NPCs").contains("Bob &#60;b&#62;"), "{owner}");
    world.patch("/characters/player_alice", json!({ "location": " TOWN square " })).await.expect(200);
    let scene = json!({ "name": "Market day", "slug": "market", "location": "town-square", "active": true });
    world.post("/scenes", scene).await.expect(201);
    let elsewhere = json!({ "name": "Elin", "location": "Örebro" });
    world.post("/characters", elsewhere).await.expect(201);
    let page = mara.get(&format!("{AT}/characters/elin")).await.expect(200).text;
    let path = page.split('"').find(|part| part.contains("/locations/")).unwrap();
    let page = words(&mara.get(path).await.expect(200).text);
    assert!(page.contains("Örebro Location") && page.contains("Who is here Elin"), "{page}");
    for path in ["locations/Town%20Square", "scenes/market"] {
        let place = mara.get(&format!("{AT}/{path}")).await.expect(200).text;
        let here = section(&place, "Who is here");
        assert!(here.contains("Alice") && here.contains("Bob"), "{path}: {here}");
        assert!(section(&place, "Watched by").contains("Town Council"), "{path}");
        assert!(section(&place, "Lore about this location").contains("Vault"), "{path}");
    }
    mara.get(&format!("{AT}/locations/nowhere")).await.expect(404);
    // Who may only read sees no secret, and no way to change anything.
    let mut vera = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    for path in ["npcs/innkeeper_bob", "locations/town_square"] {
        let page = vera.get(&format!("{AT}/{path}")).await.expect(200).text;
        assert!(page.contains("Cellar") && !page.contains("Vault"), "{page}");
        for way in ["/edit\"", "/delete", "/lab?", "/history", "/reactions", "/new\""] {
            assert!(!page.contains(way), "{way}: {page}");
        }
    }
    vera.get(&format!("{AT}/npcs/innkeeper_bob/edit")).await.expect(403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sheet_is_as_in_the_book() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    let lirien = json!({ "name": "Lirien", "race": "elf", "profession": "wizard", "level": 5, "max_hp": 22, "hp": 9, "temp_hp": 3,
        "armor_class": 12, "location": "town_square",
        "abilities": { "strength": 8, "dexterity": 14, "constitution": 12, "intelligence": 18, "wisdom": 10, "charisma": 10 },
        "skill_proficiencies": ["arcana"], "features": [{ "name": "Jack of All Trades" }], "saving_throw_proficiencies": ["intelligence"], "weapon_proficiencies": ["daggers"],
        "weapons": [{ "name": "Dagger" }, { "name": "Odd", "dice": "many" }], "spellcasting_ability": "intelligence",
        "spells": ["Fire Bolt", "Magic Missile", "Unheard Of"], "spell_slots": { "1": { "max": 4, "remaining": 1 } },
        "resources": [{ "name": "Luck", "max": 3, "remaining": 2 }], "hit_dice": { "die": 6, "max": 5, "remaining": 4 },
        "conditions": [{ "name": "exhaustion", "level": 2 }], "inventory": ["rope", { "name": "torch", "quantity": 3 }, 7] });
    world.post("/characters", lirien).await.expect(201);
    let mut vera = Visitor::signed_in(&server, tenant.tenant, Role::Viewer).await;
    let page = vera.get(&format!("{AT}/characters/lirien")).await.expect(200).text;
    let sheet = section(&page, "Sheet");
    for part in [
        "Level 5, medium, proficiency bonus +3",
        "Hit points 9 of 22, and 3 temporary",
        "exhaustion 2",
        "INT +4 18 save +7",
        "Dagger +5 to hit 1d4+2 piercing 5 ft or 20/60 ft",
        "Odd &#34;many&#34;, the damage of Odd, is not a sum of dice",
        "With Intelligence, save DC 15",
        "Cantrips Fire Bolt",
        "Level 1 1 of 4 slots left Magic Missile",
        "Other spells Unheard Of",
        "Hit dice (d6) 4 of 5",
        "Luck 2 of 3",
        "Carries rope, torch × 3",
        "Arcana +7 , proficient",
        // Half of the bonus is no proficiency.
        "History +5 Insight",
    ] {
        assert!(sheet.contains(part), "{part}: {sheet}");
    }
    assert!(!page.contains("Erase"), "{page}");
}
