//! The rules turn: how it opens, its work, and its end.

use std::sync::Arc;

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
        record::body_and_record,
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
        Reply,
        resource::{Place, Ref, campaign_id},
    },
    limits,
    models::Choice,
    tenants::tasks::{Task, slug_in},
};
use world::{fallen, scenes};

/// An action that the rules are about to decide.
pub(super) struct Opener<'a> {
    pub cx: &'a Cx<'a>,
    pub job: &'a RulesJob,
}

impl<'a> Open for Opener<'a> {
    type Turn = RulesTurn<'a>;

    /// Takes the character's place and reads the data for the prompt.
    async fn open(&self, start: Start) -> Result<Opening<RulesTurn<'a>>> {
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
            Opened::Replay(reply) => return Ok(Opening::Replay(reply)),
            Opened::Runs(id) => turn.talk.id = id,
        }
        if turn.acting.is_fallen {
            fallen::check_fallen(&tx, player).await?;
        }
        tx.commit().await?;
        Ok(Opening::Runs(Box::new(turn)))
    }
}

/// A turn in progress.
pub(super) struct RulesTurn<'a> {
    talk: Talk<'a>,
    /// The model that tells what was decided.
    narrator: Result<Arc<Choice>>,
    job: &'a RulesJob,
    scene: Option<Uuid>,
    acting: Acting,
}

impl Turn for RulesTurn<'_> {
    fn talk(&self) -> &Talk<'_> {
        &self.talk
    }

    async fn work(&mut self) -> Result<Reply> {
        let (decided, narration) = self.decide().await?;
        self.finish(&decided, narration).await
    }

    fn failed(&self, status: Status, _why: &Error) -> Result<(Vec<u8>, String)> {
        self.body_and_record(status, "", None)
    }

    fn told(&self, ended: Result<Reply>) -> Result<Reply> {
        ended.and_then(|_| Err(Error::new(Code::Conflict, "The turn was cancelled.").for_turn(self.talk.id)))
    }
}

impl RulesTurn<'_> {
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

    async fn finish(&self, decided: &Decided, narration: Option<String>) -> Result<Reply> {
        let resolution = Resolution::of(decided, narration, &self.talk);
        let (reply, messages) = match &self.job.command {
            Some(command) => (command.answer)(&resolution, &self.teller())?,
            None => (Reply::ok(&resolution)?, Vec::new()),
        };
        let ended = Ended {
            status: Status::Succeeded,
            record: self.body_and_record(Status::Succeeded, &decided.raw, resolution.narration)?.1,
            calls: &self.talk.llm_calls,
            body: &reply.body,
            reply: None,
        };
        if let Some(live) = &self.talk.asker.live {
            live.say(&decided.raw);
        }
        self.talk.save_told().await;
        self.talk.end(&self.row(), ended, &messages, Rest::default()).await?;
        Ok(reply)
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
    fn body_and_record(&self, status: Status, raw: &str, narration: Option<String>) -> Result<(Vec<u8>, String)> {
        let view = TurnView { narrative: raw.to_owned(), narration, ..self.talk.view(status) };
        body_and_record(&view, None, &self.talk.trace(self.acting.situation.clone()))
    }
}
