//! Opens a turn of a session's AI: takes the session's place, and reads the data for the prompt.

use std::sync::Arc;

use uuid::Uuid;

use super::{job::GmJob, session_prompts::CachedPrompt, turn::GmTurn};
use crate::{
    tools::Hand,
    turns::{
        cx::{Cx, Start},
        frame::{Open, Opening},
        store::{self, Opened, Place},
        talk::Talk,
        view::Mechanics,
    },
};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::{
    http::resource::{Ref, campaign_id},
    tenants::tasks::{Task, slug_in},
};
use entity::CampaignId;
use world::{
    paused, playing,
    sessions::facts::{Facts, facts},
};

/// A session's turn that is about to take its place.
pub(super) struct Opener<'a> {
    pub cx: &'a Cx<'a>,
    pub job: &'a GmJob,
    pub mechanics: Option<Mechanics>,
}

impl<'a> Open for Opener<'a> {
    type Turn = GmTurn<'a>;

    async fn open(&self, start: Start) -> Result<Opening<GmTurn<'a>>> {
        let Cx { app, caller, ref models, .. } = *self.cx;
        let job = self.job;
        let kept = app.session_prompts.get(caller.tenant_id(), &job.cache_key());
        // The campaign's choice as it was. What it is now is read while the turn opens.
        let settings = kept.as_ref().map(|kept| &kept.campaign.settings);
        let choice = models.provisional(Task::Gm, &[slug_in(settings.and_then(|s| s.get("models")), Task::Gm)]);
        let mode = job.mode.unwrap_or(choice.mode);
        // The campaign is found while the turn opens.
        let subject = job.subject(Uuid::nil());
        let talk = Talk::new(self.cx, subject, (Task::Gm, choice), mode, start).at_most(job.steps_max);
        if caller.tenant.limits.tokens_per_day > 0 {
            app.limits.check_tokens(&TenantTx::read(&app.pool, caller.tenant_id()).await?, &caller.tenant).await?;
        }
        let held = kept.as_deref().map(CachedPrompt::cached_facts).unwrap_or_default();
        if start.place == Place::Free {
            let (campaign, row) = (Ref::parse(&job.campaign), job.row(&talk, start.place));
            let opened = store::open_session(&app.pool, caller, &campaign, &row, job.role, held);
            if let Some(facts) = Box::pin(opened).await? {
                return Ok(Opening::Runs(Box::new(self.turn(talk, facts, kept))));
            }
        }
        Box::pin(self.open_in_steps(start, talk, kept)).await
    }
}

impl<'a> Opener<'a> {
    /// Opens the turn in a transaction of several statements: its key was used before, something is missing, the AI is paused, or it waits.
    async fn open_in_steps(
        &self,
        start: Start,
        mut talk: Talk<'a>,
        kept: Option<Arc<CachedPrompt>>,
    ) -> Result<Opening<GmTurn<'a>>> {
        let Cx { app, caller, asker, .. } = *self.cx;
        let job = self.job;
        let tx = store::opening(&app.pool, &talk.actor(), asker.live.as_deref(), start.place).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(&job.campaign)).await?;
        let playing = playing::playing(&tx, campaign, job.session).await?;
        talk.subject = job.subject(campaign);
        match store::open(&tx, &job.row(&talk, start.place)).await? {
            Opened::Replay(stored) => return Ok(Opening::Replay(stored)),
            Opened::Runs(id) => talk.id = id,
        }
        if paused::holds_for(caller) && paused::is_all(&tx, CampaignId(campaign)).await? {
            return Err(paused::refusal(playing.speaker()));
        }
        if start.place == Place::Queue {
            tx.commit().await?;
            return Ok(Opening::Waits(talk.id));
        }
        let held = kept.as_deref().map(CachedPrompt::cached_facts).unwrap_or_default();
        let facts = facts(&tx, campaign, job.session, job.role, held).await?;
        store::tell(&tx, talk.id, &facts).await?;
        tx.commit().await?;
        Ok(Opening::Runs(Box::new(self.turn(talk, facts, kept))))
    }

    fn turn(&self, mut talk: Talk<'a>, facts: Facts, kept: Option<Arc<CachedPrompt>>) -> GmTurn<'a> {
        talk.subject = self.job.subject(facts.playing.campaign);
        GmTurn {
            talk,
            models: &self.cx.models,
            job: self.job,
            facts,
            kept,
            prompt: None,
            mechanics: self.mechanics.clone(),
            hand: self.job.dice.clone().map(Hand::of),
        }
    }
}
