//! The 37 weapons (SRD 5.1, "Equipment: Weapons").

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Found, find,
    lookup::{holds, same},
};

/// The training that a weapon requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WeaponCategory {
    /// Most people can use it.
    Simple,
    /// It requires training.
    Martial,
}

/// A weapon's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SrdWeapon)]
pub struct WeaponRule {
    /// Lower-case name.
    #[schema(value_type = String)]
    pub name: &'static str,
    /// Simple or martial.
    pub category: WeaponCategory,
    /// Whether it is a ranged weapon. A melee weapon that can be thrown is not.
    pub ranged: bool,
    /// Damage dice, or a number; empty for the net, which does no damage.
    #[schema(value_type = String)]
    pub damage: &'static str,
    /// Damage type; empty for the net.
    #[schema(value_type = String)]
    pub damage_type: &'static str,
    /// Property names, lower case.
    #[schema(value_type = Vec<String>)]
    pub properties: &'static [&'static str],
    /// Normal and long range in feet, for ranged and thrown weapons.
    #[schema(value_type = Option<Vec<u16>>, required = true)]
    pub range: Option<(u16, u16)>,
    /// Damage dice when used with two hands.
    #[schema(value_type = Option<String>, required = true)]
    pub versatile: Option<&'static str>,
}

impl WeaponRule {
    /// Whether it has the property, lower case.
    #[must_use]
    pub fn has(&self, property: &str) -> bool {
        self.properties.contains(&property)
    }
}

use WeaponCategory::{Martial, Simple};

const fn melee(
    name: &'static str,
    category: WeaponCategory,
    damage: &'static str,
    damage_type: &'static str,
    properties: &'static [&'static str],
) -> WeaponRule {
    WeaponRule { name, category, ranged: false, damage, damage_type, properties, range: None, versatile: None }
}

const fn ranged(
    name: &'static str,
    category: WeaponCategory,
    damage: &'static str,
    damage_type: &'static str,
    properties: &'static [&'static str],
    range: (u16, u16),
) -> WeaponRule {
    WeaponRule { name, category, ranged: true, damage, damage_type, properties, range: Some(range), versatile: None }
}

const fn thrown(weapon: WeaponRule, normal: u16, long: u16) -> WeaponRule {
    WeaponRule { range: Some((normal, long)), ..weapon }
}

const fn versatile(weapon: WeaponRule, dice: &'static str) -> WeaponRule {
    WeaponRule { versatile: Some(dice), ..weapon }
}

const B: &str = "bludgeoning";
const P: &str = "piercing";
const S: &str = "slashing";

/// All weapons: simple melee, simple ranged, martial melee, martial ranged.
pub const WEAPONS: [WeaponRule; 37] = [
    melee("club", Simple, "1d4", B, &["light"]),
    thrown(melee("dagger", Simple, "1d4", P, &["finesse", "light", "thrown"]), 20, 60),
    melee("greatclub", Simple, "1d8", B, &["two-handed"]),
    thrown(melee("handaxe", Simple, "1d6", S, &["light", "thrown"]), 20, 60),
    thrown(melee("javelin", Simple, "1d6", P, &["thrown"]), 30, 120),
    thrown(melee("light hammer", Simple, "1d4", B, &["light", "thrown"]), 20, 60),
    melee("mace", Simple, "1d6", B, &[]),
    versatile(melee("quarterstaff", Simple, "1d6", B, &["versatile"]), "1d8"),
    melee("sickle", Simple, "1d4", S, &["light"]),
    versatile(thrown(melee("spear", Simple, "1d6", P, &["thrown", "versatile"]), 20, 60), "1d8"),
    ranged("light crossbow", Simple, "1d8", P, &["ammunition", "loading", "two-handed"], (80, 320)),
    ranged("dart", Simple, "1d4", P, &["finesse", "thrown"], (20, 60)),
    ranged("shortbow", Simple, "1d6", P, &["ammunition", "two-handed"], (80, 320)),
    ranged("sling", Simple, "1d4", B, &["ammunition"], (30, 120)),
    versatile(melee("battleaxe", Martial, "1d8", S, &["versatile"]), "1d10"),
    melee("flail", Martial, "1d8", B, &[]),
    melee("glaive", Martial, "1d10", S, &["heavy", "reach", "two-handed"]),
    melee("greataxe", Martial, "1d12", S, &["heavy", "two-handed"]),
    melee("greatsword", Martial, "2d6", S, &["heavy", "two-handed"]),
    melee("halberd", Martial, "1d10", S, &["heavy", "reach", "two-handed"]),
    melee("lance", Martial, "1d12", P, &["reach", "special"]),
    versatile(melee("longsword", Martial, "1d8", S, &["versatile"]), "1d10"),
    melee("maul", Martial, "2d6", B, &["heavy", "two-handed"]),
    melee("morningstar", Martial, "1d8", P, &[]),
    melee("pike", Martial, "1d10", P, &["heavy", "reach", "two-handed"]),
    melee("rapier", Martial, "1d8", P, &["finesse"]),
    melee("scimitar", Martial, "1d6", S, &["finesse", "light"]),
    melee("shortsword", Martial, "1d6", P, &["finesse", "light"]),
    versatile(thrown(melee("trident", Martial, "1d6", P, &["thrown", "versatile"]), 20, 60), "1d8"),
    melee("war pick", Martial, "1d8", P, &[]),
    versatile(melee("warhammer", Martial, "1d8", B, &["versatile"]), "1d10"),
    melee("whip", Martial, "1d4", S, &["finesse", "reach"]),
    ranged("blowgun", Martial, "1", P, &["ammunition", "loading"], (25, 100)),
    ranged("hand crossbow", Martial, "1d6", P, &["ammunition", "light", "loading"], (30, 120)),
    ranged("heavy crossbow", Martial, "1d10", P, &["ammunition", "heavy", "loading", "two-handed"], (100, 400)),
    ranged("longbow", Martial, "1d8", P, &["ammunition", "heavy", "two-handed"], (150, 600)),
    ranged("net", Martial, "", "", &["special", "thrown"], (5, 15)),
];

