//! The names in a request for a prompt. They become ids here, once.

use std::cell::Cell;

use serde_json::Value;
use uuid::Uuid;

use super::{
    cache::Prompts,
    key::{Alias, PromptKey, task_of},
};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::resource::{Ref, campaign_id},
    models::TenantModels,
    tenants::tasks::slug_in,
};
use entity::kind::EntityKind;
use llm::ReplyMode;

/// The names of an entity and a player in a request, and the campaign's.
#[derive(Clone, Copy)]
pub struct PromptNames<'a> {
    pub campaign: &'a str,
    pub kind: EntityKind,
    pub entity: &'a str,
    pub player: &'a str,
}

/// A requested prompt.
pub struct PromptRequest<'a> {
    pub names: PromptNames<'a>,
    /// None if the chosen model decides.
    pub mode: Option<ReplyMode>,
    /// What the tenant's turns can ask.
    pub models: &'a TenantModels,
    /// What the names stood for the last time, if the server remembers it and the caller may use it.
    known: Cell<Option<PromptKey>>,
}

impl<'a> PromptRequest<'a> {
    /// A request with the ids that the server remembers for its names. Asks no database.
    #[must_use]
    pub fn new(
        prompts: &Prompts,
        caller: &Caller,
        names: PromptNames<'a>,
        mode: Option<ReplyMode>,
        models: &'a TenantModels,
    ) -> Self {
        let request = Self { names, mode, models, known: Cell::default() };
        request.known.set(prompts.cached_key(&request.alias(caller)).filter(|key| may_use(caller, key).is_ok()));
        request
    }

    /// What the names stood for the last time.
    #[must_use]
    pub fn known(&self) -> Option<PromptKey> {
        self.known.get()
    }

    /// The ids for the names. Asks the database for names that the server does not remember.
    ///
    /// # Errors
    /// `not_found` for campaign or entity, `validation_failed` for the player, `forbidden` for another player.
    pub async fn key(&self, prompts: &Prompts, pool: &Pool, caller: &Caller) -> Result<PromptKey> {
        if let Some(key) = self.known() {
            return Ok(key);
        }
        let key = self.resolve(&TenantTx::read(pool, caller.tenant_id()).await?, caller).await?;
        self.remember(prompts, caller, key);
        Ok(key)
    }

    /// Remembers what the names stand for.
    pub(super) fn remember(&self, prompts: &Prompts, caller: &Caller, key: PromptKey) {
        prompts.learn(self.alias(caller), key);
        self.known.set(Some(key));
    }

    fn alias(&self, caller: &Caller) -> Alias {
        Alias {
            tenant: caller.tenant_id(),
            campaign: self.names.campaign.to_owned(),
            kind: self.names.kind,
            entity: self.names.entity.to_owned(),
            player: self.names.player.to_owned(),
            mode: self.mode,
        }
    }

    /// The ids for the names, as the transaction sees them.
    ///
    /// # Errors
    /// As for [`Self::key`].
    pub(super) async fn resolve(&self, tx: &TenantTx, caller: &Caller) -> Result<PromptKey> {
        let PromptNames { campaign, kind, entity, player } = self.names;
        let campaign = campaign_id(tx, caller, &Ref::parse(campaign)).await?;
        let rows = sqlx::query(
            "SELECT kind, actor_id, slug, \
           (SELECT c.settings -> 'models' FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2) AS models, \
           CASE kind WHEN 'npc' THEN (SELECT n.model FROM npc n WHERE n.tenant_id = $1 AND n.id = actor_id) \
             WHEN 'owner' THEN (SELECT o.model FROM owner o WHERE o.tenant_id = $1 AND o.id = actor_id) END AS model \
         FROM actor_slug WHERE tenant_id = $1 AND campaign_id = $2 AND (slug IN ($3, $4) OR actor_id IN ($5, $6))",
        )
        .bind(tx.tenant())
        .bind(campaign)
        .bind(entity)
        .bind(player)
        .bind(Uuid::try_parse(entity).ok())
        .bind(Uuid::try_parse(player).ok())
        .fetch_all(&mut *tx.connection().await)
        .await?;
        let actors = rows
            .iter()
            .map(|row| Ok((row.read("kind")?, row.read("actor_id")?, row.read("slug")?, row.read("model")?)))
            .collect::<Result<Vec<(&str, Uuid, &str, Option<&str>)>>>()?;
        let find = |wanted: &str, name: &str| {
            actors.iter().find_map(|&(kind, id, slug, model)| {
                let named = match Ref::parse(name) {
                    Ref::Id(given) => given == id,
                    Ref::Slug(given) => given == slug,
                };
                (named && kind == wanted).then_some((id, model))
            })
        };
        let (entity, own) = find(kind.as_str(), entity).ok_or_else(|| Error::not_found(kind.as_str()))?;
        let (player, _) = find("character", player).ok_or_else(|| {
            Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
        })?;
        let chosen: Option<Value> = rows.first().map_or(Ok(None), |row| row.read("models"))?;
        let task = task_of(kind);
        let mode = self.mode.unwrap_or_else(|| self.models.mode(task, &[own, slug_in(chosen.as_ref(), task)]));
        let key = PromptKey { campaign, entity, player, mode };
        may_use(caller, &key)?;
        Ok(key)
    }
}

/// Checks that the caller's token reaches this campaign and this player.
fn may_use(caller: &Caller, key: &PromptKey) -> Result<()> {
    if caller.campaign.is_some_and(|only| only != key.campaign) {
        return Err(Error::not_found("campaign"));
    }
    caller.may_act_as(key.player)
}
