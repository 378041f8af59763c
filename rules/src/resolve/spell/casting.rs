//! A spell's numbers for this caster and slot, from the tables or the sheet.

use crate::{
    resolve::{error::Stop, outcome::Text, rows::Row},
    sheet::{Creature, KnownSpell, SpellSheet},
    srd::{Ability, DamageDice, Found, OnSave, SPELLS, Scaling, SpellKind, SpellRule, find, holds, same},
};

/// A spell about to be cast.
pub(crate) struct Casting {
    pub(crate) name: String,
    pub(crate) level: i32,
    pub(crate) kind: SpellKind,
    pub(crate) save: Ability,
    pub(crate) on_save: OnSave,
    /// Damage or healing of each shot.
    pub(crate) rows: Vec<Row>,
    /// The caster's own damage sources, added to the first shot that hits.
    pub(crate) extra: Vec<Row>,
    pub(crate) shots: u32,
    /// Range in feet; 0 means unlimited.
    pub(crate) range_ft: i32,
    /// How far its area extends beyond the range, in feet; `None` if it has individual targets.
    pub(crate) area_ft: Option<i32>,
    /// Whether the caster must see a target.
    pub(crate) sight: bool,
    pub(crate) on_self: bool,
    pub(crate) concentration: bool,
    pub(crate) ignores_cover: bool,
    pub(crate) condition: Option<String>,
    pub(crate) effect: Option<String>,
    upcast: Text,
    upcast_per: i32,
    upcast_shots: u32,
    scaling: Scaling,
    adds_modifier: bool,
}

/// The result of a spell's lookup.
pub(crate) enum FoundSpell {
    Casting(Box<Casting>),
    /// The spell is on the sheet, but there are no numbers for it.
    OnlyName(String),
}

/// Finds a spell that the caster knows. An NPC without spells on its sheet knows those of the tables.
pub(crate) fn find_spell(actor: &Creature, wanted: &str) -> Result<FoundSpell, Stop> {
    let nothing = || Stop::Impossible(format!("{} does not know the spell \"{wanted}\"", actor.name));
    let several = |names: Vec<&str>| Stop::Impossible(format!("\"{wanted}\" could mean {}", names.join(", ")));
    if actor.is_npc && actor.spells.is_empty() {
        return match find(&SPELLS, |s| s.name, wanted) {
            Found::One(rule) => Ok(of_table(rule)),
            Found::Several(rules) => Err(several(rules.iter().map(|r| r.name).collect())),
            Found::Nothing => Err(nothing()),
        };
    }
    match find(&actor.spells, KnownSpell::name, wanted) {
        Found::One(spell) => of_sheet(spell),
        Found::Several(spells) if spells.iter().all(|s| same(s.name(), spells[0].name())) => of_sheet(spells[0]),
        Found::Several(spells) => Err(several(spells.iter().map(|s| s.name()).collect())),
        Found::Nothing => Err(nothing()),
    }
}

fn of_sheet(spell: &KnownSpell) -> Result<FoundSpell, Stop> {
    let rule = SPELLS.iter().find(|s| same(s.name, spell.name()));
    match (spell, rule) {
        (KnownSpell::Own(own), _) if own.damage.is_some() || own.condition.is_some() || own.effect.is_some() => {
            own_spell(own)
        }
        (_, Some(rule)) => Ok(of_table(rule)),
        (KnownSpell::Own(own), None) => own_spell(own),
        (KnownSpell::Name(name), None) => Ok(FoundSpell::OnlyName(name.clone())),
    }
}

fn of_table(rule: &SpellRule) -> FoundSpell {
    let rows = rule
        .damage
        .iter()
        .filter_map(|part| Some(Row::of(rule.name, DamageDice::parse(part.dice)?, part.damage_type.into())));
    FoundSpell::Casting(Box::new(Casting {
        name: rule.name.to_owned(),
        level: i32::from(rule.level),
        kind: rule.attack,
        save: rule.save.unwrap_or(Ability::Dexterity),
        on_save: rule.on_save,
        rows: rows.collect(),
        extra: Vec::new(),
        shots: u32::from(rule.shots),
        range_ft: i32::from(rule.range_ft),
        area_ft: rule.area_ft.map(i32::from),
        sight: rule.sight,
        on_self: rule.range_ft == 0,
        concentration: rule.concentration,
        ignores_cover: rule.ignores_cover,
        condition: rule.condition.map(str::to_owned),
        effect: rule.effect.map(str::to_owned),
        upcast: rule.upcast.into(),
        upcast_per: i32::from(rule.upcast_per.max(1)),
        upcast_shots: u32::from(rule.upcast_shots),
        scaling: rule.scaling,
        adds_modifier: rule.adds_modifier,
    }))
}

