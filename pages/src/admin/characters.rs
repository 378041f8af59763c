//! Characters in the editor.

use entity::character;
use serde_json::{Value, json};

use super::{
    Tab,
    form::{
        AI_LOCK, CONDITIONS, Cell, Column, EFFECTS, Field, Group, INVENTORY, Kind, OTHER_PROGRAMS, Rows, SIZES, Shape,
        WORN,
    },
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

const WEAPONS: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("name", "Weapon").offers("srd-weapons"),
        Column::text("dice", "Damage"),
        Column::text("damage_type", "Damage type").offers("srd-damage"),
        Column::number("bonus", "Magic bonus"),
        Column::of("properties", "Properties", Cell::Words),
    ],
});

const FEATURES: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("name", "Feature"),
        Column::number("level", "Level"),
        Column::text("chosen_option", "Chosen option"),
        Column::of("description", "What it does", Cell::Lines),
    ],
});

const RESOURCES: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[Column::text("name", "Resource"), Column::number("remaining", "Left"), Column::number("max", "Of")],
});

const SPELLS: Kind = Kind::Rows(&Rows {
    shape: Shape::Named,
    columns: &[
        Column::text("name", "Spell").offers("srd-spells"),
        Column::number("level", "Level"),
        Column::of("attack", "Attack", Cell::Choice(&["ranged", "melee", "save", "none"])),
        Column::text("damage", "Damage"),
        Column::text("damage_type", "Damage type").offers("srd-damage"),
    ],
});

const SLOTS: Kind = Kind::Rows(&Rows {
    shape: Shape::ByKey,
    columns: &[Column::number("level", "Level"), Column::number("remaining", "Left"), Column::number("max", "Of")],
});

const CONCENTRATION: Kind =
    Kind::Rows(&Rows { shape: Shape::One, columns: &[Column::text("spell", "Spell").offers("srd-spells")] });

const HIT_DICE: Kind = Kind::Rows(&Rows {
    shape: Shape::One,
    columns: &[
        Column::number("die", "Sides of the die"),
        Column::number("remaining", "Left"),
        Column::number("max", "Of"),
    ],
});

impl World for Characters {
    const TAB: Tab = Tab::Characters;
    const ONE: &'static str = "character";
    const MANY: &'static str = "Characters";
    const PATH: &'static str = "characters";
    const IS_ERASED: bool = true;
    const ABOUT: &'static str = "The characters that people play, with their sheets.";
    const EXAMPLE: &'static str = "Alice, a rogue of level 1 at the location gilded_gull, is enough to play.";
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
                Field::new("/weapons", "Weapons", WEAPONS)
                    .hint("A weapon with an SRD name needs no more than the name."),
                Field::new("/armor", "Armor", WORN),
                Field::new("/shield", "Shield", WORN),
                Field::new("/features", "Features", FEATURES),
                Field::new("/resources", "Resources", RESOURCES),
                Field::new("/inventory", "Inventory", INVENTORY),
            ],
        },
        Group {
            title: "Spells",
            is_folded: true,
            fields: &[
                Field::new("/spellcasting_ability", "Spellcasting ability", ABILITIES),
                Field::new("/spells", "Spells", SPELLS)
                    .hint("A spell with an SRD name needs no more than the name. Any other needs a level, 0 for a cantrip, and how it attacks."),
                Field::new("/spell_slots", "Spell slots", SLOTS),
                Field::new("/concentration", "Concentration", CONCENTRATION),
            ],
        },
        Group {
            title: "Current state",
            is_folded: true,
            fields: &[
                Field::new("/conditions", "Conditions", CONDITIONS),
                Field::new("/effects", "Effects", EFFECTS),
                Field::new("/hit_dice", "Hit dice", HIT_DICE),
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
