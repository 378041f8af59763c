//! A sheet or stat block as people know it from the book: the numbers are those that the rules would roll with.

use askama::Template;
use entity::{character, npc, shapes::Stats};
use rules::{
    resolve::{SheetAttack, initiative_bonus, save_bonus, sheet_attacks, skill_bonus},
    sheet::{Creature, KnownSpell, Range},
    srd::{self, Ability, Found, SKILLS, spell},
};
use serde_json::Value;
use world::rules::sheet;

/// The most names that a list shows, and the most characters of each. Rows may hold far more.
const LISTED_MAX: usize = 60;
const NAME_CHARS_MAX: usize = 120;

/// A sheet.
#[derive(Template)]
#[template(path = "sheet.html")]
pub struct Sheet {
    heading: &'static str,
    /// `Medium humanoid`, or `Level 3`.
    kind: String,
    armor_class: i32,
    hp: i32,
    max_hp: i32,
    temp_hp: i32,
    speed: i32,
    initiative: String,
    proficiency: Option<String>,
    abilities: Vec<AbilityBox>,
    skills: Vec<Skill>,
    attacks: Vec<Attack>,
    casting: Option<Casting>,
    counters: Vec<Counter>,
    /// Conditions and effects.
    states: Vec<String>,
    /// A label, and names: resistances, features, what is carried.
    lists: Vec<(&'static str, Vec<String>)>,
    /// Where rolls are posted; none where nobody rolls.
    rolls: Option<String>,
    rolls_attacks: bool,
}

/// An ability in its box.
struct AbilityBox {
    label: &'static str,
    title: &'static str,
    score: i32,
    modifier: String,
    save: String,
    is_trained: bool,
}

/// A skill, and what a check adds.
struct Skill {
    name: String,
    bonus: String,
    is_trained: bool,
}

/// An attack with its numbers.
struct Attack {
    name: String,
    /// The name as the sheet has it.
    full_name: String,
    bonus: String,
    damage: String,
    range: String,
    problem: Option<String>,
}

/// What a caster casts with, and its spells by level.
struct Casting {
    ability: &'static str,
    save_dc: i32,
    levels: Vec<SpellLevel>,
}

/// The spells and slots of a level.
struct SpellLevel {
    label: String,
    /// Slots that are left, and all.
    slots: Option<(i32, i32)>,
    names: Vec<String>,
}

/// Something that is used up and comes back.
struct Counter {
    name: String,
    left: i32,
    of: i32,
}

impl Sheet {
    /// A character's sheet.
    #[must_use]
    pub fn of_character(row: &character::Model) -> Self {
        Self::of_creature(row, &sheet::of_character(row.clone()))
    }

    /// A character's sheet, with what the rules know of it now.
    #[must_use]
    pub fn of_creature(row: &character::Model, creature: &Creature) -> Self {
        let mut counters: Vec<Counter> = creature
            .resources
            .iter()
            .take(LISTED_MAX)
            .map(|r| Counter { name: short(&r.name), left: r.remaining, of: r.max })
            .collect();
        if let Some(dice) = creature.hit_dice {
            counters
                .insert(0, Counter { name: format!("Hit dice (d{})", dice.die), left: dice.remaining, of: dice.max });
        }
        let saves = creature.death_saves;
        if saves.successes > 0 || saves.failures > 0 {
            counters.push(Counter { name: "Death saves passed".to_owned(), left: saves.successes, of: 3 });
            counters.push(Counter { name: "Death saves failed".to_owned(), left: saves.failures, of: 3 });
        }
        let mut sheet = Self::of(creature, &row.inventory.0);
        sheet.heading = "Sheet";
        sheet.kind = format!("Level {}, {}", row.level, row.size);
        sheet.proficiency = Some(signed(creature.proficiency_bonus()));
        sheet.skills = skills(creature);
        sheet.casting = casting(creature);
        sheet.counters = counters;
        sheet
    }

    /// An NPC's stat block. None for one that only talks, and has none.
    #[must_use]
    pub fn of_npc(row: &npc::Model) -> Option<Self> {
        let is_plain = row.stats.0 == Stats::default() && row.conditions.0.is_empty() && row.effects.0.is_empty();
        if is_plain && row.inventory.0.is_empty() {
            return None;
        }
        let mut sheet = Self::of(&sheet::of_npc(row.clone()), &row.inventory.0);
        sheet.kind = short(&format!("{} {}", row.stats.size, row.stats.creature_type));
        Some(sheet)
    }

    /// The sheet with buttons that roll, for its player. In a fight attacks are the fight's.
    #[must_use]
    pub fn rolling_at(self, path: String, rolls_attacks: bool) -> Self {
        Self { rolls: Some(path), rolls_attacks, ..self }
    }

