//! `/dice/roll`, `/dice/analyze` and `/dice/verify`.

use actix_web::{post, web};
use rules::dice::{Formula, FormulaError, Meaning};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    rolls::{self, RollInput, RollReport},
    seeds::{self, Taking},
    service::Wish,
    variables::Values,
    verify::{Verified, VerifyInput, again},
};
use crate::{
    app::App,
    auth::Caller,
    error::{Code, Error, FieldError, Problem, Result},
    http::{
        Reply,
        body::{BODY_BYTES_MAX, Body},
        computed,
        resource::{Ref, campaign_id},
        write,
    },
    tenancy::TenantTx,
};

/// Simulations of one formula give one answer.
const SIMULATION_SEED: u64 = 20;

/// Formulas to roll.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollRequest {
    #[schema(min_items = 1, max_items = 20)]
    rolls: Vec<RollInput>,
    /// What the formulas name with `@`, nested (`{"abilities": {"dex": {"mod": 3}}}`) or with dots: numbers, and text that is a formula.
    /// What no formula names may be anything, so that Foundry's roll data can be sent as they are.
    #[schema(value_type = Option<Object>)]
    variables: Option<Map<String, Value>>,
    /// Dice rolled by hand, consumed in order over all rolls; needs the scope `gm`.
    dice: Option<Vec<u32>>,
    /// Dice of this seed instead of the fair stream; needs the scope `gm`.
    seed: Option<u64>,
    /// The campaign whose fair stream is used, by id or slug; without one the tenant's own.
    campaign: Option<String>,
}

/// A formula to look at.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnalyzeRequest {
    formula: String,
    /// As for a roll.
    #[schema(value_type = Option<Object>)]
    variables: Option<Map<String, Value>>,
}

/// What can be said of a formula before it is rolled.
#[derive(Debug, Serialize, ToSchema)]
pub struct Statistics {
    /// The least total; null when there is none.
    pub min: Option<f64>,
    /// The greatest total; null when explosions know no end.
    pub max: Option<f64>,
    pub mean: f64,
    pub standard_deviation: f64,
    /// `exact` or `simulated`.
    pub method: String,
    /// Totals in rising order, each with its probability.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub distribution: Vec<(f64, f64)>,
}

/// Rolls up to 20 formulas; one that cannot be rolled is a result with `success: false`.
#[utoipa::path(tag = "dice", operation_id = "roll_dice", request_body = RollRequest,
    responses((status = 200, body = RollReport), (status = "default", body = Problem)))]
#[post("/dice/roll")]
pub async fn roll(app: web::Data<App>, caller: Caller, body: Body<RollRequest, BODY_BYTES_MAX, true>) -> Result<Reply> {
    let RollRequest { rolls, variables, dice, seed, campaign } = &body.value;
    if dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    if seed.is_some() {
        caller.needs_game_master("Choosing a seed")?;
    }
    if dice.is_some() && seed.is_some() {
        return Err(Error::invalid("/seed", "invalid_value", "Give dice or a seed, not both."));
    }
    rolls::check(rolls)?;
    let values = Values::of(variables.as_ref());
    let wish = Wish { given: dice.as_deref(), seed: *seed, preview: false };
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        // A token's own may have been deleted.
        let campaign = match campaign.as_deref().map(Ref::parse).or(caller.campaign.map(Ref::Id)) {
            Some(named) => Some(campaign_id(tx, &caller, &named).await?),
            None => None,
        };
        Reply::ok(&rolls::roll(Taking::Within(tx), campaign, &wish, rolls, &|name| values.get(name)).await?)
    })
    .await
}

/// Least and greatest total, mean, deviation and distribution of a formula.
#[utoipa::path(tag = "dice", operation_id = "analyze_dice", request_body = AnalyzeRequest,
    responses((status = 200, body = Statistics), (status = "default", body = Problem)))]
#[post("/dice/analyze")]
pub async fn analyze(app: web::Data<App>, caller: Caller, body: Body<AnalyzeRequest>) -> Result<Reply> {
    let AnalyzeRequest { formula, variables } = body.value;
    let work = move || {
        let values = Values::of(variables.as_ref());
        let read = Formula::parse_with(&formula, &|name| values.get(name)).and_then(|formula| {
            formula.analyze(&|name: &str| values.get(name).and_then(Meaning::number), SIMULATION_SEED)
        });
        Reply::ok(&read.map_err(|error| in_formula(&error))?)
    };
    let work = async || web::block(work).await.map_err(Error::internal)?;
    computed(&app, &caller, body.idempotency.as_ref(), work).await
}

/// A formula that cannot be analysed, as an error of the request.
fn in_formula(error: &FormulaError) -> Error {
    let mut problem = Error::new(Code::InvalidFormula, error.to_string());
    problem.errors =
        vec![FieldError { pointer: "/formula".into(), code: error.kind.code().into(), message: error.to_string() }];
    problem
}

/// Works past rolls out again from seeds that are known by now.
#[utoipa::path(tag = "dice", operation_id = "verify_dice", request_body = VerifyInput,
    responses((status = 200, body = Verified), (status = "default", body = Problem)))]
#[post("/dice/verify")]
pub async fn verify(app: web::Data<App>, caller: Caller, body: Body<VerifyInput>) -> Result<Reply> {
    let input = &body.value;
    let rolls = input.rolls()?;
    let values = Values::of(input.variables.as_ref());
    let work = async || {
        let seeds = match input.seed_id {
            None => input.given_seeds()?,
            Some(_) if input.server_seed.is_some() || input.client_seed.is_some() => {
                let message = "Give `seed_id`, or `server_seed` and `client_seed`, not both.";
                return Err(Error::invalid("/seed_id", "invalid_value", message));
            }
            Some(id) => {
                let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
                let seeds = seeds::revealed(&tx, id, caller.campaign).await?;
                input.was_rolled(&seeds, &rolls)?;
                seeds
            }
        };
        Reply::ok(&again(&seeds, input, &rolls, &|name| values.get(name)).await?)
    };
    computed(&app, &caller, body.idempotency.as_ref(), work).await
}
