//! `/dice/roll`, `/dice/analyze`, `/dice/verify`, and the seeds of fair dice.

use actix_web::{Responder, web};
use rules::dice::{Formula, FormulaError, Meaning};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    rolls::{self, RollInput, RollReport},
    seeds::{self, SeedView, Taking},
    service::Wish,
    streams::{self, RotateRequest, Rotated},
    variables::Values,
    verify::{Verified, VerifyInput, recompute},
};
use base::error::{Code, Error, FieldError, Problem, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        Answer,
        body::Body,
        computed,
        paging::{Items, ListParams, NoFilter, Page},
        resource::{Ref, campaign_id},
        write,
    },
    state::Edge,
};

/// The seed of simulations, fixed so that the same formula always gets the same answer.
const SIMULATION_SEED: u64 = 20;

/// Formulas to roll.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollRequest {
    #[schema(min_items = 1, max_items = 20)]
    rolls: Vec<RollInput>,
    /// Values for the names that formulas use with `@`, nested (`{"abilities": {"dex": {"mod": 3}}}`) or with dots. A value is a number,
    /// or text that is a formula. Members that no formula uses may be anything, so Foundry's roll data can be sent unchanged.
    #[schema(value_type = Option<Object>)]
    variables: Option<Map<String, Value>>,
    /// Dice rolled by hand, used in order over all rolls; needs the scope `gm`.
    dice: Option<Vec<u32>>,
    /// A seed to roll with instead of the fair stream; needs the scope `gm`.
    seed: Option<u64>,
    /// The campaign whose fair stream to use, by id or slug; the tenant's own stream if left out.
    campaign: Option<String>,
}

/// A formula to analyze.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalyzeRequest {
    formula: String,
    /// As for a roll.
    #[schema(value_type = Option<Object>)]
    variables: Option<Map<String, Value>>,
}

/// What is known of a formula before it is rolled.
#[derive(Debug, Serialize, ToSchema)]
pub struct Statistics {
    /// The least total; null if there is none.
    pub min: Option<f64>,
    /// The greatest total; null if explosions are unbounded.
    pub max: Option<f64>,
    pub mean: f64,
    pub standard_deviation: f64,
    /// `exact` or `simulated`.
    pub method: String,
    /// Totals in rising order, each with its probability.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub distribution: Vec<(f64, f64)>,
}

/// Rolls up to 20 formulas. A formula that cannot be rolled gives a result with `success: false`.
#[utoipa::path(post, path = "/v1/dice/roll",
    tag = "dice", operation_id = "roll_dice", request_body = RollRequest,
    responses((status = 200, body = RollReport), (status = "default", body = Problem)))]
pub async fn roll(app: web::Data<Edge>, caller: Caller, body: Body<RollRequest, true>) -> Result<impl Responder> {
    let RollRequest { rolls, variables, dice, seed, campaign } = &body.value;
    if dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    if seed.is_some() {
        caller.needs_game_master("Choosing a seed")?;
    }
    if dice.is_some() && seed.is_some() {
        return Err(Error::invalid("/seed", "invalid_value", "Give either dice or a seed, not both."));
    }
    rolls::check(rolls)?;
    let values = Values::of(variables.as_ref());
    let wish = Wish { given: dice.as_deref(), seed: *seed, preview: false };
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        // The campaign of a restricted token may have been deleted.
        let campaign = match campaign.as_deref().map(Ref::parse).or(caller.campaign.map(Ref::Id)) {
            Some(named) => Some(campaign_id(tx, &caller, &named).await?),
            None => None,
        };
        Ok(Answer::ok(rolls::roll(Taking::Within(tx), campaign, &wish, rolls, &|name| values.get(name)).await?))
    })
    .await
}

/// Analyzes a formula: least and greatest total, mean, deviation and distribution.
#[utoipa::path(post, path = "/v1/dice/analyze",
    tag = "dice", operation_id = "analyze_dice", request_body = AnalyzeRequest,
    responses((status = 200, body = Statistics), (status = "default", body = Problem)))]
