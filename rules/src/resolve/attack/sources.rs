//! Damage in addition to the weapon's own: sources that apply automatically, and those that are requested.

use super::{arm::Arm, circumstances::rages, custom};
use crate::{
    resolve::{Circumstances, StateChange, d20::D20Test, outcome::Text, rows::Row},
    sheet::{Creature, Life},
    srd::{Advantage, Class, DamageDice, DicePool, brutal_critical_dice, holds, rage_damage, same, sneak_attack_dice},
};

/// An attack with its damage being planned.
pub(crate) struct Strike<'a> {
    pub(crate) actor: &'a Creature,
    pub(crate) target: &'a Creature,
    pub(crate) arm: &'a Arm<'a>,
    pub(crate) test: &'a D20Test,
    pub(crate) crit: bool,
    pub(crate) slot_level: Option<i32>,
    pub(crate) circumstances: &'a Circumstances,
}

/// What is added to an attack that hits.
#[derive(Default)]
pub(crate) struct Extra {
    pub(crate) rows: Vec<Row>,
    pub(crate) changes: Vec<StateChange>,
    pub(crate) reasons: Vec<Text>,
}

/// Plans the additional damage: automatic sources first, then requested ones in order.
pub(crate) fn plan(strike: &Strike<'_>, asked: &[String]) -> Extra {
    let mut extra = Extra::default();
    extra.by_itself(strike);
    for (at, source) in asked.iter().enumerate() {
        if asked[..at].iter().any(|s| same(custom::split(s).0, custom::split(source).0)) {
            extra.reasons.push(format!("refused: {source}, it was requested twice").into());
            continue;
        }
        let before = extra.rows.len();
        match extra.ask(strike, source) {
            Err(why) => extra.reasons.push(format!("refused: {source}, {why}").into()),
            Ok(()) => {
                let applied = extra.rows.get(before).map(|row| format!("applied: {}", row.label).into());
                extra.reasons.extend(applied);
            }
        }
    }
    extra
}

impl Extra {
    fn applied(&mut self, row: Row) {
        self.reasons.push(format!("applied: {}", row.label).into());
        self.rows.push(row);
    }

    fn by_itself(&mut self, strike: &Strike<'_>) {
        let Strike { actor, target, arm, .. } = strike;
        let other = strike.circumstances.context.other_weapon.as_ref().is_some_and(super::super::OtherWeapon::is_held);
        let off_hand = strike.circumstances.context.off_hand;
        let melee_weapon = arm.is_weapon && !arm.ranged_weapon && arm.npc_bonus.is_none();
        if melee_weapon && !arm.two_handed && !other && !off_hand && actor.has_style("Dueling") {
            self.applied(Row::flat("Dueling", 2, arm.damage_type.clone()));
        }
        if !arm.ranged && arm.is_strength() && rages(actor) {
            let bonus = rage_damage(actor.feature_level(Class::Barbarian));
            self.applied(Row::flat("Rage", bonus, arm.damage_type.clone()));
        }
        if melee_weapon && !arm.ranged && actor.has_feature("Improved Divine Smite") {
            self.applied(Row::dice("Improved Divine Smite", 1, 8, "radiant".into()));
        }
        if arm.is_weapon && marked(actor, target) {
            self.applied(Row::dice("Hunter's Mark", 1, 6, arm.damage_type.clone()));
        }
        if strike.crit && arm.is_weapon && !arm.ranged {
            self.critical_dice(strike);
        }
    }