fn own_spell(own: &SpellSheet) -> Result<FoundSpell, Stop> {
    let mut rows = Vec::new();
    if let Some(damage) = &own.damage {
        let dice = DamageDice::parse(&damage.dice).ok_or_else(|| {
            Stop::Impossible(format!("\"{}\", the damage of {}, is not a sum of dice", damage.dice, own.name))
        })?;
        let kind = damage.damage_type.as_deref().or(own.damage_type.as_deref()).unwrap_or_default();
        rows.push(Row::of(own.name.clone(), dice, kind.trim().to_owned().into()));
    }
    Ok(FoundSpell::Casting(Box::new(Casting {
        name: own.name.clone(),
        level: own.level.clamp(0, 9),
        kind: own.kind(),
        save: own.save_ability.as_deref().and_then(Ability::named).unwrap_or(Ability::Dexterity),
        on_save: own.on_save,
        rows,
        extra: Vec::new(),
        shots: 1,
        range_ft: own.range_ft.unwrap_or(0).max(0),
        // A sheet does not say whether the spell has an area, or how large it is.
        area_ft: Some(0),
        sight: false,
        on_self: false,
        concentration: own.concentration,
        ignores_cover: false,
        condition: own.condition.clone(),
        effect: own.effect.clone(),
        upcast: own.upcast.clone().unwrap_or_default().into(),
        upcast_per: 1,
        upcast_shots: 0,
        scaling: if own.level <= 0 { Scaling::Dice } else { Scaling::None },
        adds_modifier: false,
    })))
}

/// The multiple of a cantrip's dice: one more at the levels 5, 11 and 17.
fn cantrip_steps(level: i32) -> u32 {
    1 + [5, 11, 17].iter().map(|step| u32::from(level >= *step)).sum::<u32>()
}

impl Casting {
    /// The spell for this caster's level and a slot of this level.
    pub(crate) fn with_slot(mut self, actor: &Creature, slot: i32) -> Self {
        match self.scaling {
            Scaling::None => {}
            Scaling::Beams => self.shots = cantrip_steps(actor.level),
            Scaling::Dice => {
                for pool in self.rows.iter_mut().flat_map(|r| &mut r.pools) {
                    pool.count = pool.count.saturating_mul(cantrip_steps(actor.level));
                }
            }
        }
        let above = (slot - self.level).clamp(0, 9);
        self.shots += self.upcast_shots * u32::try_from(above).unwrap_or(0);
        for _ in 0..above / self.upcast_per {
            self.add_upcast();
        }
        let modifier = actor.modifier(actor.casting_ability());
        let agonizing = same(&self.name, "Eldritch Blast")
            && (actor.has_feature("Agonizing Blast")
                || actor
                    .features
                    .iter()
                    .any(|f| f.chosen_option.as_deref().is_some_and(|c| holds(c, "Agonizing Blast"))));
        if self.adds_modifier || agonizing {
            self.add_flat(modifier);
        }
        if self.kind == SpellKind::Healing && actor.has_feature("Disciple of Life") && self.level > 0 {
            self.add_flat(slot.saturating_add(2));
        }
        self
    }

    fn add_flat(&mut self, number: i32) {
        if let Some(row) = self.rows.first_mut() {
            row.flat = row.flat.saturating_add(number);
        }
    }

    fn add_upcast(&mut self) {
        let Some(more) = DamageDice::parse(&self.upcast) else { return };
        let Some(row) = self.rows.first_mut() else { return };
        row.flat = row.flat.saturating_add(more.flat);
        for pool in more.pools {
            match row.pools.iter_mut().find(|p| p.faces == pool.faces) {
                Some(own) => own.count = own.count.saturating_add(pool.count),
                None => row.pools.push(pool),
            }
        }
    }
}
