//! `/dice/roll`, `/dice/analyze`, `/dice/verify` and the seeds of a campaign's dice.

use actix_web::{get, post, web};
use rules::dice::{Formula, FormulaError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    rolls::{self, RollInput, RollReport},
    seeds::{self, SeedView},
    service::{Draw, Wish},
    variables::Values,
    verify::{Verified, VerifyInput, again},
};
use crate::{
    app::App,
    auth::{Caller, Scope},
    error::{Code, Error, FieldError, Problem, Result},
    http::{
        Body, Reply,
        paging::{Items, ListParams, NoFilter, Page},
        resource::{Ref, campaign_id},
        write,
    },
    tenancy::TenantTx,
};

/// Simulations of one formula give one answer.
const SIMULATION_SEED: u64 = 20;
/// Characters of a client seed.
const CLIENT_SEED_CHARS_MAX: usize = 64;

/// Formulas to roll.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RollRequest {
    #[schema(min_items = 1, max_items = 20)]
    rolls: Vec<RollInput>,
    /// Numbers the formulas name with `@`, nested (`{"abilities": {"dex": {"mod": 3}}}`) or with dots; at most 1,000.
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
    pub distribution: Vec<(f64, f64)>,
}

/// A client seed of the players' choice.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateRequest {
    /// 1 to 64 visible characters; at random if left out.
    #[schema(min_length = 1, max_length = 64)]
    client_seed: Option<String>,
}

/// The seed that is no secret any more, and the one that follows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct Rotated {
    /// Null if there was none in use.
    pub revealed: Option<SeedView>,
    pub current: SeedView,
}

/// Rolls up to 20 formulas; one that cannot be rolled is a result with `success: false`.
#[utoipa::path(tag = "dice", operation_id = "roll_dice", request_body = RollRequest,
    responses((status = 200, body = RollReport), (status = "default", body = Problem)))]
#[post("/dice/roll")]
pub async fn roll(app: web::Data<App>, caller: Caller, body: Body<RollRequest>) -> Result<Reply> {
    let RollRequest { rolls, variables, dice, seed, campaign } = &body.value;
    if dice.is_some() {
        only_game_masters(&caller, "Giving dice")?;
    }
    if seed.is_some() {
        only_game_masters(&caller, "Choosing a seed")?;
    }
    if dice.is_some() && seed.is_some() {
        return Err(Error::invalid("/seed", "invalid_value", "Give dice or a seed, not both."));
    }
    rolls::check(rolls)?;
    let values = Values::read(variables.as_ref())?;
    let wish = Wish { given: dice.as_deref(), seed: *seed, preview: false };
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = match campaign {
            Some(name) => Some(campaign_id(tx, &caller, &Ref::parse(name)).await?),
            None => caller.campaign,
        };
        let mut draw = Draw::of_rolls(tx, campaign, &wish, rolls::number(rolls)).await?;
        Reply::ok(&rolls::all(&mut draw, rolls, &|name| values.get(name)).await?)
    })
    .await
}

/// What a route that players use leaves to game masters.
fn only_game_masters(caller: &Caller, what: &str) -> Result<()> {
    caller.needs(Scope::Gm, what)?;
    if caller.is_player() {
        return Err(Error::new(Code::Forbidden, format!("{what} is not for players.")));
    }
    Ok(())
}

/// Least and greatest total, mean, deviation and distribution of a formula.
#[utoipa::path(tag = "dice", operation_id = "analyze_dice", request_body = AnalyzeRequest,
    responses((status = 200, body = Statistics), (status = "default", body = Problem)))]
#[post("/dice/analyze")]
pub async fn analyze(_: Caller, body: Body<AnalyzeRequest>) -> Result<Reply> {
    let AnalyzeRequest { formula, variables } = body.value;
    let values = Values::read(variables.as_ref())?;
    let work = move || {
        let read = Formula::parse(&formula)
            .and_then(|formula| formula.analyze(&|name: &str| values.get(name), SIMULATION_SEED));
        Reply::ok(&read.map_err(|error| in_formula(&error))?)
    };
    web::block(work).await.map_err(Error::internal)?
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
    let values = Values::read(input.variables.as_ref())?;
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
}

/// The seeds of a campaign's fair dice. The first begins when it is first asked for or rolled with, so that its
/// commitment can be known before any roll.
#[utoipa::path(tag = "dice", operation_id = "list_dice_seeds",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams),
    responses((status = 200, body = Items<SeedView>), (status = "default", body = Problem)))]
#[get("/campaigns/{c}/dice/seeds")]
pub async fn list(app: web::Data<App>, caller: Caller, path: web::Path<String>, page: Page<NoFilter>) -> Result<Reply> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    if seeds::in_use(&tx, campaign).await? {
        return Reply::ok(&seeds::list(&tx, campaign, &page).await?);
    }
    drop(tx);
    write(&app, &caller, None, async |tx| {
        seeds::begin(tx, campaign, None).await?;
        Reply::ok(&seeds::list(tx, campaign, &page).await?)
    })
    .await
}

/// Reveals the seed in use, so that its rolls can be verified, and begins another.
#[utoipa::path(tag = "dice", operation_id = "rotate_dice_seed", request_body = RotateRequest,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = Rotated), (status = "default", body = Problem)))]
#[post("/campaigns/{c}/dice/seeds/rotate")]
pub async fn rotate(
    app: web::Data<App>,
    caller: Caller,
    path: web::Path<String>,
    body: Body<RotateRequest>,
) -> Result<Reply> {
    let client_seed = body.value.client_seed.as_deref();
    if client_seed.is_some_and(|seed| !is_client_seed(seed)) {
        let message = format!("must have 1 to {CLIENT_SEED_CHARS_MAX} visible characters");
        return Err(Error::invalid("/client_seed", "invalid_value", message));
    }
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path)).await?;
        let (revealed, current) = seeds::rotate(tx, campaign, client_seed).await?;
        Reply::ok(&Rotated { revealed, current })
    })
    .await
}

/// What people can read to each other: no blanks, no control characters, nothing that does not show.
fn is_client_seed(text: &str) -> bool {
    let hidden = |c: char| {
        c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    (1..=CLIENT_SEED_CHARS_MAX).contains(&text.chars().count()) && !text.chars().any(hidden)
}
