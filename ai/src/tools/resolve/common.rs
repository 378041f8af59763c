//! The arguments that all resolvers share, and how a tool call becomes a resolution.

use std::cell::Cell;

use rules::{
    dice::Dice,
    encounter::{Action, ActionKind, Participant, Status},
    resolve::{Circumstances, Outcome, RuleError, impossible},
    sheet::Creature,
};
use serde_json::json;

use crate::tools::{
    earlier::TableFirst,
    spec::{ActorKind, ToolCx},
};
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{http::resource::Ref, limits::check_rows_more};
use world::{
    dice::{
        self,
        service::{Rolled, Wish},
    },
    encounters::{
        self,
        answers::ActionTold,
        eyes::Eyes,
        names, stand,
        store::{self, LogEntry, Place, Stored},
    },
    rules::{
        answers::{AppliedChange, OutcomeShown, ResolvedOutcome},
        cast::{Cast, Met, Named, Who, named_all, named_by},
        service::{self, How},
    },
};

/// Declares a resolver's arguments: its own, and those that all resolvers share.
macro_rules! resolver_arguments {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($(#[$field_meta])* $field: $ty,)*
            /// Advantage or disadvantage in addition to what the rules already know of.
            #[serde(default, deserialize_with = "world::rules::values::or_default")]
            #[schemars(with = "String", extend("enum" = ["none", "advantage", "disadvantage"]))]
            advantage: rules::srd::Advantage,
            /// Cover between the actor and the target.
            #[serde(default, deserialize_with = "world::rules::values::or_default")]
            #[schemars(with = "String", extend("enum" = ["none", "half", "three_quarters", "total"]))]
            cover: rules::resolve::Cover,
            /// The encounter in which it happens, if any.
            #[serde(default, deserialize_with = "world::rules::values::unless_blank")]
            encounter_id: Option<world::rules::values::Words<100>>,
            /// What matters about the place and the moment.
            #[serde(default, deserialize_with = "world::rules::values::or_default")]
            context: world::rules::context::ContextInput,
            /// Return the outcome without changing anything.
            #[serde(default, deserialize_with = "world::rules::values::or_default")]
            preview: bool,
            /// Also change hit points. In an encounter they always change.
            #[serde(default, deserialize_with = "world::rules::values::or_default")]
            apply: bool,
        }

        impl $name {
            /// This call with checked circumstances. The encounter is locked.
            async fn call<'a>(
                &self,
                cx: &'a crate::tools::ToolCx<'a>,
                tool: &'static str,
            ) -> base::error::Result<super::common::Call<'a>> {
                let preview = self.preview || cx.preview;
                let fight = match &self.encounter_id {
                    Some(id) => Some(super::common::fight(cx, &id.0, !preview).await?),
                    None => None,
                };
                let circumstances = rules::resolve::Circumstances {
                    advantage: self.advantage,
                    cover: self.cover,
                    context: (&self.context).into(),
                };
                if preview && fight.is_some() {
                    crate::tools::encounters::may_preview(cx)?;
                }
                Ok(super::common::Call {
                    circumstances,
                    preview,
                    apply: self.apply || cx.apply || fight.is_some(),
                    tool,
                    cx,
                    tx: cx.tx().await?,
                    fight,
                })
            }
        }
    };
}
pub(super) use resolver_arguments;

/// The encounter of a call.
pub(super) async fn fight(cx: &ToolCx<'_>, id: &str, lock: bool) -> Result<Stored> {
    let campaign = Ref::Id(cx.campaign);
    let found = store::read(cx.tx().await?, Place { campaign: &campaign, only: None }, id, lock).await;
    let fight = found.map_err(|error| match error.code {
        Code::NotFound => {
            Error::invalid("/encounter_id", "unknown_reference", "There is no such encounter in this campaign.")
        }
        _ => error,
    })?;
    match fight.now.status() {
        Status::Active => Ok(fight),
        Status::Ended => Err(Error::new(Code::EncounterAlreadyEnded, "The encounter has ended.")),
    }
}

/// When a resolver changes hit points.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// Always, except in a preview.
    Always,
    /// Only if the call asks for it.
    WhenAsked,
}

