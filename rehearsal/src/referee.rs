//! The answer to a request that forces one of the rules' tools: finds out by keywords which check an action needs.
//!
//! A few verbs decide, so that a newcomer's attack is an attack and sneaking is a Stealth check. Names come only from the
//! prompt's lists, and the player's text is only searched for them. To teach it a verb, add it to a list.

use serde_json::{Value, json};

use crate::scene::Scene;
use crate::schema::contains_word;

/// Verbs of an attack.
const ATTACK: &[&str] = &[
    "attack", "attacks", "strike", "stab", "shoot", "swing", "slash", "hit", "fight", "smite", "fire", "throw",
    "punch", "kill",
];
/// Words that end a turn.
const END_TURN: &[&str] =
    &["end my turn", "end turn", "ends her turn", "ends his turn", "my turn is over", "turn is done", "pass my turn"];
/// Verbs of other actions in a fight.
const TURN: &[(&str, &str)] = &[
    ("dash", "dash"),
    ("disengage", "disengage"),
    ("dodge", "dodge"),
    ("stand up", "stand_up"),
    ("death save", "death_save"),
    ("grapple", "grapple"),
    ("shove", "shove"),
    ("back away from", "move"),
    ("run from", "move"),
    ("retreat from", "move"),
    ("move", "move"),
    ("approach", "move"),
    ("walk up to", "move"),
    ("step up to", "move"),
    ("run to", "move"),
];
/// Words of moves away from somebody.
const AWAY: &[&str] = &["away from", "run from", "retreat from"];
/// Words of impossible actions.
const IMPOSSIBLE: &[&str] = &["moon", "teleport", "time travel", "become a god", "infinite"];
/// Words of things to resist, and the ability that resists them.
const SAVES: &[(&str, &str)] = &[
    ("resist", "wisdom"),
    ("dodge", "dexterity"),
    ("endure", "constitution"),
    ("withstand", "constitution"),
    ("brace", "strength"),
];
/// Words for skills, besides their names.
pub(crate) const SKILLS: &[(&str, &str)] = &[
    ("sneak", "stealth"),
    ("hide", "stealth"),
    ("climb", "athletics"),
    ("jump", "athletics"),
    ("swim", "athletics"),
    ("grapple", "athletics"),
    ("balance", "acrobatics"),
    ("tumble", "acrobatics"),
    ("steal", "sleight of hand"),
    ("pick the lock", "sleight of hand"),
    ("persuade", "persuasion"),
    ("convince", "persuasion"),
    ("lie", "deception"),
    ("deceive", "deception"),
    ("bluff", "deception"),
    ("threaten", "intimidation"),
    ("intimidate", "intimidation"),
    ("search", "investigation"),
    ("investigate", "investigation"),
    ("look for", "perception"),
    ("listen", "perception"),
    ("spot", "perception"),
    ("track", "survival"),
    ("heal", "medicine"),
    ("sing", "performance"),
    ("perform", "performance"),
    ("read his face", "insight"),
    ("arcana", "arcana"),
    ("athletics", "athletics"),
    ("acrobatics", "acrobatics"),
    ("stealth", "stealth"),
    ("history", "history"),
    ("nature", "nature"),
    ("religion", "religion"),
    ("animal handling", "animal handling"),
    ("insight", "insight"),
    ("medicine", "medicine"),
    ("perception", "perception"),
    ("survival", "survival"),
    ("deception", "deception"),
    ("intimidation", "intimidation"),
    ("performance", "performance"),
    ("persuasion", "persuasion"),
];

