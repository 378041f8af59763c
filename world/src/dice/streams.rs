//! The seeds of a campaign's or the tenant's fair stream, by the stream's name: commitments before the rolls, server seeds after them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::seeds::{self, SeedView};
use base::error::{Code, Error, Result};
use db::tenancy::{self, TenantTx};
use edge::{
    caller::Caller,
    http::{
        Answer, Body, Written,
        paging::{Items, NoFilter, Page},
        resource::{Ref, campaign_id},
        write,
    },
    state::Edge,
};

/// The most characters of a client seed.
const CLIENT_SEED_CHARS_MAX: usize = 64;

/// The client seed for the next seed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    /// 1 to 64 visible characters; random if left out.
    #[schema(min_length = 1, max_length = 64)]
    client_seed: Option<String>,
}

/// The revealed seed and its successor.
#[derive(Debug, Serialize, ToSchema)]
pub struct Rotated {
    /// The seed that was in use, now revealed; null if there was none.
    pub revealed: Option<SeedView>,
    pub current: SeedView,
}

/// The stream that a path names: a campaign's, or the tenant's own (`None`).
async fn stream(tx: &TenantTx, caller: &Caller, c: Option<&str>) -> Result<Option<Uuid>> {
    match c {
        Some(c) => Ok(Some(campaign_id(tx, caller, &Ref::parse(c)).await?)),
        None if caller.campaign.is_some() => Err(Error::new(Code::Forbidden, "This token is for one campaign only.")),
        None => Ok(None),
    }
}

/// The stream's seeds. The first one is made for this request if there is none yet, so that its commitment is known before the first
/// roll.
///
/// # Errors
/// `not_found`; `forbidden` for the tenant's own stream with a token for one campaign.
pub(super) async fn seeds_of(
    app: &Edge,
    caller: &Caller,
    c: Option<&str>,
    page: &Page<NoFilter>,
) -> Result<Items<SeedView>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = stream(&tx, caller, c).await?;
    if seeds::in_use(&tx, campaign).await? {
        return seeds::list(&tx, campaign, page).await;
    }
    drop(tx);
    tenancy::write(&app.pool, caller.actor(), async |tx| {
        let campaign = stream(tx, caller, c).await?;
        seeds::begin(tx, campaign, None).await?;
        seeds::list(tx, campaign, page).await
    })
    .await
}

/// Reveals the stream's seed in use, and begins another.
///
/// # Errors
/// As for [`seeds_of`]; `validation_failed` for an invalid client seed.
pub(super) async fn rotate(
    app: &Edge,
    caller: &Caller,
    c: Option<&str>,
    body: Body<RotateRequest>,
) -> Result<Written<Rotated>> {
    let client_seed = body.value.client_seed.as_deref();
    if client_seed.is_some_and(|seed| !is_client_seed(seed)) {
        let message = format!("must have 1 to {CLIENT_SEED_CHARS_MAX} visible characters");
        return Err(Error::invalid("/client_seed", "invalid_value", message));
    }
    write(app, caller, body.idempotency.as_ref(), async |tx| {
        let campaign = stream(tx, caller, c).await?;
        let (revealed, current) = seeds::rotate(tx, campaign, client_seed).await?;
        Ok(Answer::ok(Rotated { revealed, current }))
    })
    .await
}

/// Whether people can read the text aloud: no spaces, control characters or invisible characters.
fn is_client_seed(text: &str) -> bool {
    let hidden = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    (1..=CLIENT_SEED_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(hidden)
}
