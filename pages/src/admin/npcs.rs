//! NPCs in the editor.

use entity::npc;
use serde_json::{Value, json};

use super::{
    Tab,
    form::{
        AI_LOCK, CONDITIONS, Column, EFFECTS, Field, GUIDANCE, Group, INVENTORY, Kind, OTHER_PROGRAMS, Rows, SIZES,
        Shape,
    },
    world_row::World,
};

use entity::kind::EntityKind;
use world::npcs::{MEMORY_TOOL, Npcs};

const SAVES: Kind = Kind::Rows(&Rows {
    shape: Shape::Numbers,
    columns: &[Column::text("ability", "Ability").offers("srd-abilities"), Column::number("bonus", "Bonus")],
});

const ATTACKS: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("name", "Attack").offers("srd-weapons"),
        Column::number("bonus", "Bonus"),
        Column::text("damage", "Damage"),
        Column::text("damage_type", "Damage type").offers("srd-damage"),
        Column::number("reach_ft", "Reach, feet"),
    ],
});

impl World for Npcs {
    const TAB: Tab = Tab::Npcs;
    const ONE: &'static str = "NPC";
    const MANY: &'static str = "NPCs";
    const PATH: &'static str = "npcs";
    const ABOUT: &'static str =
        "The characters that the AI speaks for: how they speak, which tools they have, and their stats in a fight.";
    const EXAMPLE: &'static str = "An innkeeper with a name and two sentences, such as “Gruff. Knows every sailor by name.”, is enough to talk to.";
    const COLUMNS: &'static [&'static str] = &["Race and profession", "Location", "Disposition"];
    const REACTS: bool = true;
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/name", "Name", Kind::Line).needed(),
                Field::new("/slug", "Slug", Kind::Line)
                    .hint("Its name in URLs and tools. Leave empty to derive it from the name."),
                Field::new("/race", "Race", Kind::Line),
                Field::new("/profession", "Profession", Kind::Line),
                Field::new("/location", "Location", Kind::Line).hint(
                    "Also decides which owners and which lore of a location apply to this NPC, and which actions it \
                     notices.",
                ),
                Field::new("/faction", "Faction", Kind::Line),
                Field::new("/reaction_threshold", "Reaction threshold", Kind::Number).hint(
                    "The NPC reacts by itself when its score for a character reaches this number. Leave empty for never.",
                ),
                Field::new("/immediate_threshold", "Immediate threshold", Kind::Number).hint(
                    "The NPC reacts at once to a single action with this score. Leave empty for never.",
                ),
                Field::new("/disposition", "Disposition", Kind::Line).hint("Leave empty for neutral."),
                Field::new("/model", "Model profile", Kind::Line)
                    .hint("Slug of the model profile that this NPC uses. Leave empty for the campaign's choice."),
                Field::new("/description", "Description", Kind::Text { rows: 5 }).hint("What others see of this NPC."),
                Field::new("/personality_prompt", "Personality", Kind::Text { rows: 8 })
                    .hint("How the model should play this NPC. The NPC's prompt begins with this text."),
            ],
        },
        GUIDANCE,
        Group {
            title: "Owners and tools",
            is_folded: true,
            fields: &[
                Field::new("/owner_ids", "Owners", Kind::Words).hint("Slugs or ids, one per line."),
                Field::new("/available_tools", "Tools", Kind::Tools(EntityKind::Npc))
                    .hint("For tools with your own descriptions or limits: a JSON list of {name, description, parameters, exclusive}."),
                AI_LOCK,
            ],
        },
        Group {
            title: "Stat block",
            is_folded: true,
            fields: &[
                Field::new("/stats/armor_class", "Armor class", Kind::Number),
                Field::new("/stats/hp", "Hit points", Kind::Number),
                Field::new("/stats/max_hp", "Maximum hit points", Kind::Number),
                Field::new("/stats/temp_hp", "Temporary hit points", Kind::Number),
                Field::new("/stats/speed", "Speed, feet", Kind::Number),
                Field::new("/stats/size", "Size", SIZES),
                Field::new("/stats/creature_type", "Creature type", Kind::Line),
                Field::new("/stats/resistances", "Resistances", Kind::Words).hint("One per line."),
                Field::new("/stats/immunities", "Immunities", Kind::Words).hint("One per line."),
                Field::new("/stats/vulnerabilities", "Vulnerabilities", Kind::Words).hint("One per line."),
                Field::new("/stats/condition_immunities", "Condition immunities", Kind::Words).hint("One per line."),
                Field::new("/stats/abilities/strength", "Strength", Kind::Number),
                Field::new("/stats/abilities/dexterity", "Dexterity", Kind::Number),
                Field::new("/stats/abilities/constitution", "Constitution", Kind::Number),
                Field::new("/stats/abilities/intelligence", "Intelligence", Kind::Number),
                Field::new("/stats/abilities/wisdom", "Wisdom", Kind::Number),
                Field::new("/stats/abilities/charisma", "Charisma", Kind::Number),
                Field::new("/stats/saving_throws", "Saving throws", SAVES)
                    .hint("Only those that differ from the ability."),
                Field::new("/stats/attacks", "Attacks", ATTACKS),
            ],
        },
        Group {
            title: "Current state",
            is_folded: true,
            fields: &[
                Field::new("/conditions", "Conditions", CONDITIONS),
                Field::new("/effects", "Effects", EFFECTS),
                Field::new("/inventory", "Inventory", INVENTORY),
            ],
        },
        OTHER_PROGRAMS,
    ];

    fn cells(npc: &npc::Model) -> Vec<String> {
        let who: Vec<&str> = [npc.race.as_deref(), npc.profession.as_deref()].into_iter().flatten().collect();
        vec![who.join(" "), npc.location.clone().unwrap_or_default(), npc.disposition.clone()]
    }

    fn blank() -> Value {
        json!({
            "stats": { "size": "medium" },
            "available_tools": [MEMORY_TOOL],
        })
    }
}
