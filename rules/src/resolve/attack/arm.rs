//! The numbers of an attack: from the sheet, the tables and the way the weapon is used.

use super::choose::Choice;
use crate::{
    resolve::{Context, error::Stop, outcome::Text},
    sheet::{Creature, NpcAttack, Range, Weapon, WeaponAbility},
    srd::{
        Ability, Class, DamageDice, DicePool, WeaponCategory, WeaponRule, base_weapon, damage_type, holds,
        magic_prefix, martial_arts_die, same,
    },
};

/// The reach of adjacent creatures in feet.
const REACH: i32 = 5;

/// The means of an attack, with numbers.
#[derive(Debug)]
pub(crate) struct Arm<'a> {
    pub(crate) name: &'a str,
    pub(crate) base: Option<&'static WeaponRule>,
    listed: &'a [String],
    /// The ability that it uses.
    pub(crate) ability: Option<Ability>,
    pub(crate) modifier: i32,
    pub(crate) proficient: bool,
    /// Magic bonus on attack and damage.
    pub(crate) magic: i32,
    /// The whole bonus, if it comes from a stat block.
    pub(crate) npc_bonus: Option<i32>,
    pub(crate) dice: DamageDice,
    pub(crate) damage_type: Text,
    /// Whether this is a ranged attack: shot or thrown.
    pub(crate) ranged: bool,
    /// Whether the weapon is a ranged weapon.
    pub(crate) ranged_weapon: bool,
    pub(crate) range: Option<Range>,
    pub(crate) reach: i32,
    /// Whether it is held in two hands.
    pub(crate) two_handed: bool,
    pub(crate) is_weapon: bool,
    pub(crate) notes: Vec<Text>,
}

impl Arm<'_> {
    /// Whether the weapon has a property, on the sheet or else in the tables.
    pub(crate) fn has(&self, property: &str) -> bool {
        has(self.listed, self.base, property)
    }

    /// Whether its damage is magical.
    pub(crate) fn is_magical(&self) -> bool {
        self.magic > 0 || self.listed.iter().any(|p| holds(p, "magic"))
    }

    /// Whether it is made of a material, or covered with it: as its properties or its name say.
    pub(crate) fn is_of(&self, material: &str) -> bool {
        self.listed.iter().map(String::as_str).chain([self.name]).any(|text| holds(text, material))
    }

    /// Whether Great Weapon Fighting rerolls the weapon's damage dice (SRD 5.1, "Fighting Style").
    pub(crate) fn is_great(&self, actor: &Creature) -> bool {
        let is_two_handed = self.two_handed && self.is_weapon && !self.ranged && !self.ranged_weapon;
        is_two_handed && actor.has_style("Great Weapon Fighting")
    }

    /// Whether it uses Strength.
    pub(crate) fn is_strength(&self) -> bool {
        self.ability == Some(Ability::Strength)
    }
}

/// What a weapon is made of, or that it is magical. Such marks stand beside the properties of a weapon of the SRD, and do not replace
/// them as a list of properties does.
const MARKS: [&str; 5] = ["adamantine", "cold iron", "magic", "mithral", "silver"];

fn has(listed: &[String], base: Option<&WeaponRule>, property: &str) -> bool {
    let is_mark = |listed: &String| MARKS.iter().any(|mark| holds(listed, mark));
    if listed.iter().all(is_mark) {
        return base.is_some_and(|b| b.has(property));
    }
    listed.iter().any(|p| {
        let word = p.split('(').next().unwrap_or_default().trim();
        same(word, property) || (property == "two-handed" && same(word, "two handed"))
    })
}

/// Makes an arm from a choice.
pub(crate) fn arm<'a>(
    actor: &'a Creature,
    choice: &Choice<'a>,
    two_handed: bool,
    context: &Context,
) -> Result<Arm<'a>, Stop> {
    match choice {
        Choice::Weapon(weapon) => {
            of_weapon(actor, &weapon.name, weapon, base_weapon(&weapon.name), two_handed, context)
        }
        Choice::Carried(name, base) => of_weapon(actor, name, plain(), Some(base), two_handed, context),
        Choice::Npc(attack) => of_npc(attack, context),
        Choice::Unarmed => Ok(unarmed(actor)),
        Choice::Improvised => Ok(improvised(actor, "Improvised weapon", context)),
    }
}

