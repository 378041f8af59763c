//! What model calls used, in the form that the database counts.

use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use crate::turns::view::LlmCall;
use base::{clock, error::Result};
use db::tenancy::TenantTx;
use edge::tenants::tasks::Task;
use llm::Usage;

/// By whom models were used.
pub struct UsedBy<'a> {
    pub campaign: Uuid,
    /// The kind of turn, or `lab`.
    pub kind: &'a str,
    pub turn: Option<Uuid>,
    pub player: Option<Uuid>,
}

impl UsedBy<'_> {
    /// Counts what calls used. No statement if there were none. Rows that were counted already are not counted again.
    ///
    /// # Errors
    /// Database errors.
    pub async fn count(&self, tx: &TenantTx, rows: &[Used<'_>]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        sqlx::query("SELECT count_usage($1, $2, $3, $4, $5, $6)")
            .bind(tx.tenant())
            .bind(self.campaign)
            .bind(self.kind)
            .bind(self.turn)
            .bind(self.player)
            .bind(Json(rows))
            .execute(&mut *tx.connection().await)
            .await?;
        Ok(())
    }
}

/// What was used of one model for one task, as `count_usage` in the database takes it. Counts are tokens except `llm_calls`.
#[derive(Debug, Serialize)]
pub struct Used<'a> {
    id: Uuid,
    profile: Option<&'a str>,
    task: Option<Task>,
    model: &'a str,
    llm_calls: i32,
    prompt_tokens: i64,
    cached_tokens: i64,
    completion_tokens: i64,
    /// None if the price of a call is not known.
    cost_micros: Option<i64>,
}

impl<'a> Used<'a> {
    fn of(
        task: Option<Task>,
        profile: Option<&'a str>,
        model: &'a str,
        usage: Usage,
        cost_micros: Option<u64>,
    ) -> Self {
        Self {
            id: clock::id(),
            profile,
            task,
            model,
            llm_calls: i32::try_from(usage.llm_calls).unwrap_or(i32::MAX),
            prompt_tokens: clamp(usage.prompt_tokens),
            cached_tokens: clamp(usage.cached_tokens),
            completion_tokens: clamp(usage.completion_tokens),
            cost_micros: cost_micros.map(clamp),
        }
    }

    /// What a call used, and what those used that were asked before it and said nothing.
    fn by(call: &'a LlmCall) -> impl Iterator<Item = Self> {
        let own = Self::of(call.task, call.profile.as_deref(), &call.model, call.usage, call.cost_micros);
        let before = call.tried.iter().filter_map(|tried| {
            Some(Self::of(call.task, tried.profile.as_deref(), &tried.model, tried.usage?, tried.cost_micros))
        });
        before.chain([own])
    }

    fn is_of(&self, other: &Self) -> bool {
        (self.profile, self.task, self.model) == (other.profile, other.task, other.model)
    }

    fn add(&mut self, other: &Self) {
        self.llm_calls = self.llm_calls.saturating_add(other.llm_calls);
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.cost_micros = self.cost_micros.zip(other.cost_micros).map(|(one, more)| one.saturating_add(more));
    }
}

/// What calls used: one row for each profile, task and model.
#[must_use]
pub fn used(calls: &[LlmCall]) -> Vec<Used<'_>> {
    let mut sums: Vec<Used<'_>> = Vec::new();
    for one in calls.iter().flat_map(Used::by) {
        match sums.iter_mut().find(|sum| sum.is_of(&one)) {
            Some(sum) => sum.add(&one),
            None => sums.push(one),
        }
    }
    sums
}

fn clamp(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