pub async fn analyze(app: web::Data<Edge>, caller: Caller, body: Body<AnalyzeRequest>) -> Result<impl Responder> {
    let AnalyzeRequest { formula, variables } = body.value;
    let work = move || {
        let values = Values::of(variables.as_ref());
        let read = Formula::parse_with(&formula, &|name| values.get(name)).and_then(|formula| {
            formula.analyze(&|name: &str| values.get(name).and_then(Meaning::number), SIMULATION_SEED)
        });
        Ok(Answer::ok(read.map_err(|error| in_formula(&error))?))
    };
    let work = async || web::block(work).await.map_err(Error::internal)?;
    computed(&app, &caller, body.idempotency.as_ref(), work).await
}

/// An error in the formula, as an error of the request.
fn in_formula(error: &FormulaError) -> Error {
    let mut problem = Error::new(Code::InvalidFormula, error.to_string());
    problem.errors =
        vec![FieldError { pointer: "/formula".into(), code: error.kind.code().into(), message: error.to_string() }];
    problem
}

/// Recomputes past rolls from revealed seeds.
#[utoipa::path(post, path = "/v1/dice/verify",
    tag = "dice", operation_id = "verify_dice", request_body = VerifyInput,
    responses((status = 200, body = Verified), (status = "default", body = Problem)))]
pub async fn verify(app: web::Data<Edge>, caller: Caller, body: Body<VerifyInput>) -> Result<impl Responder> {
    let input = &body.value;
    let rolls = input.rolls()?;
    let values = Values::of(input.variables.as_ref());
    let work = async || {
        let seeds = match input.seed_id {
            None => input.given_seeds()?,
            Some(_) if input.server_seed.is_some() || input.client_seed.is_some() => {
                let message = "Give either `seed_id`, or `server_seed` and `client_seed`, not both.";
                return Err(Error::invalid("/seed_id", "invalid_value", message));
            }
            Some(id) => {
                let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
                let seeds = seeds::revealed(&tx, id, caller.campaign).await?;
                input.was_rolled(&seeds, &rolls)?;
                seeds
            }
        };
        Ok(Answer::ok(recompute(&seeds, input, &rolls, &|name| values.get(name)).await?))
    };
    computed(&app, &caller, body.idempotency.as_ref(), work).await
}

/// Lists the seeds of a campaign's fair dice. The first seed is made for this request if there is none yet, so that its
/// commitment is known before the first roll.
#[utoipa::path(get, path = "/v1/campaigns/{c}/dice/seeds",
    tag = "dice", operation_id = "list_campaign_dice_seeds",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams),
    responses((status = 200, body = Items<SeedView>), (status = "default", body = Problem)))]
pub async fn list_seeds(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<NoFilter>,
) -> Result<impl Responder> {
    Ok(Answer::ok(streams::seeds_of(&app, &caller, Some(&path), &page).await?))
}

/// Reveals a campaign's seed in use, so that its rolls can be verified, and begins another.
#[utoipa::path(post, path = "/v1/campaigns/{c}/dice/seeds/rotate",
    tag = "dice", operation_id = "rotate_campaign_dice_seed", request_body = RotateRequest,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = Rotated), (status = "default", body = Problem)))]
pub async fn rotate_seed(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<RotateRequest>,
) -> Result<impl Responder> {
    streams::rotate(&app, &caller, Some(&path), body).await
}

/// Lists the seeds for dice that are rolled outside of campaigns.
#[utoipa::path(get, path = "/v1/dice/seeds",
    tag = "dice", operation_id = "list_dice_seeds", params(ListParams),
    responses((status = 200, body = Items<SeedView>), (status = "default", body = Problem)))]
pub async fn list_own_seeds(app: web::Data<Edge>, caller: Caller, page: Page<NoFilter>) -> Result<impl Responder> {
    Ok(Answer::ok(streams::seeds_of(&app, &caller, None, &page).await?))
}

/// Reveals the seed in use for dice outside of campaigns, and begins another.
#[utoipa::path(post, path = "/v1/dice/seeds/rotate",
    tag = "dice", operation_id = "rotate_dice_seed", request_body = RotateRequest,
    responses((status = 200, body = Rotated), (status = "default", body = Problem)))]
pub async fn rotate_own_seed(
    app: web::Data<Edge>,
    caller: Caller,
    body: Body<RotateRequest>,
) -> Result<impl Responder> {
    streams::rotate(&app, &caller, None, body).await
}