/// A weapon about which nothing is known.
fn plain() -> &'static Weapon {
    static PLAIN: Weapon = Weapon {
        name: String::new(),
        dice: None,
        versatile_dice: None,
        damage_type: None,
        ability: None,
        bonus: 0,
        properties: Vec::new(),
        range: None,
    };
    &PLAIN
}

fn of_weapon<'a>(
    actor: &Creature,
    name: &'a str,
    weapon: &'a Weapon,
    base: Option<&'static WeaponRule>,
    two_handed: bool,
    context: &Context,
) -> Result<Arm<'a>, Stop> {
    let listed = weapon.properties.as_slice();
    let has = |property| has(listed, base, property);
    let range = weapon.range.or_else(|| base.and_then(|b| b.range).map(of_table));
    let thrown = has("thrown");
    let ranged_weapon = base.map_or(range.is_some() && !thrown, |b| b.ranged);
    let reach = if has("reach") { REACH * 2 } else { REACH };
    let ranged = ranged_weapon || (thrown && context.distance_ft.is_some_and(|d| d > reach));
    let mut notes = Vec::new();
    let versatile = weapon.versatile_dice.as_deref().or_else(|| base.and_then(|b| b.versatile));
    let versatile = versatile.filter(|_| two_handed && !ranged);
    let versatile = versatile.filter(|_| {
        let free = !actor.carries_shield();
        if !free {
            notes.push("refused: two hands, because one of them holds a shield".into());
        }
        free
    });
    let written = versatile.or(weapon.dice.as_deref()).or_else(|| base.map(|b| b.damage));
    let dice = match written {
        Some("") => DamageDice::default(),
        Some(text) => DamageDice::parse(text)
            .ok_or_else(|| Stop::Impossible(format!("\"{text}\", the damage of {name}, is not a sum of dice")))?,
        None => {
            notes.push("used as an improvised weapon, because the sheet has no dice for it".into());
            DamageDice { pools: vec![DicePool { count: 1, faces: 4 }], ..DamageDice::default() }
        }
    };
    let kind = weapon.damage_type.as_deref().or(dice.damage_type).or_else(|| base.map(|b| b.damage_type));
    let kind = kind.unwrap_or("bludgeoning");
    let rule = weapon.ability.unwrap_or(match (ranged_weapon, has("finesse")) {
        (_, true) => WeaponAbility::Finesse,
        (true, false) => WeaponAbility::Dex,
        (false, false) => WeaponAbility::Str,
    });
    let two_handed = has("two-handed") || versatile.is_some();
    let lance = base.is_some_and(|b| b.name == "lance") && !context.mounted;
    let mut arm = Arm {
        name,
        base,
        listed,
        ability: None,
        modifier: 0,
        proficient: actor.wields(name, base),
        magic: if weapon.bonus == 0 { magic_prefix(name).0 } else { weapon.bonus },
        npc_bonus: None,
        dice,
        damage_type: typed(kind),
        ranged,
        ranged_weapon,
        range,
        reach,
        two_handed: two_handed || lance,
        is_weapon: true,
        notes,
    };
    arm.uses(actor, rule);
    martial_arts(actor, &mut arm);
    Ok(arm)
}

impl Arm<'_> {
    fn uses(&mut self, actor: &Creature, rule: WeaponAbility) {
        let (strength, dexterity) = (actor.modifier(Ability::Strength), actor.modifier(Ability::Dexterity));
        (self.ability, self.modifier) = match rule {
            WeaponAbility::None => (None, 0),
            WeaponAbility::Finesse if dexterity > strength => (Some(Ability::Dexterity), dexterity),
            WeaponAbility::Str | WeaponAbility::Finesse => (Some(Ability::Strength), strength),
            WeaponAbility::Dex => (Some(Ability::Dexterity), dexterity),
        };
    }
}

