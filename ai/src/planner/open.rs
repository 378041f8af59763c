//! Begins a plan: writes the player's words into the history, stores that the turn runs, and claims its idempotency key.

use std::sync::Arc;

use tokio::time::Instant;

use super::{memory::Scene, prompt, request::ActRequest, turn::PlanTurn};
use crate::turns::{
    cx::{Cx, Start},
    frame::{Open, Opening},
    kind::TurnKind,
    store::{self, NewTurn, Opened},
    subject::Subject,
    talk::Talk,
};
use base::error::Result;
use edge::{
    http::resource::Place,
    limits::{self, Counted},
    tenants::tasks::{Task, slug_in},
};
use entity::message::Author;
use world::{fallen, messages::service::NewMessage, scenes};

/// The most messages of a plan: the player's words, and those of the command.
const MESSAGES: u64 = 3;

/// A text that is about to be planned.
pub(super) struct Opener<'a> {
    pub cx: &'a Cx<'a>,
    pub request: &'a ActRequest,
    pub scene: Arc<Scene>,
    pub counted: &'a Counted,
    /// When the server got the text.
    pub began: Instant,
}

impl<'a> Open for Opener<'a> {
    type Turn = PlanTurn<'a>;

    /// One round trip if what the server remembers of the scene is up to date.
    async fn open(&self, start: Start) -> Result<Opening<PlanTurn<'a>>> {
        let Cx { app, caller, .. } = *self.cx;
        let limits = &caller.tenant.limits;
        let has_quota = limits.tokens_per_day > 0 || limits.rows_per_kind > 0;
        if !has_quota && !self.scene.is_new_channel && !self.scene.is_fallen {
            let turn = self.turn(start, self.scene.clone());
            let said = turn.said();
            let new = NewTurn { said: said.as_ref(), ..turn.row() };
            if store::open_cached(&app.pool, &caller.actor(), &new, turn.scene.stamps()).await? {
                return Ok(Opening::Runs(Box::new(turn)));
            }
        }
        Box::pin(self.open_in_steps(start)).await
    }
}

impl<'a> Opener<'a> {
    /// One statement for each step.
    async fn open_in_steps(&self, start: Start) -> Result<Opening<PlanTurn<'a>>> {
        let Cx { app, caller, asker, .. } = *self.cx;
        let tx = store::opening(&app.pool, &caller.actor(), asker.live.as_deref(), start.place).await?;
        app.limits.check_tokens(&tx, &caller.tenant).await?;
        limits::check_rows_more(&tx, caller.tenant.limits.rows_per_kind, "message", MESSAGES).await?;
        let mut scene = Scene::read(app, &tx, caller, self.request).await?;
        // A dry run creates no scene.
        if let (true, false, Some(channel)) = (scene.is_new_channel, self.request.dry_run, &self.request.channel) {
            let place = Place { tx: &tx, campaign: scene.campaign, caller };
            Arc::make_mut(&mut scene).scene = Some(scenes::service::of_channel(&place, channel).await?);
        }
        let mut turn = self.turn(start, scene);
        let said = turn.said();
        match store::open(&tx, &NewTurn { said: said.as_ref(), ..turn.row() }).await? {
            Opened::Replay(stored) => return Ok(Opening::Replay(stored)),
            Opened::Runs(id) => turn.talk.id = id,
        }
        if turn.scene.is_fallen {
            fallen::check_fallen(&tx, turn.scene.player).await?;
        }
        tx.commit().await?;
        Ok(Opening::Runs(Box::new(turn)))
    }

    fn turn(&self, start: Start, scene: Arc<Scene>) -> PlanTurn<'a> {
        let models = &self.cx.models;
        let choice = models.provisional(Task::Plan, &[slug_in(scene.models.as_ref(), Task::Plan)]);
        let start = Start { at: self.began, ..start };
        let mode = choice.mode;
        let subject = Subject::of_character(TurnKind::Planner, scene.campaign, scene.player);
        PlanTurn {
            models,
            talk: Talk::new(self.cx, subject, (Task::Plan, choice), mode, start),
            request: self.request,
            words: prompt::words(&scene.player_slug, &scene.player_name, &self.request.text),
            scene,
            counted: self.counted,
            confidence: None,
            cached: false,
        }
    }
}

impl PlanTurn<'_> {
    /// The player's words as a message, which has the turn's id. A dry run says nothing.
    fn said(&self) -> Option<NewMessage> {
        (!self.request.dry_run).then(|| NewMessage {
            id: self.talk.id,
            scene_id: self.scene.scene,
            player_id: Some(self.scene.player),
            turn_id: Some(self.talk.id),
            ..NewMessage::chat(Author::Player, &self.scene.player_name, self.request.text.clone())
        })
    }
}
