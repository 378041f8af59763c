//! Spells that make their target roll a saving throw.

use super::{afflict::afflict, casting::Casting};
use crate::{
    dice::Dice,
    resolve::{
        Circumstances, DamageArgs, Outcome,
        d20::D20Test,
        error::Stop,
        rows::Row,
        save::{Left, hurt, left, prepare},
    },
    sheet::Creature,
    srd::{Ability, Advantage},
};

/// The target saves against the caster's DC. The caster succeeds if the target fails.
pub(crate) fn save(
    actor: &Creature,
    target: &Creature,
    casting: &Casting,
    circumstances: &Circumstances,
    dice: &mut dyn Dice,
) -> Result<Outcome, Stop> {
    let dc = actor.spell_save_dc();
    let mut test = prepare_save(target, casting, circumstances);
    test.roll(dice)?;
    test.roll_bonus(dice)?;
    let saved = test.reaches(dc);
    let mut outcome = Outcome::of(format!("{} ({} save)", casting.name, casting.save.name()), test);
    outcome.with(actor);
    outcome.dc_or_ac = format!("DC {dc}");
    outcome.success = !saved;
    let name = &target.name;
    (outcome.outcome, outcome.notes) = if saved {
        ("target saved".to_owned(), format!("{name} saves against DC {dc}."))
    } else {
        ("target failed the save".to_owned(), format!("{name} fails against DC {dc}."))
    };
    let rows: Vec<Row> = casting.rows.iter().chain(&casting.extra).cloned().collect();
    if !rows.is_empty() {
        let left = left(target, casting.save, casting.on_save, saved, &mut outcome);
        if left > Left::Nothing {
            let underwater = circumstances.context.underwater;
            let blow = DamageArgs { magical: true, underwater, ..DamageArgs::default() };
            let mut vitals = target.vitals();
            hurt(&mut outcome, target, &mut vitals, &rows, left, blow, dice)?;
        }
    }
    if !saved {
        afflict(actor, target, casting, &mut outcome);
    }
    Ok(outcome)
}

/// Prepares the target's roll.
pub(super) fn prepare_save(target: &Creature, casting: &Casting, circumstances: &Circumstances) -> D20Test {
    let cover = if casting.ignores_cover { 0 } else { circumstances.cover.bonus() };
    let poison = casting.rows.iter().any(|r| r.damage_type == "poison");
    let source = casting.condition.as_deref().unwrap_or(if poison { "poison" } else { "" });
    // Requested advantage applies to the roll, and here the target rolls.
    let mut test = prepare(target, casting.save, circumstances, source, cover);
    if target.has_feature("Magic Resistance") {
        test.lean(Advantage::Advantage, || "Magic Resistance".into());
    }
    let of_mind = matches!(casting.save, Ability::Intelligence | Ability::Wisdom | Ability::Charisma);
    if of_mind && target.has_trait("gnome", "Gnome Cunning") {
        test.advantage_for("Gnome Cunning");
    }
    test
}
