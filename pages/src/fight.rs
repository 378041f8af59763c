//! A fight as pages show it, from the encounter that the API shows to the same reader, with what the reader can do in it as buttons.

use rules::{
    encounter::{ActionKind, Choice, EndOutcome},
    srd::Advantage,
};

use base::error::Result;
use edge::http::body::from_text;
use world::encounters::{
    answers::{ActionTold, CombatantShown},
    input::ActionInput,
    open::{FightActor, OpenFight},
};

use crate::emblem::Emblem;

/// A fight.
pub struct Fight {
    pub name: String,
    pub round: u32,
    /// By initiative.
    pub fighters: Vec<Fighter>,
    /// Whose turn it is, and what is left of it.
    pub turn: String,
    /// Whether the reader acts for whoever has the turn.
    pub is_readers_turn: bool,
    /// Whether an attack is among what can be done, which may have advantage.
    pub attacks: bool,
    /// What can be done without a target.
    pub buttons: Vec<Button>,
    /// What can be done out of turn.
    pub reactions: Vec<Button>,
    /// Where buttons are posted.
    pub path: String,
    /// Whether its page shows what changes as it happens, so that the buttons need no new page.
    pub is_live: bool,
    /// What somebody needs who leads it.
    pub(crate) lead: Option<Lead>,
    /// The side of which nobody stands, as far as the reader knows.
    pub down: Option<Down>,
}

/// What somebody needs who leads a fight.
pub(crate) struct Lead {
    /// Its page.
    pub page: String,
    /// Whether its panel stands at the table, and leads it there.
    pub is_at_table: bool,
    /// The number of its state, so that *undo* takes back what its reader saw.
    pub version: i64,
    /// Whether there is an action to take back.
    pub has_acted: bool,
}

/// The outcomes of fights, with their words.
pub(crate) const OUTCOMES: [(EndOutcome, &str, &str); 5] = [
    (EndOutcome::Victory, "victory", "Victory"),
    (EndOutcome::Defeat, "defeat", "Defeat"),
    (EndOutcome::Fled, "fled", "Somebody fled"),
    (EndOutcome::Negotiated, "negotiated", "The sides negotiated"),
    (EndOutcome::Other, "other", "Another end"),
];

/// A side of which nobody is standing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Down {
    Enemies,
    Party,
    Everybody,
}

impl Down {
    fn of(fighters: &[Fighter]) -> Option<Self> {
        let is_down = |is_enemy: bool| {
            let mut side = fighters.iter().filter(|fighter| fighter.is_enemy == is_enemy).peekable();
            side.peek().is_some() && side.all(|fighter| fighter.status != "alive")
        };
        match (is_down(true), is_down(false)) {
            (true, true) => Some(Self::Everybody),
            (true, false) => Some(Self::Enemies),
            (false, true) => Some(Self::Party),
            (false, false) => None,
        }
    }

    /// The usual outcome of a fight in which this side is down.
    #[must_use]
    const fn outcome(self) -> &'static str {
        match self {
            Self::Enemies => "victory",
            Self::Party | Self::Everybody => "defeat",
        }
    }

    /// A sentence. Who does not lead the fight may not know of everybody (`knows_all`).
    #[must_use]
    pub const fn words(self, knows_all: bool) -> &'static str {
        match self {
            Self::Enemies if knows_all => "No enemy is standing.",
            Self::Enemies => "You see no enemy standing.",
            Self::Party => "Nobody of the party is standing.",
            Self::Everybody => "Nobody is standing.",
        }
    }
}

/// Somebody in a fight.
pub struct Fighter {
    pub name: String,
    pub emblem: Emblem,
    pub initiative: Option<i32>,
    pub status: String,
    /// Hit points and their maximum, where the reader may know them.
    pub hp: Option<(i32, i32)>,
    pub conditions: Vec<String>,
    pub has_turn: bool,
    pub is_enemy: bool,
    /// Whether only the game master knows of it.
    pub is_hidden: bool,
    /// What can be done to it.
    pub buttons: Vec<Button>,
    /// Where its hit points and conditions are changed, for somebody who leads the fight at the table.
    pub change: Option<String>,
    id: String,
}