/// A monk's unarmed strikes and weapons (SRD 5.1, "Martial Arts").
fn martial_arts(actor: &Creature, arm: &mut Arm<'_>) {
    let monkish = arm.base.is_none_or(|b| {
        b.name == "shortsword"
            || (b.category == WeaponCategory::Simple && !b.ranged && !b.has("two-handed") && !b.has("heavy"))
    });
    let free = actor.worn_armor().is_none() && !actor.carries_shield();
    if !monkish || !free || arm.ranged_weapon || !actor.has_feature("Martial Arts") {
        return;
    }
    arm.uses(actor, WeaponAbility::Finesse);
    let faces = martial_arts_die(actor.feature_level(Class::Monk));
    let bigger = match arm.dice.pools.as_slice() {
        [] => true,
        [DicePool { count: 1, faces: own }] => faces > *own,
        _ => false,
    };
    if bigger && !arm.ranged {
        arm.dice = DamageDice { pools: vec![DicePool { count: 1, faces }], ..DamageDice::default() };
        arm.notes.push("Martial Arts: its die is used".into());
    }
}

fn of_table((normal, long): (u16, u16)) -> Range {
    Range { normal: i32::from(normal), long: Some(i32::from(long)) }
}

fn typed(kind: &str) -> Text {
    damage_type(kind).map_or_else(|| Text::Owned(kind.trim().to_owned()), Text::Borrowed)
}

fn of_npc<'a>(attack: &'a NpcAttack, context: &Context) -> Result<Arm<'a>, Stop> {
    let text = attack.damage.trim();
    let dice = if text.is_empty() { Some(DamageDice::default()) } else { DamageDice::parse(text) };
    let dice = dice
        .ok_or_else(|| Stop::Impossible(format!("\"{text}\", the damage of {}, is not a sum of dice", attack.name)))?;
    let reach = attack.reach_ft.unwrap_or(if attack.range.is_some() { 0 } else { REACH });
    let far = context.distance_ft.is_some_and(|d| d > reach);
    let ranged = attack.range.is_some() && (attack.reach_ft.is_none() || far);
    let base = base_weapon(&attack.name);
    let damage_type = match (attack.damage_type.trim(), dice.damage_type) {
        ("", Some(kind)) => kind.into(),
        (kind, _) => typed(kind),
    };
    Ok(Arm {
        name: &attack.name,
        base,
        listed: &[],
        ability: None,
        modifier: 0,
        proficient: false,
        magic: 0,
        npc_bonus: Some(attack.bonus),
        dice,
        damage_type,
        ranged,
        ranged_weapon: ranged && base.is_none_or(|b| b.ranged),
        range: attack.range,
        reach,
        two_handed: false,
        is_weapon: true,
        notes: Vec::new(),
    })
}

fn unarmed(actor: &Creature) -> Arm<'static> {
    let mut arm = bare("Unarmed Strike", true);
    arm.dice.flat = 1;
    arm.uses(actor, WeaponAbility::Str);
    martial_arts(actor, &mut arm);
    arm
}

/// An improvised weapon: 1d4, thrown to 20 or 60 feet, without proficiency.
fn improvised(actor: &Creature, name: &'static str, context: &Context) -> Arm<'static> {
    let mut arm = bare(name, false);
    arm.dice.pools.push(DicePool { count: 1, faces: 4 });
    arm.range = Some(Range { normal: 20, long: Some(60) });
    arm.ranged = context.distance_ft.is_some_and(|d| d > REACH);
    let rule = if arm.ranged { WeaponAbility::Dex } else { WeaponAbility::Str };
    arm.uses(actor, rule);
    arm
}

fn bare(name: &'static str, proficient: bool) -> Arm<'static> {
    Arm {
        name,
        base: None,
        listed: &[],
        ability: None,
        modifier: 0,
        proficient,
        magic: 0,
        npc_bonus: None,
        dice: DamageDice::default(),
        damage_type: "bludgeoning".into(),
        ranged: false,
        ranged_weapon: false,
        range: None,
        reach: REACH,
        two_handed: false,
        is_weapon: false,
        notes: Vec::new(),
    }
}
