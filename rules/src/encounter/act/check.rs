//! Checks an action's input before its meaning: every text and list has a limit, and nothing in it may be ignored
//! silently.

use crate::{
    encounter::{Action, ActionKind, Refusal, arguments::text, limits},
    resolve::OtherWeapon,
    srd::DAMAGE_TYPES,
};

/// Rejects texts that are too long, and targets that would be ignored.
pub(super) fn check(action: &Action) -> Result<(), Refusal> {
    targets(action)?;
    texts(action)?;
    lists(action)
}

/// Several targets may only be given instead of one, and only to actions that take several.
fn targets(action: &Action) -> Result<(), Refusal> {
    if action.target_ids.is_empty() {
        return Ok(());
    }
    if !matches!(action.action, ActionKind::Attack | ActionKind::CastSpell) {
        let message = format!("`{}` has only one target: use `target_id`", action.action.name());
        return Err(Refusal::argument("target_ids", message));
    }
    if action.target_id.is_some() {
        return Err(Refusal::argument("target_ids", "cannot be combined with `target_id`: send only one of them"));
    }
    Ok(())
}

fn texts(action: &Action) -> Result<(), Refusal> {
    let context = &action.circumstances.context;
    let other_weapon = context.other_weapon.as_ref().and_then(|other| match other {
        OtherWeapon::Named(name) => Some(name.as_str()),
        OtherWeapon::Held(_) => None,
    });
    let texts = [
        ("participant_id", action.participant_id.as_deref(), limits::ID_CHARS_MAX),
        ("target_id", action.target_id.as_deref(), limits::ID_CHARS_MAX),
        ("formula", action.formula.as_deref(), limits::FORMULA_CHARS_MAX),
        ("damage_type", action.damage_type.as_deref(), limits::NAME_CHARS_MAX),
        ("condition", action.condition.as_deref(), limits::NAME_CHARS_MAX),
        ("effect", action.effect.as_deref(), limits::NAME_CHARS_MAX),
        ("source", action.source.as_deref(), limits::NAME_CHARS_MAX),
        ("description", action.description.as_deref(), limits::NAME_CHARS_MAX),
        ("resource", action.resource.as_deref(), limits::NAME_CHARS_MAX),
        ("weapon", action.attack.weapon.as_deref(), limits::NAME_CHARS_MAX),
        ("spell_name", action.attack.spell_name.as_deref(), limits::NAME_CHARS_MAX),
        ("context/other_weapon", other_weapon, limits::NAME_CHARS_MAX),
        ("context/turn_key", context.turn_key.as_deref(), limits::NAME_CHARS_MAX),
    ];
    texts.into_iter().try_for_each(|(argument, value, most)| text(argument, value.unwrap_or_default(), most))
}

fn lists(action: &Action) -> Result<(), Refusal> {
    entries("target_ids", &action.target_ids, limits::TARGETS_MAX, limits::ID_CHARS_MAX)?;
    let sources = &action.attack.extra_damage_sources;
    entries("extra_damage_sources", sources, limits::SOURCES_MAX, limits::NAME_CHARS_MAX)?;
    let reactions = &action.circumstances.context.reactions;
    entries("context/reactions", reactions, limits::SOURCES_MAX, limits::NAME_CHARS_MAX)?;
    if action.path.len() > limits::PATH_MAX {
        return Err(Refusal::too_many("path", limits::PATH_MAX));
    }
    if action.parts.len() > DAMAGE_TYPES.len() {
        return Err(Refusal::too_many("parts", DAMAGE_TYPES.len()));
    }
    let parts = action.parts.iter().enumerate();
    parts.into_iter().try_for_each(|(at, p)| text(&format!("parts/{at}/type"), &p.damage_type, limits::NAME_CHARS_MAX))
}

fn entries(argument: &str, list: &[String], most: usize, chars: usize) -> Result<(), Refusal> {
    if list.len() > most {
        return Err(Refusal::too_many(argument, most));
    }
    list.iter().enumerate().try_for_each(|(at, entry)| text(&format!("{argument}/{at}"), entry, chars))
}