/// An action as a button.
pub struct Button {
    pub label: String,
    /// What a screen reader adds to the label.
    pub more: String,
    /// The request to the encounter, as JSON.
    pub value: String,
    /// Whether it is among the usual things to do.
    pub is_main: bool,
}

impl Fight {
    /// A fight as its reader sees it. `root` is the path of the campaign's encounters on the reader's pages.
    #[must_use]
    pub fn of(fight: &OpenFight, root: &str, is_player: bool) -> Self {
        let view = &fight.fight;
        let mut fighters: Vec<Fighter> = view.participants().into_iter().map(|p| Fighter::of(p, fight)).collect();
        fighters.sort_by_key(|fighter| std::cmp::Reverse(fighter.initiative));
        let mut shown = Self {
            name: view.name().unwrap_or("A fight").to_owned(),
            round: view.round(),
            turn: turn(&fighters, fight.actor.as_ref(), is_player),
            down: Down::of(&fighters),
            is_readers_turn: fight.actor.as_ref().is_some_and(|actor| actor.in_turn),
            fighters,
            attacks: fight.actor.iter().flat_map(|actor| &actor.choices).any(|choice| choice.weapon.is_some()),
            buttons: Vec::new(),
            reactions: Vec::new(),
            lead: None,
            path: format!("{root}/{}/act", fight.id),
            is_live: false,
        };
        // What ends the turn comes last.
        let ends = |choice: &&Choice| choice.action == ActionKind::AdvanceTurn;
        let choices = || fight.actor.iter().flat_map(|actor| &actor.choices);
        choices().filter(|choice| !ends(choice)).chain(choices().filter(ends)).for_each(|choice| shown.offer(choice));
        shown
    }

    /// The fight with what somebody needs who leads it on its page, if there is a `fight` to lead.
    #[must_use]
    pub(crate) fn led(mut self, fight: Option<&OpenFight>) -> Self {
        self.lead = fight.map(|fight| Lead {
            page: self.path.trim_end_matches("/act").to_owned(),
            is_at_table: false,
            version: fight.version,
            has_acted: fight.seq > 0,
        });
        self
    }

    /// The fight for somebody who leads it at the table. `change` is where a participant of this fight is changed, by its id.
    #[must_use]
    pub(crate) fn led_at_table(self, fight: &OpenFight, change: impl Fn(&str) -> String) -> Self {
        let mut led = self.led(Some(fight));
        led.lead.iter_mut().for_each(|lead| lead.is_at_table = true);
        led.fighters.iter_mut().for_each(|fighter| fighter.change = Some(change(&fighter.id)));
        led
    }

    /// Whether an outcome is the usual one as the fight stands.
    pub(crate) fn is_usual(&self, outcome: &str) -> bool {
        self.down.is_some_and(|down| down.outcome() == outcome)
    }

    /// The fight on a page that shows what changes as it happens.
    #[must_use]
    pub(crate) fn live(self) -> Self {
        Self { is_live: true, ..self }
    }

    fn offer(&mut self, choice: &Choice) {
        let Ok(value) = serde_json::to_string(choice) else { return };
        let (label, is_main) = label(choice);
        let acts_for_enemies =
            self.fighters.iter().any(|fighter| fighter.id == choice.participant_id && fighter.is_enemy);
        let target = self.fighters.iter_mut().find(|fighter| Some(&fighter.id) == choice.target_id.as_ref());
        match (target, &choice.target_id) {
            (Some(target), _) => {
                let word = match choice.action {
                    ActionKind::Move => "to",
                    _ if target.is_enemy == acts_for_enemies => "for",
                    _ => "against",
                };
                let more = format!("{word} {}", target.name);
                // A reaction is no part of the turn, so it does not stand among what the turn can do.
                match choice.cost {
                    Some(_) => self.reactions.push(Button {
                        label: format!("{label} {more}"),
                        more: String::new(),
                        value,
                        is_main,
                    }),
                    None => target.buttons.push(Button { label, more, value, is_main }),
                }
            }
            (None, None) => {
                let row = if choice.cost.is_some() { &mut self.reactions } else { &mut self.buttons };
                row.push(Button { label, more: String::new(), value, is_main });
            }
            (None, Some(_)) => {}
        }
    }
}

