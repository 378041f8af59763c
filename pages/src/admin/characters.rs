//! Characters in the editor.

use entity::character;
use serde_json::{Value, json};

use super::{
    Tab,
    form::{AI_LOCK, Field, Group, Kind, OTHER_PROGRAMS, SIZES},
    world_row::World,
};
use world::characters::Characters;

const ABILITIES: Kind = Kind::Choice(&[
    ("", "None"),
    ("strength", "Strength"),
    ("dexterity", "Dexterity"),
    ("constitution", "Constitution"),
    ("intelligence", "Intelligence"),
    ("wisdom", "Wisdom"),
    ("charisma", "Charisma"),
]);

impl World for Characters {
    const TAB: Tab = Tab::Characters;
    const ONE: &'static str = "character";
    const MANY: &'static str = "Characters";
    const PATH: &'static str = "characters";
    const IS_ERASED: bool = true;
    const ABOUT: &'static str = "The characters that people play, with their sheets.";
    const COLUMNS: &'static [&'static str] = &["Player", "Race and profession", "Level", "Hit points", "Location"];
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/name", "Name", Kind::Line).needed(),
                Field::new("/slug", "Slug", Kind::Line)
                    .hint("Its name in URLs and tools. Leave empty to derive it from the name."),
                Field::new("/player_name", "Player", Kind::Line),
                Field::new("/race", "Race", Kind::Line),
                Field::new("/profession", "Profession", Kind::Line),
                Field::new("/faction", "Faction", Kind::Line),
                Field::new("/level", "Level", Kind::Number),
                Field::new("/location", "Location", Kind::Line),
                Field::new("/size", "Size", SIZES),
                AI_LOCK,
            ],
        },
        Group {
            title: "Abilities",
            is_folded: false,
            fields: &[
                Field::new("/abilities/strength", "Strength", Kind::Number),
                Field::new("/abilities/dexterity", "Dexterity", Kind::Number),
                Field::new("/abilities/constitution", "Constitution", Kind::Number),
                Field::new("/abilities/intelligence", "Intelligence", Kind::Number),
                Field::new("/abilities/wisdom", "Wisdom", Kind::Number),
                Field::new("/abilities/charisma", "Charisma", Kind::Number),
            ],
        },
        Group {
            title: "In a fight",
            is_folded: false,
            fields: &[
                Field::new("/hp", "Hit points", Kind::Number),
                Field::new("/max_hp", "Maximum hit points", Kind::Number),
                Field::new("/temp_hp", "Temporary hit points", Kind::Number),
                Field::new("/armor_class", "Armor class", Kind::Number),
                Field::new("/speed", "Speed, feet", Kind::Number),
            ],
        },
        Group {
            title: "Proficiencies and defences",
            is_folded: true,
            fields: &[
                Field::new("/skill_proficiencies", "Skills", Kind::Words).hint("One per line."),
                Field::new("/saving_throw_proficiencies", "Saving throws", Kind::Words).hint("One per line."),
                Field::new("/weapon_proficiencies", "Weapons", Kind::Words).hint("One per line."),
                Field::new("/resistances", "Resistances", Kind::Words).hint("One per line."),
                Field::new("/immunities", "Immunities", Kind::Words).hint("One per line."),
                Field::new("/vulnerabilities", "Vulnerabilities", Kind::Words).hint("One per line."),
            ],
        },
        Group {
            title: "Weapons, features, inventory",
            is_folded: true,
            fields: &[
                Field::new("/weapons", "Weapons", Kind::Json { rows: 5 })
                    .hint("A list of {name, …}. With an SRD name, you may leave out the other members."),
                Field::new("/armor", "Armor", Kind::Json { rows: 2 }),
                Field::new("/shield", "Shield", Kind::Json { rows: 2 }),
                Field::new("/features", "Features", Kind::Json { rows: 4 }),
                Field::new("/resources", "Resources", Kind::Json { rows: 3 }).hint("A list of {name, max, remaining}."),
                Field::new("/inventory", "Inventory", Kind::Json { rows: 4 }),
            ],
        },
        Group {
            title: "Spells",
            is_folded: true,
            fields: &[
                Field::new("/spellcasting_ability", "Spellcasting ability", ABILITIES),
                Field::new("/spells", "Spells", Kind::Json { rows: 4 }),
                Field::new("/spell_slots", "Spell slots", Kind::Json { rows: 3 })
                    .hint("By level: {\"1\": {max, remaining}}."),
                Field::new("/concentration", "Concentration", Kind::Json { rows: 2 }),
            ],
        },
        Group {
            title: "Current state",
            is_folded: true,
            fields: &[
                Field::new("/conditions", "Conditions", Kind::Json { rows: 3 }),
                Field::new("/effects", "Effects", Kind::Json { rows: 3 }),
                Field::new("/hit_dice", "Hit dice", Kind::Json { rows: 2 }),
                Field::new("/death_saves/successes", "Death saves passed", Kind::Number),
                Field::new("/death_saves/failures", "Death saves failed", Kind::Number),
            ],
        },
        OTHER_PROGRAMS,
    ];

    fn cells(who: &character::Model) -> Vec<String> {
        vec![
            who.player_name.clone().unwrap_or_default(),
            format!("{} {}", who.race, who.profession).trim().to_owned(),
            who.level.to_string(),
            format!("{} of {}", who.hp, who.max_hp),
            who.location.clone().unwrap_or_default(),
        ]
    }

    fn blank() -> Value {
        json!({ "size": "medium" })
    }
}