    fn of(creature: &Creature, inventory: &[Value]) -> Self {
        let names = |names: &[String]| names.iter().take(LISTED_MAX).map(|name| short(name)).collect::<Vec<_>>();
        let states = creature.conditions.iter().map(|c| match c.level {
            Some(level) => format!("{} {level}", short(&c.name)),
            None => short(&c.name),
        });
        let effects = creature.effects.iter().map(|e| short(&e.name));
        let concentration = creature.concentration.iter().map(|c| format!("concentrates: {}", short(&c.spell)));
        let worn = [&creature.armor, &creature.shield].into_iter().flatten().filter(|worn| !worn.name.is_empty());
        let features = creature.features.iter().take(LISTED_MAX).map(|f| match &f.chosen_option {
            Some(option) if !option.is_empty() => format!("{} ({})", short(&f.name), short(option)),
            _ => short(&f.name),
        });
        let carried = worn.map(|worn| short(&worn.name)).chain(inventory.iter().filter_map(item));
        let mut lists = vec![
            ("Resistances", names(&creature.resistances)),
            ("Immunities", names(&creature.immunities)),
            ("Vulnerabilities", names(&creature.vulnerabilities)),
            ("Condition immunities", names(&creature.condition_immunities)),
            ("Features", features.collect()),
            ("Carries", carried.take(LISTED_MAX).collect()),
        ];
        lists.retain(|(_, names)| !names.is_empty());
        Self {
            heading: "Stat block",
            kind: String::new(),
            armor_class: creature.armor_class_now().total,
            hp: creature.hp,
            max_hp: creature.max_hp,
            temp_hp: creature.temp_hp,
            speed: creature.speed,
            initiative: signed(initiative_bonus(creature)),
            proficiency: None,
            abilities: Ability::ALL.into_iter().map(|ability| ability_box(creature, ability)).collect(),
            skills: Vec::new(),
            attacks: sheet_attacks(creature).into_iter().take(LISTED_MAX).map(Attack::of).collect(),
            casting: None,
            counters: Vec::new(),
            rolls: None,
            rolls_attacks: false,
            states: states.chain(effects).chain(concentration).take(LISTED_MAX).collect(),
            lists,
        }
    }
}

impl Attack {
    fn of(attack: SheetAttack) -> Self {
        let feet = |range: Range| match range.long.filter(|long| *long > range.normal) {
            Some(long) => format!("{}/{long} ft", range.normal),
            None => format!("{} ft", range.normal),
        };
        let reach = (attack.reach_ft > 0).then(|| format!("{} ft", attack.reach_ft));
        let range = reach.into_iter().chain(attack.range.map(feet)).collect::<Vec<_>>().join(" or ");
        Self {
            name: short(&attack.name),
            full_name: attack.name,
            bonus: signed(attack.bonus),
            damage: short(format!("{} {}", attack.damage, attack.damage_type).trim()),
            range,
            problem: attack.problem.as_deref().map(short),
        }
    }
}

fn ability_box(creature: &Creature, ability: Ability) -> AbilityBox {
    let listed = |name: &String| Ability::named(name) == Some(ability);
    AbilityBox {
        label: ability.label(),
        title: ability.title(),
        score: creature.abilities.score(ability),
        modifier: signed(creature.modifier(ability)),
        save: signed(save_bonus(creature, ability)),
        is_trained: creature.saves_with(ability) || creature.saving_throws.keys().any(listed),
    }
}

/// All skills, by name.
fn skills(creature: &Creature) -> Vec<Skill> {
    let is_trained = |skill: &rules::srd::Skill| {
        creature
            .skill_proficiencies
            .iter()
            .any(|listed| srd::skill(listed).is_some_and(|known| known.name == skill.name))
    };
    let shown = |skill: &'static rules::srd::Skill| Skill {
        name: skill.title(),
        bonus: signed(skill_bonus(creature, skill)),
        is_trained: is_trained(skill),
    };
    SKILLS.iter().map(shown).collect()
}

/// The spells and slots by level; none for a creature without any.
fn casting(creature: &Creature) -> Option<Casting> {
    if creature.spells.is_empty() && creature.spell_slots.is_empty() {
        return None;
    }
    let level_of = |known: &KnownSpell| match known {
        KnownSpell::Own(own) => Some(own.level).filter(|level| (0..=9).contains(level)),
        KnownSpell::Name(name) => match spell(name) {
            Found::One(rule) => Some(i32::from(rule.level)),
            _ => None,
        },
    };
    let of_level = |level: Option<i32>| {
        let known = creature.spells.iter().filter(|known| level_of(known) == level);
        known.take(LISTED_MAX).map(|known| short(known.name())).collect::<Vec<_>>()
    };
    let mut levels: Vec<SpellLevel> = (0..=9)
        .map(|level| {
            let slots = creature.spell_slots.iter().find(|(key, _)| key.trim().parse() == Ok(level));
            SpellLevel {
                label: if level == 0 { "Cantrips".to_owned() } else { format!("Level {level}") },
                slots: slots.map(|(_, slot)| (slot.remaining, slot.max)).filter(|(_, max)| *max > 0),
                names: of_level(Some(level)),
            }
        })
        .collect();
    levels.push(SpellLevel { label: "Other spells".to_owned(), slots: None, names: of_level(None) });
    levels.retain(|level| level.slots.is_some() || !level.names.is_empty());
    Some(Casting { ability: creature.casting_ability().title(), save_dc: creature.spell_save_dc(), levels })
}

/// A carried thing, with how many there are.
fn item(value: &Value) -> Option<String> {
    let name = value.as_str().or_else(|| value["name"].as_str()).filter(|name| !name.trim().is_empty())?;
    let count = ["quantity", "count", "amount"].iter().find_map(|key| value[*key].as_i64()).filter(|n| *n != 1);
    Some(match count {
        Some(count) => format!("{} × {count}", short(name)),
        None => short(name),
    })
}

/// A number with its sign.
fn signed(number: i32) -> String {
    if number < 0 { format!("−{}", number.unsigned_abs()) } else { format!("+{number}") }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(NAME_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