impl Fighter {
    fn of(p: CombatantShown<'_>, fight: &OpenFight) -> Self {
        Self {
            emblem: Emblem::of(p.name),
            name: p.name.to_owned(),
            initiative: p.initiative,
            status: p.status.to_owned(),
            hp: p.whole.map(|p| (p.hp, p.max_hp)),
            conditions: p.conditions.into_iter().map(str::to_owned).collect(),
            has_turn: fight.fight.current() == Some(p.id),
            is_hidden: fight.hidden.iter().any(|id| id == p.id),
            is_enemy: p.is_enemy,
            buttons: Vec::new(),
            change: None,
            id: p.id.to_owned(),
        }
    }
}

/// What a button says, and whether it is among the usual things to do.
fn label(choice: &Choice) -> (String, bool) {
    let with = choice.weapon.as_ref().or(choice.spell_name.as_ref()).or(choice.resource.as_ref());
    let word = match choice.action {
        ActionKind::Attack | ActionKind::CastSpell | ActionKind::UseResource => {
            return (with.cloned().unwrap_or_default(), true);
        }
        ActionKind::AdvanceTurn => return ("End turn".to_owned(), true),
        ActionKind::DeathSave => return ("Death saving throw".to_owned(), true),
        ActionKind::Dodge => "Dodge",
        ActionKind::Dash => "Dash",
        ActionKind::Disengage => "Disengage",
        ActionKind::Help => "Help",
        ActionKind::Grapple => "Grapple",
        ActionKind::Shove => "Shove",
        ActionKind::Escape => "Break free",
        ActionKind::StandUp => "Stand up",
        ActionKind::Move => "Move closer",
        ActionKind::EndConcentration => "End concentration",
        other => other.name(),
    };
    (word.to_owned(), false)
}

/// A sentence that says whose turn it is, and what is left of it.
fn turn(fighters: &[Fighter], actor: Option<&FightActor>, is_player: bool) -> String {
    let Some(current) = fighters.iter().find(|fighter| fighter.has_turn) else {
        return if is_player { "It is somebody else's turn." } else { "It is nobody's turn." }.to_owned();
    };
    let Some(actor) = actor.filter(|actor| actor.in_turn) else {
        let by = if current.is_enemy && is_player { " The game master acts." } else { "" };
        return format!("It is {}'s turn.{by}", current.name);
    };
    let whose = if is_player { "It is your turn".to_owned() } else { format!("It is {}'s turn", current.name) };
    match current.status.as_str() {
        "dying" if actor.choices.iter().any(|choice| choice.action == ActionKind::DeathSave) => {
            return format!("{whose}: a death saving throw.");
        }
        "dying" => return format!("{whose}. The death saving throw is made."),
        "alive" => {}
        _ => return format!("{whose}. Nothing can be done in it."),
    }
    let has = [(actor.has_action, "an action"), (actor.has_bonus_action, "a bonus action")];
    let mut left: Vec<String> = has.iter().filter(|(has, _)| *has).map(|(_, what)| (*what).to_owned()).collect();
    if actor.movement_left_ft > 0 {
        left.push(format!("{} feet to move", actor.movement_left_ft));
    }
    if left.is_empty() { format!("{whose}. Nothing is left of it.") } else { format!("{whose}: {}.", left.join(", ")) }
}

/// The request that a button made, with the checks of a request to the API. `advantage` is what was chosen for attacks, or empty.
///
/// # Errors
/// `bad_request` if it is not JSON; `validation_failed`.
pub fn request(value: &str, advantage: &str) -> Result<ActionInput> {
    let mut input: ActionInput = from_text("The action", value)?;
    if matches!(input.action, ActionKind::Attack | ActionKind::CastSpell) {
        match advantage {
            "advantage" => input.advantage = Advantage::Advantage,
            "disadvantage" => input.advantage = Advantage::Disadvantage,
            _ => {}
        }
    }
    Ok(input)
}

/// Why an action changed nothing: what the rules said. None if it was done.
#[must_use]
pub fn why_nothing(told: &ActionTold) -> Option<String> {
    let why = told.outcomes.first()?.why_impossible()?;
    Some(format!("This is not possible: {why}."))
}