/// The tool for the action, with its arguments.
pub(crate) fn classify(prompt: &str, scene: &Scene) -> (&'static str, Value) {
    let action = scene.action.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| contains_word(&action, word));
    if says(IMPOSSIBLE) {
        return ("mark_impossible", json!({ "reason": "The world does not allow it." }));
    }
    let fights = prompt.contains("<fight");
    let creatures = creatures(prompt);
    let by_name = |name: &str| contains_word(&action, &name.to_lowercase().replace('_', " "));
    let target = creatures
        .iter()
        .find(|(slug, name)| by_name(name) || by_name(slug))
        .or_else(|| creatures.iter().find(|(slug, name)| named(&action, name) || named(&action, slug)));
    if fights && says(END_TURN) {
        return ("encounter_action", json!({ "action": "end_turn" }));
    }
    // A move without a target or a way is only talk, because the prompt has no squares.
    let feet = feet(&action);
    let is_meant = |kind: &str| kind != "move" || target.is_some() || feet.is_some();
    if let Some((_, kind)) = TURN.iter().find(|(word, kind)| fights && is_meant(kind) && contains_word(&action, word)) {
        let mut arguments = json!({ "action": kind });
        if *kind == "move" && says(AWAY) {
            arguments["away"] = json!(true);
        }
        if let Some(feet) = feet.filter(|_| *kind == "move") {
            arguments["feet"] = json!(feet);
        }
        if let Some((slug, _)) = target {
            arguments["target"] = json!(slug);
        }
        return ("encounter_action", arguments);
    }
    if says(ATTACK) {
        // In a fight the server knows who is there, so pass on what the player says.
        let said = (action.clone(), String::new());
        let target = target.or(if fights { Some(&said) } else { creatures.first() });
        let Some((slug, _)) = target else {
            return ("mark_impossible", json!({ "reason": "Nobody is there to attack." }));
        };
        let slug = slug.chars().take(200).collect::<String>();
        let mut arguments = json!({ "target": slug });
        let spells = listed(prompt, "spells");
        let weapons = listed(prompt, "weapons");
        if let Some(spell) = spells.iter().find(|spell| named(&action, spell)) {
            arguments["is_spell_attack"] = json!(true);
            arguments["spell_name"] = json!(spell);
        } else if let Some(weapon) = weapons.iter().find(|weapon| named(&action, weapon)).or(weapons.first()) {
            arguments["weapon"] = json!(weapon);
        }
        return ("resolve_attack", arguments);
    }
    if let Some((_, ability)) = SAVES.iter().find(|(word, _)| contains_word(&action, word)) {
        return ("resolve_saving_throw", json!({ "ability": ability, "dc": 15 }));
    }
    match SKILLS.iter().find(|(word, _)| contains_word(&action, word)) {
        Some((_, skill)) => ("resolve_skill_check", json!({ "skill": skill, "dc": 15 })),
        None => ("mark_no_check", json!({ "reason": "Nothing about it is uncertain." })),
    }
}

/// How far somebody goes: the number before `feet` or `foot`, as far as the tool allows it.
fn feet(action: &str) -> Option<u32> {
    let words: Vec<&str> = action.split_whitespace().collect();
    let far = words.windows(2).find_map(|pair| match pair {
        [number, unit] if unit.starts_with("feet") || unit.starts_with("foot") => number.parse::<u32>().ok(),
        _ => None,
    });
    far.filter(|feet| (1..=1000).contains(feet))
}

/// Whether the action contains this name, or a word of it that is long enough.
fn named(action: &str, name: &str) -> bool {
    let name = name.to_lowercase().replace('_', " ");
    let words = name.split(' ').filter(|word| word.chars().count() > 3);
    contains_word(action, &name) || words.into_iter().any(|word| contains_word(action, word))
}

/// The creatures in the prompt: slug and name.
fn creatures(prompt: &str) -> Vec<(String, String)> {
    let inside = prompt.split_once("<creatures>").and_then(|(_, rest)| rest.split_once("</creatures>"));
    let lines = inside.map_or("", |(inside, _)| inside).lines().filter_map(|line| line.strip_prefix("- "));
    lines
        .filter_map(|line| {
            let mut parts = line.split(" | ");
            Some((parts.next()?.trim().to_owned(), parts.next()?.trim().to_owned()))
        })
        .collect()
}

/// The values in one of the actor's lines, such as `weapons: Rapier; Shortbow`.
fn listed(prompt: &str, name: &str) -> Vec<String> {
    let actor =
        prompt.split_once("<actor").and_then(|(_, rest)| rest.split_once("</actor>")).map_or("", |(inside, _)| inside);
    let line = actor.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    line.into_iter().flat_map(|values| values.split("; ")).map(|value| value.trim().to_owned()).collect()
}