/// The weapon with this name: an exact match, then in any case, then the only one whose name contains it.
#[must_use]
pub fn weapon(name: &str) -> Found<&'static WeaponRule> {
    find(&WEAPONS, |w| w.name, name)
}

/// The weapon that an item is a kind of: by its own name, by its name without a magic bonus (`+1 longsword`,
/// `Longsword, +2`), by a reversed name (`crossbow, light` for `light crossbow`), or by the longest weapon name that it
/// contains as a word (`Flaming Longsword`).
#[must_use]
pub fn base_weapon(item: &str) -> Option<&'static WeaponRule> {
    let item = magic_prefix(item).1;
    if let Some(weapon) = WEAPONS.iter().find(|w| same(w.name, item)) {
        return Some(weapon);
    }
    if let Some((kind, which)) = item.split_once(", ") {
        let turned = |w: &&WeaponRule| {
            w.name.split_once(' ').is_some_and(|(first, last)| same(first, which) && same(last, kind))
        };
        if let Some(weapon) = WEAPONS.iter().find(turned) {
            return Some(weapon);
        }
    }
    WEAPONS.iter().filter(|w| as_word(item, w.name)).max_by_key(|w| w.name.len())
}

/// Whether `text` contains `word` without letters before or after it.
fn as_word(text: &str, word: &str) -> bool {
    if !holds(text, word) {
        return false;
    }
    let bytes = text.as_bytes();
    let bounded = |start: usize| {
        let end = start + word.len();
        (start == 0 || !bytes[start - 1].is_ascii_alphanumeric())
            && bytes.get(end).is_none_or(|b| !b.is_ascii_alphanumeric())
    };
    bytes
        .windows(word.len())
        .enumerate()
        .any(|(start, part)| part.eq_ignore_ascii_case(word.as_bytes()) && bounded(start))
}

/// The magic bonus at the beginning or end of an item's name, and the rest of the name: `+1 longsword` is `(1,
/// "longsword")`.
#[must_use]
pub fn magic_prefix(item: &str) -> (i32, &str) {
    let item = item.trim();
    let bonus = |text: &str| text.strip_prefix('+').and_then(|n| n.parse::<i32>().ok()).filter(|n| (1..=9).contains(n));
    if let Some((first, rest)) = item.split_once(' ')
        && let Some(bonus) = bonus(first)
    {
        return (bonus, rest.trim());
    }
    if let Some((rest, last)) = item.rsplit_once(' ')
        && let Some(bonus) = bonus(last)
    {
        return (bonus, rest.trim_end_matches([',', ' ']));
    }
    (0, item)
}