    /// Weapon dice that a melee critical hit adds.
    fn critical_dice(&mut self, strike: &Strike<'_>) {
        let Some(DicePool { faces, .. }) = strike.arm.dice.pools.first().copied() else { return };
        let mut add = |label: &'static str, count| {
            let mut row = Row::dice(label, count, faces, strike.arm.damage_type.clone());
            row.only_once = true;
            row.rerolls_low = strike.arm.is_great(strike.actor);
            self.applied(row);
        };
        let brutal = brutal_critical_dice(strike.actor.feature_level(Class::Barbarian));
        if brutal > 0 && strike.actor.has_feature("Brutal Critical") {
            add("Brutal Critical", brutal);
        }
        if strike.actor.has_trait("half-orc", "Savage Attacks") {
            add("Savage Attacks", 1);
        }
    }

    fn ask(&mut self, strike: &Strike<'_>, source: &str) -> Result<(), Text> {
        let (name, number) = custom::split(source);
        if self.rows.iter().any(|r| same(&r.label, name)) {
            self.reasons.push(format!("{name}: it applies automatically, and only once").into());
            return Ok(());
        }
        if same(name, "Sneak Attack") {
            return self.sneak_attack(strike);
        }
        if same(name, "Divine Smite") {
            return self.divine_smite(strike, number.or(strike.slot_level).unwrap_or(1));
        }
        if same(name, "Colossus Slayer") {
            return self.colossus_slayer(strike);
        }
        if same(name, "Hunter's Mark") {
            return self.hunters_mark(strike);
        }
        let own = strike.actor.feature(name).is_some_and(|f| f.scaling_formula.is_some());
        for (known, why) in [
            ("Rage", "it needs the effect Rage and a melee attack that uses Strength"),
            ("Dueling", "it needs the style and a melee weapon in one hand with no other weapon"),
            ("Improved Divine Smite", "it needs the feature and a hit with a melee weapon"),
            ("Brutal Critical", "it needs the feature and a critical hit in melee"),
            ("Savage Attacks", "it needs the trait and a critical hit in melee"),
        ] {
            if same(name, known) && !own {
                return Err(why.into());
            }
        }
        match custom::row(strike.actor, source, &strike.arm.damage_type) {
            Ok(row) => self.rows.push(row),
            Err(why) => self.reasons.push(why.into()),
        }
        Ok(())
    }

    fn sneak_attack(&mut self, strike: &Strike<'_>) -> Result<(), Text> {
        let Strike { actor, arm, test, .. } = strike;
        let feature = actor.feature("Sneak Attack").ok_or("it is not on the sheet")?;
        if !arm.is_weapon || !(arm.has("finesse") || arm.ranged_weapon) {
            return Err("it needs a finesse or ranged weapon".into());
        }
        match test.advantage() {
            Advantage::Advantage => {}
            Advantage::Disadvantage => return Err("the attack has disadvantage".into()),
            Advantage::None if strike.circumstances.context.ally_adjacent => {}
            Advantage::None => {
                return Err("it needs advantage, or an enemy of the target within 5 feet of it".into());
            }
        }
        self.once_a_turn(strike, "sneak_attack")?;
        let level = actor.feature_level(Class::Rogue);
        let written = feature.scaling_formula.as_deref().and_then(|f| DamageDice::scaled(f, level));
        self.rows.push(match written {
            Some(dice) => Row::of("Sneak Attack", dice, arm.damage_type.clone()),
            None => Row::dice("Sneak Attack", sneak_attack_dice(level), 6, arm.damage_type.clone()),
        });
        Ok(())
    }

    /// 2d8, plus 1d8 for each slot level above the first, at most 5d8, plus 1d8 against undead and fiends.
    fn divine_smite(&mut self, strike: &Strike<'_>, level: i32) -> Result<(), Text> {
        let Strike { actor, target, arm, .. } = strike;
        if !actor.has_feature("Divine Smite") {
            return Err("it is not on the sheet".into());
        }
        if !arm.is_weapon || arm.ranged {
            return Err("it needs a hit with a melee weapon".into());
        }
        let dice = u32::try_from(level).ok().filter(|l| (1..=9).contains(l)).ok_or("slot levels are 1 to 9")?;
        if actor.slots_left(level) <= 0 {
            return Err(format!("no slot of level {level} is left").into());
        }
        let unholy = ["undead", "fiend"].iter().any(|kind| holds(&target.creature_type, kind));
        let dice = (dice + 1).min(5) + u32::from(unholy);
        self.rows.push(Row::dice("Divine Smite", dice, 8, "radiant".into()));
        self.changes.push(StateChange::SpendSlot { creature: actor.key().to_owned(), level });
        Ok(())
    }

    fn colossus_slayer(&mut self, strike: &Strike<'_>) -> Result<(), Text> {
        if !strike.actor.has_feature("Colossus Slayer") {
            let chosen = |c: &str| same(c, "Colossus Slayer");
            let option = strike.actor.features.iter().any(|f| f.chosen_option.as_deref().is_some_and(chosen));
            if !option {
                return Err("it is not on the sheet".into());
            }
        }
        if !strike.arm.is_weapon {
            return Err("it needs a weapon".into());
        }
        if strike.target.hp >= strike.target.max_hp_now() || strike.target.life() == Life::Dead {
            return Err("the target is unhurt".into());
        }
        self.once_a_turn(strike, "colossus_slayer")?;
        self.rows.push(Row::dice("Colossus Slayer", 1, 8, strike.arm.damage_type.clone()));
        Ok(())
    }

    fn hunters_mark(&mut self, strike: &Strike<'_>) -> Result<(), Text> {
        let on = strike.actor.concentration.as_ref().is_some_and(|c| same(&c.spell, "Hunter's Mark"))
            || strike.actor.has_effect("Hunter's Mark");
        if !on {
            return Err("nothing is marked: it needs concentration on the spell".into());
        }
        if !strike.arm.is_weapon {
            return Err("it needs a weapon".into());
        }
        self.rows.push(Row::dice("Hunter's Mark", 1, 6, strike.arm.damage_type.clone()));
        Ok(())
    }

    fn once_a_turn(&mut self, strike: &Strike<'_>, flag: &str) -> Result<(), Text> {
        let Some(turn) = strike.circumstances.context.turn_key.as_deref() else { return Ok(()) };
        if strike.actor.turn_flags.get(flag).is_some_and(|used| used == turn) {
            return Err("it was already used this turn".into());
        }
        self.changes.push(StateChange::SetFlag {
            creature: strike.actor.key().to_owned(),
            flag: flag.to_owned(),
            turn_key: turn.to_owned(),
        });
        Ok(())
    }
}

/// Whether the target is marked by this attacker.
fn marked(actor: &Creature, target: &Creature) -> bool {
    let by_actor = |source: &Option<String>| source.as_deref().is_some_and(|s| actor.is_called(s));
    target.effects.iter().any(|e| same(&e.name, "Hunter's Mark") && by_actor(&e.source))
}
