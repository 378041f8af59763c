//! The spells that resolvers know (SRD 5.1, "Spell Descriptions"): numbers only.

use super::{
    Ability::{self, Charisma, Constitution, Dexterity, Strength, Wisdom},
    Found, find,
    spells::{OnSave, Scaling, SpellDamage, SpellKind, SpellRule},
};

const fn hurt(dice: &'static str, damage_type: &'static str) -> SpellDamage {
    SpellDamage { dice, damage_type }
}

const fn rule(
    name: &'static str,
    level: u8,
    attack: SpellKind,
    damage: &'static [SpellDamage],
    range_ft: u16,
) -> SpellRule {
    SpellRule {
        name,
        level,
        attack,
        save: None,
        on_save: OnSave::None,
        damage,
        adds_modifier: false,
        shots: 1,
        upcast: "",
        upcast_per: 1,
        upcast_shots: 0,
        scaling: Scaling::None,
        range_ft,
        area_ft: None,
        sight: false,
        concentration: false,
        ignores_cover: false,
        condition: None,
        effect: None,
    }
}

const fn ranged(name: &'static str, level: u8, damage: &'static [SpellDamage], range_ft: u16) -> SpellRule {
    rule(name, level, SpellKind::Ranged, damage, range_ft)
}

const fn melee(name: &'static str, level: u8, damage: &'static [SpellDamage], range_ft: u16) -> SpellRule {
    rule(name, level, SpellKind::Melee, damage, range_ft)
}

const fn save(
    name: &'static str,
    level: u8,
    ability: Ability,
    on_save: OnSave,
    damage: &'static [SpellDamage],
    range_ft: u16,
) -> SpellRule {
    SpellRule { save: Some(ability), on_save, ..rule(name, level, SpellKind::Save, damage, range_ft) }
}

const fn healing(name: &'static str, level: u8, damage: &'static [SpellDamage], range_ft: u16) -> SpellRule {
    rule(name, level, SpellKind::Healing, damage, range_ft)
}

const fn effect(name: &'static str, level: u8, range_ft: u16) -> SpellRule {
    rule(name, level, SpellKind::Effect, &[], range_ft)
}

