//! The rules turn: how it opens, its work, and its end.

use std::sync::Arc;

use serde::Serialize;
use uuid::Uuid;

use super::{
    context::{Acting, acting},
    job::{COMMAND_MESSAGES, RulesJob, Teller},
    narrate,
    resolution::Resolution,
    ruling::{Decided, Ruling},
};
use crate::{
    tools::Rest,
    turns::{
        cx::{Cx, Start},
        frame::{Open, Opening, Turn},
        kind::TurnKind,
        record::{Recorded, recorded},
        store::{self, Ended, NewTurn, Opened},
        subject::Subject,
        talk::Talk,
        view::{Status, TurnView},
    },
};
use base::error::{Code, Error, Result};
use db::tenancy::Origin;
use edge::{
    auth::player,
    http::{
        Made,
        resource::{Place, Ref, campaign_id},
    },
    limits,
    models::Choice,
    tenants::tasks::{Task, slug_in},
};
use world::{fallen, paused, scenes};

/// An action that the rules are about to decide.
pub(super) struct Opener<'a, V> {
    pub cx: &'a Cx<'a>,
    pub job: &'a RulesJob<V>,
}

impl<'a, V: Serialize> Open for Opener<'a, V> {
    type Turn = RulesTurn<'a, V>;

    /// Takes the character's place and reads the data for the prompt.
    async fn open(&self, start: Start) -> Result<Opening<RulesTurn<'a, V>>> {
        let Cx { app, caller, asker, ref models } = *self.cx;
        let job = self.job;
        let actor = caller.actor().in_turn(start.id, Origin::Turn);
        let tx = store::opening(&app.pool, &actor, asker.live.as_deref(), start.place).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(&job.campaign)).await?;
        let player = player::id(&tx, campaign, &job.player).await?;
        caller.may_act_as(player)?;
        app.limits.check_tokens(&tx, &caller.tenant).await?;
        let acting = acting(&tx, campaign, player, &job.action).await?;
        let scene = match &job.command {
            Some(command) => {
                limits::check_rows_more(&tx, caller.tenant.limits.rows_per_kind, "message", COMMAND_MESSAGES).await?;
                let place = Place { tx: &tx, campaign, caller };
                scenes::service::named(&place, command.scene.as_deref(), command.channel.as_deref()).await?
            }
            None => None,
        };
        let choose = |task| models.choose(task, &[slug_in(acting.models.as_ref(), task)]);
        let (choice, narrator) = (choose(Task::Classify)?, choose(Task::Narrate));
        let mode = job.mode.unwrap_or(choice.mode);
        let subject = Subject::of_character(TurnKind::Rules, campaign, player);
        let talk = Talk::new(self.cx, subject, (Task::Classify, choice), mode, start);
        let mut turn = RulesTurn { talk, narrator, job, scene, acting };
        match store::open(&tx, &turn.row()).await? {
            Opened::Replay(stored) => return Ok(Opening::Replay(stored)),
            Opened::Runs(id) => turn.talk.id = id,
        }
        if turn.acting.is_paused && paused::holds_for(caller) {
            return Err(paused::refusal("The game"));
        }
        if turn.acting.is_fallen {
            fallen::check_fallen(&tx, player).await?;
        }
        tx.commit().await?;
        Ok(Opening::Runs(Box::new(turn)))
    }
}

/// A turn in progress.
pub(super) struct RulesTurn<'a, V> {
    talk: Talk<'a>,
    /// The model that tells what was decided.
    narrator: Result<Arc<Choice>>,
    job: &'a RulesJob<V>,
    scene: Option<Uuid>,
    acting: Acting,
}

impl<V: Serialize> Turn for RulesTurn<'_, V> {
    type Answer = V;

    fn talk(&self) -> &Talk<'_> {
        &self.talk
    }

    async fn work(&mut self) -> Result<Made<V>> {
        let (decided, narration) = self.decide().await?;
        self.finish(decided, narration).await
    }

    fn failed(&self, status: Status, _why: &Error) -> Result<Recorded> {
        self.recorded(status, "", None)
    }

    fn told(&self, ended: Result<Made<TurnView>>) -> Result<Made<V>> {
        ended.and_then(|_| Err(Error::new(Code::Conflict, "The turn was cancelled.").for_turn(self.talk.id)))
    }
}

impl<V: Serialize> RulesTurn<'_, V> {
    fn row(&self) -> NewTurn<'_> {
        self.talk.row(&self.job.action, self.job.key.as_ref())
    }

    async fn decide(&mut self) -> Result<(Decided, Option<String>)> {
        let Subject { campaign, entity: player, .. } = self.talk.subject;
        let mut ruling = Ruling {
            judge: self.talk.choice.clone(),
            talk: &mut self.talk,
            campaign,
            player,
            acting: &self.acting,
            action: &self.job.action,
            is_command: self.job.command.is_some(),
            dice: self.job.dice.as_deref(),
            preview: self.job.preview,
        };
        let decided = ruling.decide().await?;
        let narrated =
            decided.is_a_tale() && self.job.command.is_some() && self.talk.caller.tenant.settings.features.llm_visible;
        let narration = if narrated {
            narrate::narrate(&mut self.talk, &self.narrator, &self.acting.name, &self.job.action, &decided.raw).await
        } else {
            None
        };
        Ok((decided, narration))
    }

    async fn finish(&self, decided: Decided, narration: Option<String>) -> Result<Made<V>> {
        let raw = decided.raw.clone();
        let resolution = Resolution::of(decided, narration, &self.talk);
        let record = self.recorded(Status::Succeeded, &raw, resolution.narration.clone())?.record;
        let (answer, messages) = (self.job.answer)(resolution, &self.teller())?;
        let answer = Made::ok(answer)?;
        let ended = Ended {
            status: Status::Succeeded,
            record,
            calls: &self.talk.llm_calls,
            answer: answer.stored(),
            reply: None,
            question: None,
        };
        if let Some(live) = &self.talk.asker.live {
            live.say(&raw);
        }
        self.talk.save_told().await;
        self.talk.end(&self.row(), ended, &messages, Rest::default()).await?;
        Ok(answer)
    }

    fn teller(&self) -> Teller<'_> {
        let Acting { name, .. } = &self.acting;
        Teller {
            turn: self.talk.id,
            player: self.talk.subject.entity,
            name,
            scene: self.scene,
            words: Some(&self.job.action),
        }
    }

    /// The turn's view, and the record that contains it, as `GET …/turns/{id}` shows it.
    fn recorded(&self, status: Status, raw: &str, narration: Option<String>) -> Result<Recorded> {
        let view = TurnView { narrative: raw.to_owned(), narration, ..self.talk.view(status) };
        recorded(view, None, &self.talk.trace(self.acting.situation.clone()))
    }
}