/// A tool's call as a resolution.
pub(super) struct Call<'a> {
    pub(super) circumstances: Circumstances,
    pub(super) preview: bool,
    pub(super) apply: bool,
    pub(super) tool: &'static str,
    pub(super) cx: &'a ToolCx<'a>,
    pub(super) tx: &'a TenantTx,
    /// The encounter in which the call happens. Participants are as it says, and changes are made there.
    pub(super) fight: Option<Stored>,
}

impl Call<'_> {
    /// The creature that acts.
    ///
    /// # Errors
    /// `validation_failed` at `/actor` for an actor without a sheet.
    pub(super) fn actor(&self) -> Result<Who> {
        if let Some(fight) = &self.fight {
            return self.combatant(fight);
        }
        match self.cx.kind {
            ActorKind::Character => Ok(Who::Character(self.cx.entity)),
            ActorKind::Npc => Ok(Who::Npc(self.cx.entity)),
            ActorKind::Owner | ActorKind::Gm => Err(Error::invalid(
                "/actor",
                "required",
                format!("`{}` is called as a character or an NPC.", self.tool),
            )),
        }
    }

    /// The acting participant: the caller's own or, for a game master, the one whose turn it is.
    fn combatant(&self, fight: &Stored) -> Result<Who> {
        let own = self.cx.entity.to_string();
        let current = fight.now.current().map(|p| p.id.as_str());
        let eyes = self.eyes();
        let is_meant = |p: &Participant| match self.cx.kind {
            ActorKind::Gm => Some(p.id.as_str()) == current,
            _ => p.character_id.as_ref().or(p.npc_id.as_ref()) == Some(&own),
        };
        let at = fight.now.participants().iter().position(|p| is_meant(p) && eyes.knows(&fight.now, p));
        at.map(Who::Participant)
            .ok_or_else(|| Error::invalid("/actor", "unknown_reference", "The actor takes no part in this encounter."))
    }

    /// The creature that a name means. `self` is the actor.
    pub(super) async fn whom(&self, name: &str) -> Result<Named> {
        let found = self.whom_all(&[name]).await?;
        found.into_iter().next().ok_or_else(|| Error::internal("a name was lost"))
    }

    /// The creatures that names mean, in the same order.
    pub(super) async fn whom_all(&self, names: &[&str]) -> Result<Vec<Named>> {
        let own = self.actor().ok();
        let is_own = |name: &str| own.filter(|_| name.eq_ignore_ascii_case("self"));
        if let Some(fight) = &self.fight {
            return Ok(names
                .iter()
                .map(|n| is_own(n).map_or_else(|| self.among_those(fight, n), Named::One))
                .collect());
        }
        if let [name] = names
            && let Some(own) = is_own(name)
        {
            return Ok(vec![Named::One(own)]);
        }
        let found = named_all(self.tx, self.cx.campaign, names).await?;
        Ok(names.iter().zip(found).map(|(name, found)| is_own(name).map_or(found, Named::One)).collect())
    }

    /// Checks that the fight's log has room for what happens. One statement, or none if a tenant may have any number of rows.
    async fn has_room(&self) -> Result<()> {
        check_rows_more(self.tx, self.cx.rows_max, "message", encounters::service::MESSAGES).await
    }

    /// Who reads the answer: as a character, its player.
    fn eyes(&self) -> Eyes {
        match Eyes::of_reader(self.cx.reader) {
            Eyes::Player(_) if self.cx.kind == ActorKind::Character => Eyes::Player(Some(self.cx.entity)),
            eyes => eyes,
        }
    }

    /// The participant that the caller plays. None for game masters and NPCs.
    fn own_in<'f>(&self, fight: &'f Stored) -> Option<&'f str> {
        let own = Some(self.cx.entity).filter(|_| self.cx.kind == ActorKind::Character)?;
        stand::own_in(&fight.now, &own.to_string()).map(|p| p.id.as_str())
    }

    /// The participant that a name means. A character, or a caller who is no game master, cannot mean somebody whom only the game
    /// master knows about.
    fn among_those(&self, fight: &Stored, wanted: &str) -> Named {
        let own = self.own_in(fight);
        let knows_all = self.cx.kind != ActorKind::Character && self.eyes() == Eyes::Master;
        let found = names::named(&fight.now, wanted, |p| knows_all || stand::is_known(p, own));
        match found.as_slice() {
            [one] => {
                let at = fight.now.participants().iter().position(|p| p.id == one.id);
                at.map_or_else(|| Named::Unclear("nobody".to_owned()), |at| Named::One(Who::Participant(at)))
            }
            [] => Named::Unclear(format!("nobody called \"{}\" takes part", wanted.trim())),
            several => {
                let ids = several.iter().map(|p| p.id.as_str()).collect::<Vec<_>>().join(", ");
                Named::Unclear(format!("\"{}\" may be {ids}", wanted.trim()))
            }
        }
    }

    /// The creature that an AI's character or NPC means by a name. An actor in a fight acts there, even if the call does not name
    /// the fight.
    pub(super) async fn target(&mut self, name: &str) -> Result<Named> {
        let acts = self.cx.turn.is_some() && matches!(self.cx.kind, ActorKind::Character | ActorKind::Npc);
        if self.fight.is_some() || !acts || name.eq_ignore_ascii_case("self") {
            return self.whom(name).await;
        }
        match named_by(self.tx, self.cx.campaign, &[name], Some(self.cx.entity)).await? {
            Met::Here(mut named) => named.pop().ok_or_else(|| Error::internal("a name was lost")),
            Met::Fighting(id) => {
                self.fight = Some(fight(self.cx, &id.to_string(), !self.preview).await?);
                self.apply = true;
                self.whom(name).await
            }
        }
    }

    fn how(&self, harm: Harm, spares_damage: bool) -> How<'_> {
        How {
            tx: self.tx,
            campaign: self.cx.campaign,
            tool: self.tool,
            given: self.cx.dice,
            preview: self.preview,
            harm: harm == Harm::Always || self.apply,
            spares_damage,
            obeys_locks: !self.cx.is_command,
        }
    }

    /// Answers that the action is impossible.
    pub(super) fn impossible(&self, reason: &str) -> Result<ResolvedOutcome> {
        self.answer_with(impossible(reason))
    }

    /// Answers with an outcome that changes nothing.
    pub(super) fn answer_with(&self, outcome: Outcome) -> Result<ResolvedOutcome> {
        let how = self.how(Harm::Always, false);
        match &self.fight {
            Some(fight) => Ok(self.seen(fight, &how, outcome, &Rolled::nothing(self.cx.dice.unwrap_or_default()))),
            None => Ok(service::plain(&how, outcome)),
        }
    }

    /// The answer with what its reader may see of an outcome in a fight.
    fn seen(&self, fight: &Stored, how: &How<'_>, outcome: Outcome, rolled: &Rolled<'_>) -> ResolvedOutcome {
        service::count(how, &outcome);
        let effects = outcome.effects.len();
        let seen = self.eyes().outcomes(&fight.now, vec![outcome]).pop();
        let seen = seen.unwrap_or_else(|| OutcomeShown::nothing(false));
        let resolved = service::complete(how, seen, &vec![!self.preview; effects], rolled);
        ResolvedOutcome { encounter_id: Some(fight.id), ..resolved }
    }

    /// Runs a resolver for the actor alone.
    pub(super) async fn alone(
        &self,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<ResolvedOutcome> {
        self.on(self.actor()?, harm, run).await
    }

    /// Runs a resolver for one creature.
    pub(super) async fn on(
        &self,
        who: Who,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<ResolvedOutcome> {
        self.among(&[who], harm, |cast, dice| Ok(run(cast.creature(who)?, dice))).await
    }

    /// Runs a resolver for the creature that a name means.
    pub(super) async fn on_called(
        &self,
        name: &str,
        harm: Harm,
        run: impl Fn(&Creature, &mut dyn Dice) -> Result<Outcome, RuleError>,
    ) -> Result<ResolvedOutcome> {
        match self.whom(name).await? {
            Named::One(who) => self.on(who, harm, run).await,
            Named::Unclear(why) => self.impossible(&why),
        }
    }

    /// Runs a resolver for several creatures.
    pub(super) async fn among(
        &self,
        who: &[Who],
        harm: Harm,
        run: impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
    ) -> Result<ResolvedOutcome> {
        if let Some(fight) = &self.fight {
            return self.in_fight(fight, &Cast::of_fight(&fight.now, who), run).await;
        }
        let cast = Cast::read(self.tx, self.cx.campaign, who, !self.preview).await?;
        let how = self.how(harm, harm == Harm::WhenAsked);
        let Some(earlier) = self.cx.earlier else {
            return service::resolve(&how, cast, run).await;
        };
        let taken = Cell::new(None);
        let again = |cast: &Cast, dice: &mut dyn Dice| {
            let mut dice = TableFirst { table: earlier.of_call(), rest: dice };
            let outcome = run(cast, &mut dice);
            taken.set(Some(dice.table));
            outcome
        };
        let told = service::resolve(&how, cast, again).await?;
        if let Some(table) = taken.take() {
            earlier.take(table);
        }
        Ok(told)
    }

    /// Runs a resolver for participants of a fight, and makes its changes as an action of the encounter would.
    async fn in_fight(
        &self,
        fight: &Stored,
        cast: &Cast,
        run: impl Fn(&Cast, &mut dyn Dice) -> Result<Result<Outcome, RuleError>>,
    ) -> Result<ResolvedOutcome> {
        let by = match self.actor() {
            Ok(Who::Participant(at)) => fight.now.participants().get(at).map(|p| p.id.clone()),
            _ => None,
        };
        let decide = |dice: &mut dyn Dice| {
            let outcome = run(cast, dice)??;
            let decision = fight.now.absorb(by.as_deref(), &outcome.effects, dice)?;
            Ok((outcome, decision))
        };
        self.has_room().await?;
        let how = self.how(Harm::Always, false);
        let wish = Wish { given: self.cx.dice, seed: None, preview: self.preview };
        let ((outcome, decision), rolled) = dice::service::roll(self.tx, self.cx.campaign, &wish, decide).await?;
        if !outcome.impossible {
            rolled.used_up(0)?;
        }
        if !self.preview && !decision.events.is_empty() {
            let action = json!({ "action": self.tool, "participant_id": by }).to_string();
            let outcomes = [outcome.clone()];
            let entry = LogEntry { outcomes: &outcomes, ..LogEntry::of(action, self.tool, self.cx.turn) };
            store::append(self.tx, &mut fight.clone(), decision.events, &entry).await?;
        }
        let followed_by = self.eyes().outcomes(&fight.now, decision.outcomes);
        Ok(ResolvedOutcome { followed_by, ..self.seen(fight, &how, outcome, &rolled) })
    }

    /// Runs an action of the encounter instead, so that its turns, positions and action economy count. Answers like a resolver.
    pub(super) async fn as_action(&self, fight: &Stored, action: &Action) -> Result<ResolvedOutcome> {
        self.has_room().await?;
        let own = self.own_in(fight);
        let how = encounters::service::How {
            given: self.cx.dice,
            preview: self.preview,
            turn: self.cx.turn,
            is_command: self.cx.is_command,
            own,
            eyes: self.eyes(),
        };
        let told = encounters::service::act_in(self.tx, fight.clone(), action, &how).await?;
        let ActionTold { outcomes, preview, standing, told, dice, .. } = told;
        let mut outcomes = outcomes.into_iter();
        let mut outcome = outcomes.next();
        let effects = outcome.as_mut().map(OutcomeShown::take_effects).unwrap_or_default().into_iter();
        Ok(ResolvedOutcome {
            outcome,
            effects: effects.map(|change| AppliedChange { change, applied: !self.preview }).collect(),
            // Further outcomes, such as a saving throw to keep concentration.
            followed_by: outcomes.collect(),
            preview,
            encounter_id: Some(fight.id),
            round: Some(standing.round),
            turn: standing.turn,
            told,
            dice,
        })
    }

    /// Like [`Call::as_action`], for an action of the actor alone. None outside of an encounter.
    pub(super) async fn own_action(&self, kind: ActionKind) -> Result<Option<ResolvedOutcome>> {
        let (Some(fight), Ok(Who::Participant(at))) = (&self.fight, self.actor()) else { return Ok(None) };
        let mut action = Action::new(kind);
        action.participant_id = fight.now.participants().get(at).map(|p| p.id.clone());
        action.circumstances = self.circumstances.clone();
        self.as_action(fight, &action).await.map(Some)
    }
}