/// The spells, by level and name. A spell with several targets is resolved for one of them at a time.
pub const SPELLS: [SpellRule; 61] = [
    SpellRule { scaling: Scaling::Dice, ..save("Acid Splash", 0, Dexterity, OnSave::None, &[hurt("1d6", "acid")], 60) },
    SpellRule { scaling: Scaling::Dice, ..ranged("Chill Touch", 0, &[hurt("1d8", "necrotic")], 120) },
    SpellRule { scaling: Scaling::Beams, ..ranged("Eldritch Blast", 0, &[hurt("1d10", "force")], 120) },
    SpellRule { scaling: Scaling::Dice, ..ranged("Fire Bolt", 0, &[hurt("1d10", "fire")], 120) },
    SpellRule { concentration: true, effect: Some("Guidance"), ..effect("Guidance", 0, 5) },
    SpellRule {
        scaling: Scaling::Dice,
        sight: true,
        ..save("Poison Spray", 0, Constitution, OnSave::None, &[hurt("1d12", "poison")], 10)
    },
    SpellRule { scaling: Scaling::Dice, ..ranged("Produce Flame", 0, &[hurt("1d8", "fire")], 30) },
    SpellRule { scaling: Scaling::Dice, ..ranged("Ray of Frost", 0, &[hurt("1d8", "cold")], 60) },
    SpellRule { concentration: true, effect: Some("Resistance"), ..effect("Resistance", 0, 5) },
    SpellRule {
        scaling: Scaling::Dice,
        ignores_cover: true,
        sight: true,
        ..save("Sacred Flame", 0, Dexterity, OnSave::None, &[hurt("1d8", "radiant")], 60)
    },
    SpellRule { scaling: Scaling::Dice, ..melee("Shocking Grasp", 0, &[hurt("1d8", "lightning")], 5) },
    SpellRule {
        scaling: Scaling::Dice,
        sight: true,
        ..save("Vicious Mockery", 0, Wisdom, OnSave::None, &[hurt("1d4", "psychic")], 60)
    },
    SpellRule {
        concentration: true,
        effect: Some("Bane"),
        sight: true,
        ..save("Bane", 1, Charisma, OnSave::None, &[], 30)
    },
    SpellRule { concentration: true, effect: Some("Bless"), ..effect("Bless", 1, 30) },
    SpellRule {
        upcast: "1d6",
        upcast_per: 1,
        area_ft: Some(0),
        ..save("Burning Hands", 1, Dexterity, OnSave::Half, &[hurt("3d6", "fire")], 15)
    },
    SpellRule { condition: Some("charmed"), sight: true, ..save("Charm Person", 1, Wisdom, OnSave::None, &[], 30) },
    SpellRule { adds_modifier: true, upcast: "1d8", upcast_per: 1, ..healing("Cure Wounds", 1, &[hurt("1d8", "")], 5) },
    SpellRule {
        concentration: true,
        condition: Some("restrained"),
        area_ft: Some(20),
        ..save("Entangle", 1, Strength, OnSave::None, &[], 90)
    },
    SpellRule {
        concentration: true,
        effect: Some("Faerie Fire"),
        area_ft: Some(20),
        ..save("Faerie Fire", 1, Dexterity, OnSave::None, &[], 60)
    },
    SpellRule {
        upcast: "1d6",
        upcast_per: 1,
        effect: Some("Guiding Bolt"),
        ..ranged("Guiding Bolt", 1, &[hurt("4d6", "radiant")], 120)
    },
    SpellRule {
        adds_modifier: true,
        upcast: "1d4",
        upcast_per: 1,
        sight: true,
        ..healing("Healing Word", 1, &[hurt("1d4", "")], 60)
    },
    SpellRule {
        upcast: "1d10",
        upcast_per: 1,
        sight: true,
        ..save("Hellish Rebuke", 1, Dexterity, OnSave::Half, &[hurt("2d10", "fire")], 60)
    },
    SpellRule { concentration: true, effect: Some("Hunter's Mark"), sight: true, ..effect("Hunter's Mark", 1, 90) },
    SpellRule { upcast: "1d10", upcast_per: 1, ..melee("Inflict Wounds", 1, &[hurt("3d10", "necrotic")], 5) },
    SpellRule { effect: Some("Mage Armor"), ..effect("Mage Armor", 1, 5) },
    SpellRule {
        shots: 3,
        upcast_shots: 1,
        sight: true,
        ..rule("Magic Missile", 1, SpellKind::Automatic, &[hurt("1d4+1", "force")], 120)
    },
    SpellRule { effect: Some("Shield"), ..effect("Shield", 1, 0) },
    SpellRule { concentration: true, effect: Some("Shield of Faith"), ..effect("Shield of Faith", 1, 60) },
    SpellRule {
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(0),
        ..save("Thunderwave", 1, Constitution, OnSave::Half, &[hurt("2d8", "thunder")], 15)
    },
    SpellRule { upcast: "1d4", upcast_per: 1, ..ranged("Acid Arrow", 2, &[hurt("4d4", "acid")], 90) },
    SpellRule { concentration: true, effect: Some("Barkskin"), ..effect("Barkskin", 2, 5) },
    SpellRule {
        condition: Some("blinded"),
        sight: true,
        ..save("Blindness/Deafness", 2, Constitution, OnSave::None, &[], 30)
    },
    SpellRule { concentration: true, effect: Some("Blur"), ..effect("Blur", 2, 0) },
    SpellRule {
        concentration: true,
        condition: Some("paralyzed"),
        sight: true,
        ..save("Hold Person", 2, Wisdom, OnSave::None, &[], 60)
    },
    SpellRule { concentration: true, condition: Some("invisible"), ..effect("Invisibility", 2, 5) },
    SpellRule {
        concentration: true,
        upcast: "1d10",
        upcast_per: 1,
        area_ft: Some(5),
        ..save("Moonbeam", 2, Constitution, OnSave::Half, &[hurt("2d10", "radiant")], 120)
    },
    SpellRule {
        adds_modifier: true,
        upcast: "1d8",
        upcast_per: 1,
        sight: true,
        ..healing("Prayer of Healing", 2, &[hurt("2d8", "")], 30)
    },
    SpellRule { shots: 3, upcast_shots: 1, ..ranged("Scorching Ray", 2, &[hurt("2d6", "fire")], 120) },
    SpellRule {
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(10),
        ..save("Shatter", 2, Constitution, OnSave::Half, &[hurt("3d8", "thunder")], 60)
    },
    SpellRule {
        adds_modifier: true,
        upcast: "1d8",
        upcast_per: 2,
        ..melee("Spiritual Weapon", 2, &[hurt("1d8", "force")], 60)
    },
    SpellRule {
        concentration: true,
        condition: Some("restrained"),
        area_ft: Some(20),
        ..save("Web", 2, Dexterity, OnSave::None, &[], 60)
    },
    SpellRule {
        concentration: true,
        upcast: "1d10",
        upcast_per: 1,
        area_ft: Some(5),
        ..save("Call Lightning", 3, Dexterity, OnSave::Half, &[hurt("3d10", "lightning")], 120)
    },
    SpellRule {
        upcast: "1d6",
        upcast_per: 1,
        area_ft: Some(20),
        ..save("Fireball", 3, Dexterity, OnSave::Half, &[hurt("8d6", "fire")], 150)
    },
    SpellRule { concentration: true, effect: Some("Haste"), sight: true, ..effect("Haste", 3, 30) },
    SpellRule {
        upcast: "1d6",
        upcast_per: 1,
        area_ft: Some(0),
        ..save("Lightning Bolt", 3, Dexterity, OnSave::Half, &[hurt("8d6", "lightning")], 100)
    },
    SpellRule {
        adds_modifier: true,
        upcast: "1d4",
        upcast_per: 1,
        sight: true,
        ..healing("Mass Healing Word", 3, &[hurt("1d4", "")], 60)
    },
    SpellRule {
        concentration: true,
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(0),
        ..save("Spirit Guardians", 3, Wisdom, OnSave::Half, &[hurt("3d8", "radiant")], 15)
    },
    SpellRule {
        concentration: true,
        upcast: "1d6",
        upcast_per: 1,
        ..melee("Vampiric Touch", 3, &[hurt("3d6", "necrotic")], 5)
    },
    SpellRule {
        upcast: "1d8",
        upcast_per: 1,
        sight: true,
        ..save("Blight", 4, Constitution, OnSave::Half, &[hurt("8d8", "necrotic")], 30)
    },
    SpellRule {
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(20),
        ..save("Ice Storm", 4, Dexterity, OnSave::Half, &[hurt("2d8", "bludgeoning"), hurt("4d6", "cold")], 300)
    },
    SpellRule {
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(0),
        ..save("Cone of Cold", 5, Constitution, OnSave::Half, &[hurt("8d8", "cold")], 60)
    },
    SpellRule {
        upcast: "1d6",
        upcast_per: 1,
        area_ft: Some(10),
        ..save("Flame Strike", 5, Dexterity, OnSave::Half, &[hurt("4d6", "fire"), hurt("4d6", "radiant")], 60)
    },
    SpellRule {
        concentration: true,
        condition: Some("paralyzed"),
        sight: true,
        ..save("Hold Monster", 5, Wisdom, OnSave::None, &[], 90)
    },
    SpellRule {
        adds_modifier: true,
        upcast: "1d8",
        upcast_per: 1,
        area_ft: Some(30),
        ..healing("Mass Cure Wounds", 5, &[hurt("3d8", "")], 60)
    },
    SpellRule {
        area_ft: Some(30),
        ..save("Chain Lightning", 6, Dexterity, OnSave::Half, &[hurt("10d8", "lightning")], 150)
    },
    SpellRule {
        upcast: "3d6",
        upcast_per: 1,
        sight: true,
        ..save("Disintegrate", 6, Dexterity, OnSave::None, &[hurt("10d6+40", "force")], 60)
    },
    SpellRule { sight: true, ..save("Harm", 6, Constitution, OnSave::Half, &[hurt("14d6", "necrotic")], 60) },
    SpellRule { upcast: "10", upcast_per: 1, sight: true, ..healing("Heal", 6, &[hurt("70", "")], 60) },
    SpellRule {
        sight: true,
        ..save("Finger of Death", 7, Constitution, OnSave::Half, &[hurt("7d8+30", "necrotic")], 60)
    },
    SpellRule {
        condition: Some("blinded"),
        area_ft: Some(60),
        ..save("Sunburst", 8, Constitution, OnSave::Half, &[hurt("12d6", "radiant")], 150)
    },
    SpellRule {
        area_ft: Some(40),
        ..save("Meteor Swarm", 9, Dexterity, OnSave::Half, &[hurt("20d6", "fire"), hurt("20d6", "bludgeoning")], 5280)
    },
];

/// The spell with this name: an exact match, then in any case, then the only one whose name contains it.
#[must_use]
pub fn spell(name: &str) -> Found<&'static SpellRule> {
    find(&SPELLS, |s| s.name, name)
}
