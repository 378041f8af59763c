//! `POST …/actions`, the lists of scores and reactions, and the rehearsal.

use actix_web::{HttpRequest, Responder, web};
use edge::{
    caller::Caller,
    http::{
        Answer, Body, NoBody, computed,
        paging::{Items, ListParams, NoFilter, Page, RawItems},
        resource::{Ref, campaign_id},
        weight::weighed,
        write,
    },
    state::Edge,
};

use super::{
    of_entity::{self, EntityScore},
    rehearse::{self, Rehearsal, RehearsalInput},
    report::{self, ActionsReport, Triggered},
    standing::{self, ReactionFilter, ReactionView, Standing, StandingFilter},
};
use base::error::{Problem, Result};
use db::tenancy::TenantTx;
use entity::kind::EntityKind;

/// Reports what a player's character did: one action, or up to 50 in order.
///
/// The action concerns its targets, NPCs at the same location, and the owners of the location, of the character's race
/// and profession, and of the targets' factions. It raises their scores. An entity whose score reaches its
/// `reaction_threshold` reacts: it gets one turn in the background, about all actions since its last reaction. Each action counts as a
/// request in the tenant's limits.
#[utoipa::path(post, path = "/v1/campaigns/{c}/actions",
    tag = "significance", operation_id = "report_action", request_body = ActionsReport,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 202, description = "The action counts. The reactions that follow are queued", body = Triggered), (status = "default", body = Problem)))]
pub async fn report_action(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<ActionsReport>,
) -> Result<impl Responder> {
    let reports = body.value.each()?;
    let key = body.idempotency.as_ref();
    let work =
        write(&app, &caller, key, async |tx| Ok(Answer::accepted(report::report(tx, &caller, &path, &reports).await?)));
    weighed((&app, &caller), &request, reports.len(), key, work).await
}

/// Shows who would react to a list of actions, and why. This stores nothing and asks no model.
#[utoipa::path(post, path = "/v1/campaigns/{c}/significance/rehearse",
    tag = "significance", operation_id = "rehearse_actions", request_body = RehearsalInput,
    params(("c" = String, Path, description = "Campaign id or slug")),
    responses((status = 200, body = Rehearsal), (status = "default", body = Problem)))]
pub async fn rehearse_actions(
    app: web::Data<Edge>,
    caller: Caller,
    request: HttpRequest,
    path: web::Path<String>,
    body: Body<RehearsalInput>,
) -> Result<impl Responder> {
    let key = body.idempotency.as_ref();
    let work = computed(&app, &caller, key, async || {
        let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
        Ok(Answer::ok(rehearse::rehearse(&tx, &caller, &path, &body.value).await?))
    });
    weighed((&app, &caller), &request, body.value.actions.len(), key, work).await
}

/// Lists the scores of NPCs and owners: how much a character's actions have mattered since the last reaction.
#[utoipa::path(get, path = "/v1/campaigns/{c}/significance",
    tag = "significance", operation_id = "list_significance",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, StandingFilter),
    responses((status = 200, body = Items<Standing>), (status = "default", body = Problem)))]
pub async fn list_significance(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<StandingFilter>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let standings = standing::standings(&tx, campaign, &page).await?;
    Ok(Answer::ok(page.serialize_items(standings, |standing| (standing.id, None), Ok)?))
}

async fn scores(
    app: &Edge,
    caller: &Caller,
    (campaign, kind, name): (&str, EntityKind, &str),
    page: &Page<NoFilter>,
) -> Result<Answer<RawItems>> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(campaign)).await?;
    let scores = of_entity::scores_of(&tx, campaign, (kind, name), page).await?;
    Ok(Answer::ok(page.serialize_items(scores, |score| (score.id, None), Ok)?))
}

/// Lists the scores of an NPC: how much each character's actions have mattered since its last reaction to that character.
#[utoipa::path(get, path = "/v1/campaigns/{c}/npcs/{x}/scores",
    tag = "significance", operation_id = "list_npc_scores",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "NPC id or slug"), ListParams),
    responses((status = 200, body = Items<EntityScore>), (status = "default", body = Problem)))]
pub async fn list_npc_scores(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    page: Page<NoFilter>,
) -> Result<impl Responder> {
    scores(&app, &caller, (&path.0, EntityKind::Npc, &path.1), &page).await
}

/// Lists the scores of an owner: how much each character's actions have mattered since its last reaction to that character.
#[utoipa::path(get, path = "/v1/campaigns/{c}/owners/{x}/scores",
    tag = "significance", operation_id = "list_owner_scores",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Owner id or slug"), ListParams),
    responses((status = 200, body = Items<EntityScore>), (status = "default", body = Problem)))]
pub async fn list_owner_scores(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    page: Page<NoFilter>,
) -> Result<impl Responder> {
    scores(&app, &caller, (&path.0, EntityKind::Owner, &path.1), &page).await
}

/// Lists reactions: waiting, running, done, cancelled, and those that failed too often.
#[utoipa::path(get, path = "/v1/campaigns/{c}/reactions",
    tag = "significance", operation_id = "list_reactions",
    params(("c" = String, Path, description = "Campaign id or slug"), ListParams, ReactionFilter),
    responses((status = 200, body = Items<ReactionView>), (status = "default", body = Problem)))]
pub async fn list_reactions(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<String>,
    page: Page<ReactionFilter>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path)).await?;
    let reactions = standing::reactions(&tx, campaign, &page).await?;
    Ok(Answer::ok(page.serialize_items(reactions, |reaction| (reaction.id, None), Ok)?))
}

/// Returns a reaction.
#[utoipa::path(get, path = "/v1/campaigns/{c}/reactions/{x}",
    tag = "significance", operation_id = "get_reaction",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = uuid::Uuid, Path, description = "Id")),
    responses((status = 200, body = ReactionView), (status = "default", body = Problem)))]
pub async fn get_reaction(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
) -> Result<impl Responder> {
    let tx = TenantTx::read(&app.pool, caller.tenant_id()).await?;
    let campaign = campaign_id(&tx, &caller, &Ref::parse(&path.0)).await?;
    Ok(Answer::ok(standing::reaction(&tx, campaign, standing::reaction_id(&path.1)?).await?))
}

/// Queues a reaction again that failed too often or was ended.
#[utoipa::path(post, path = "/v1/campaigns/{c}/reactions/{x}/retry",
    tag = "significance", operation_id = "retry_reaction",
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = uuid::Uuid, Path, description = "Id")),
    responses((status = 200, body = ReactionView), (status = "default", body = Problem)))]
pub async fn retry_reaction(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<NoBody>,
) -> Result<impl Responder> {
    write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&path.0)).await?;
        Ok(Answer::ok(standing::retry(tx, campaign, standing::reaction_id(&path.1)?).await?))
    })
    .await
}
