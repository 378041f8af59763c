//! A turn's trace: what was asked, what the model read and did, why, what it cost, and how to undo it.

use std::collections::HashMap;

use actix_web::HttpResponse;
use askama::Template;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    in_the_way::{self, InTheWay},
    list::moment_of,
    lore::reason_in_words,
    recalled::{self, Recalled},
    words::at as text,
    world_form::{form_id, once},
};
use crate::render_blocks;
use ai::{
    prompt::{LoreReason, recall_report::RecallReport},
    tools::remembers,
    turns::{
        again::{self, Wished},
        clean::CleaningRule,
        start::Wish,
        trace, undo,
        view::Ending,
    },
};
use base::error::{Code, Error, Result};
use db::tenancy::TenantTx;
use edge::{
    caller::Scope,
    http::{
        etag::Expected,
        paging::{NoFilter, Page},
        resource::{self, Ref},
    },
    model_profiles::service as model_service,
};
use entity::kind::EntityKind;
use world::{
    campaigns::fork::{self, ForkInput},
    lore::overview,
    memory::service,
    npcs::Npcs,
    owners::Owners,
};

#[derive(Template)]
#[template(path = "admin/turn.html", blocks = ["main"])]
struct TurnPage {
    frame: Frame,
    path: String,
    back: String,
    lore_path: String,
    memories_path: String,
    lab: Option<String>,
    entity: Option<(String, String)>,
    /// Whether the turn's NPC or owner has no tool to remember with now.
    forgets: bool,
    player: Option<(String, String)>,
    kind: String,
    status: String,
    is_running: bool,
    is_undone: bool,
    /// The progress of the revert.
    reverting: Option<String>,
    may_undo: bool,
    may_fork: bool,
    /// Whether the answer can be tried again, go on, or be corrected.
    may_retry: bool,
    is_chosen: bool,
    /// The attempts at this answer: path, number, and whether it is this one.
    attempts: Vec<(String, usize, bool)>,
    /// The profiles that may answer.
    profiles: Vec<String>,
    edited: bool,
    problem: Option<Problem>,
    action: String,
    narrative: String,
    error: Option<String>,
    facts: Vec<(&'static str, String)>,
    sections: Vec<(String, u64)>,
    turn_text: String,
    cut: Vec<(String, String)>,
    removed: Vec<(&'static str, String)>,
    lore: Vec<LoreRow>,
    recalled: Option<Recalled>,
    calls: Vec<Call>,
    model_calls: Vec<ModelCall>,
    sees_trace: bool,
}
render_blocks!(TurnPage: as_main);

/// Why the turn could not be undone, row by row.
struct Problem {
    message: String,
    rows: Vec<InTheWay>,
}

struct LoreRow {
    /// The entry's id, if it still exists.
    id: Option<Uuid>,
    title: String,
    is_in: bool,
    reason: String,
}

struct Call {
    name: String,
    status: String,
    arguments: String,
    result: String,
    /// Each die of its rolls, and whether it was kept.
    dice: Vec<(String, bool)>,
    memory: Option<Uuid>,
}

struct ModelCall {
    model: String,
    seconds: String,
    tokens: String,
    finish: String,
    text: String,
}

/// A price from micro-units.
#[must_use]
pub fn cost(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn seconds(milliseconds: Option<f64>) -> String {
    milliseconds.map(|ms| format!("{:.2} s", ms / 1000.0)).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Why something was removed from an answer.
fn rule_of(removed: &Value) -> &'static str {
    let rule = removed.get("rule").and_then(|rule| CleaningRule::deserialize(rule).ok());
    rule.map(CleaningRule::label).unwrap_or_default()
}

fn pretty(value: Option<&Value>) -> String {
    value.filter(|v| !v.is_null()).and_then(|v| serde_json::to_string_pretty(v).ok()).unwrap_or_default()
}

fn id(at: &InCampaign) -> Result<Uuid> {
    Uuid::try_parse(at.path("x")).map_err(|_| Error::not_found("turn"))
}

/// The trace.
pub async fn page(at: InCampaign) -> Result<HttpResponse> {
    let page = page_of(&at, None).await?;
    at.show(&page)
}

async fn page_of(at: &InCampaign, problem: Option<Problem>) -> Result<TurnPage> {
    let id = id(at)?;
    let tx = at.read().await?;
    let turn = trace::find(&tx, &at.caller, at.campaign.id.0, id).await?;
    let names = trace::names(&tx, id).await?;
    let lore = entries(&tx, &turn).await?;
    let recalled = match turn.pointer("/trace/recall").and_then(|report| RecallReport::deserialize(report).ok()) {
        Some(report) => Some(recalled::recalled(at, &tx, report).await?),
        None => None,
    };
    let is_undone = turn.get("undone_at").is_some_and(|at| !at.is_null());
    let calls = calls(&tx, at.campaign.id.0, &turn).await?;
    let kind = text(&turn, "/kind");
    let forgets = forgets(at, &tx, &kind, names.entity.as_ref().map(|(id, _)| *id)).await?;
    let may_gm = at.may(Scope::Gm);
    let status = text(&turn, "/status");
    let is_chosen = turn["chosen"] != Value::Bool(false);
    let has_ended_well = matches!(status.as_str(), "succeeded" | "limit_reached");
    // A player who cancels a turn leaves its effects.
    let has_effects =
        has_ended_well || matches!(status.as_str(), "failed" | "cancelled") && turn["on_failure"] == "keep";
    let may_undo = may_gm && has_effects && !is_undone && turn.get("reverting").is_none();
    let may_retry =
        may_undo && has_ended_well && at.may(Scope::Play) && is_chosen && matches!(kind.as_str(), "npc" | "owner");
    let profiles = if may_retry { profiles(at, &tx).await? } else { Vec::new() };
    drop(tx);
    let is_running = matches!(status.as_str(), "queued" | "running");
    let place = if kind == "owner" { "owners" } else { "npcs" };
    // By id, because a slug could be the name of a page.
    let link =
        |who: Option<(Uuid, String)>, place: &str| who.map(|(id, name)| (at.url(&format!("{place}/{id}")), name));
    Ok(TurnPage {
        frame: at.frame("Turn", Tab::Turns),
        path: at.url(&format!("turns/{id}")),
        back: at.url("turns"),
        lore_path: at.url("lore"),
        memories_path: at.url("memories"),
        lab: (may_gm && matches!(kind.as_str(), "npc" | "owner" | "gm")).then(|| at.url(&format!("lab?turn={id}"))),
        entity: link(names.entity, place),
        forgets,
        player: link(names.player, "characters"),
        is_running,
        is_undone,
        reverting: turn.get("reverting").map(reverting_in_words),
        may_undo,
        may_fork: may_gm && at.may(Scope::Write) && !is_running,
        may_retry,
        is_chosen,
        attempts: attempts(at, &turn, id),
        profiles,
        edited: turn.get("edited_at").is_some_and(|at| !at.is_null()),
        problem,
        action: text(&turn, "/trace/action"),
        narrative: text(&turn, "/narrative"),
        error: turn.get("error").filter(|e| !e.is_null()).map(|error| text(error, "/message")),
        facts: facts(&turn),
        sections: list(&turn, "/prompt/sections")
            .map(|s| (text(s, "/name").replace('_', " "), number(s, "/tokens")))
            .collect(),
        turn_text: text(&turn, "/trace/turn_text"),
        removed: list(&turn, "/trace/removed").map(|removed| (rule_of(removed), text(removed, "/text"))).collect(),
        cut: list(&turn, "/trace/cut").map(|cut| (text(cut, "/0").replace('_', " "), text(cut, "/1"))).collect(),
        lore,
        recalled,
        calls,
        model_calls: list(&turn, "/trace/llm_calls").map(model_call).collect(),
        sees_trace: may_gm,
        kind,
        status,
    })
}

/// The attempts at the answer: path, number, and whether it is this turn.
fn attempts(at: &InCampaign, turn: &Value, id: Uuid) -> Vec<(String, usize, bool)> {
    let ids = list(turn, "/alternatives").map(|other| text(other, ""));
    ids.enumerate().map(|(n, other)| (at.url(&format!("turns/{other}")), n + 1, other == id.to_string())).collect()
}

/// The slugs of the profiles that a game master may let answer.
async fn profiles(at: &InCampaign, tx: &TenantTx) -> Result<Vec<String>> {
    let known = model_service::list(&at.app, tx, &Page::<NoFilter>::parse("limit=100")?).await?;
    Ok(known.items.into_iter().map(|profile| profile.slug).collect())
}

/// Whether an NPC or owner that still exists has no tool to remember with.
async fn forgets(at: &InCampaign, tx: &TenantTx, kind: &str, entity: Option<Uuid>) -> Result<bool> {
    let Some(id) = entity.map(Ref::Id) else { return Ok(false) };
    let campaign = Ref::Id(at.campaign.id.0);
    let (kind, tools) = match kind {
        "npc" => (
            EntityKind::Npc,
            resource::find::<Npcs>(tx, &at.caller, Some(&campaign), &id).await.map(|n| n.available_tools),
        ),
        "owner" => (
            EntityKind::Owner,
            resource::find::<Owners>(tx, &at.caller, Some(&campaign), &id).await.map(|o| o.available_tools),
        ),
        _ => return Ok(false),
    };
    match tools {
        Ok(tools) => Ok(!remembers(kind, &tools.0)),
        Err(error) if error.code == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lore of a turn's record, with the titles that the entries have now.
async fn entries(tx: &TenantTx, turn: &Value) -> Result<Vec<LoreRow>> {
    let id_of = |entry: &Value| Uuid::try_parse(&text(entry, "/id")).ok();
    let ids: Vec<Uuid> = list(turn, "/trace/lore").filter_map(id_of).collect();
    let mut known = if ids.is_empty() { HashMap::new() } else { overview::waking(tx, &ids).await? };
    let entry = |entry: &Value| {
        let found = id_of(entry).and_then(|id| Some((id, known.remove(&id)?.title)));
        LoreRow {
            id: found.as_ref().map(|(id, _)| *id),
            title: found.map_or_else(|| text(entry, "/slug"), |(_, title)| title),
            is_in: entry["included"] == Value::Bool(true),
            reason: reason_in_words(&LoreReason::from(text(entry, "/reason"))),
        }
    };
    Ok(list(turn, "/trace/lore").map(entry).collect())
}

/// The tool calls of a turn. A memory that a call created is linked if it still exists.
async fn calls(tx: &TenantTx, campaign: Uuid, turn: &Value) -> Result<Vec<Call>> {
    let mut calls: Vec<Call> = list(turn, "/tool_calls").map(call).collect();
    let made: Vec<Uuid> = calls.iter().filter_map(|call| call.memory).collect();
    if !made.is_empty() {
        let there = service::existing(tx, campaign, &made).await?;
        for call in &mut calls {
            call.memory = call.memory.filter(|id| there.contains(id));
        }
    }
    Ok(calls)
}

fn call(call: &Value) -> Call {
    let mut dice = Vec::new();
    for roll in list(call, "/result/results") {
        for die in list(roll, "/dice") {
            dice.push((format!("d{} {}", text(die, "/faces"), text(die, "/value")), die["kept"] != Value::Bool(false)));
        }
    }
    let result = call.get("result").or_else(|| call.get("error"));
    Call {
        name: text(call, "/name"),
        status: text(call, "/status"),
        arguments: pretty(call.get("arguments")),
        result: pretty(result),
        dice,
        memory: call.pointer("/result/memory_id").and_then(Value::as_str).and_then(|id| id.parse().ok()),
    }
}

/// The progress of a revert, and why it does not continue.
fn reverting_in_words(reverting: &Value) -> String {
    let mut words = format!(
        "The turn is being reverted: {} of {} changes are done.",
        number(reverting, "/done"),
        number(reverting, "/changes")
    );
    let tries = number(reverting, "/tries");
    if tries > 0 {
        let times = if tries == 1 { "once".to_owned() } else { format!("{tries} times") };
        words.push_str(&format!(
            " It failed {times}. The next try is at {}.",
            moment_of(&text(reverting, "/next_try_at"))
        ));
    }
    let error = text(reverting, "/last_error");
    if !error.is_empty() {
        words.push_str(&format!(" The last error: {error}"));
    }
    words
}

fn model_call(call: &Value) -> ModelCall {
    let attempts = number(call, "/attempts");
    let finish = text(call, "/finish_reason");
    ModelCall {
        model: text(call, "/model"),
        seconds: seconds(call.pointer("/latency_ms").and_then(Value::as_f64)),
        tokens: format!(
            "{} in ({} cached), {} out",
            number(call, "/usage/prompt_tokens"),
            number(call, "/usage/cached_tokens"),
            number(call, "/usage/completion_tokens")
        ),
        finish: if attempts > 1 { format!("{finish}, after {attempts} attempts") } else { finish },
        text: text(call, "/text"),
    }
}

/// What people read of an answer that is not complete.
pub(super) fn how_it_ended(ending: Ending) -> &'static str {
    match ending {
        Ending::Truncated => "cut at the output limit",
        Ending::ContentFiltered => "cut by the provider's filter",
        Ending::Complete => "",
    }
}

/// The turn's figures. Empty ones are left out.
fn facts(turn: &Value) -> Vec<(&'static str, String)> {
    let timing = |name: &str| seconds(turn.pointer(&format!("/timings_ms/{name}")).and_then(Value::as_f64));
    let (first, last) = (text(turn, "/journal/first_seq"), text(turn, "/journal/last_seq"));
    let tokens = number(turn, "/usage/total_tokens");
    let ending = turn.get("ending").and_then(|ending| Ending::deserialize(ending).ok()).map_or("", how_it_ended);
    let mut facts = vec![
        ("Start", moment_of(&text(turn, "/created_at"))),
        ("Duration", timing("total")),
        ("Time in the model", timing("llm")),
        ("Time in this server", timing("server")),
        ("Model", text(turn, "/model")),
        ("Reply mode", text(turn, "/reply_mode")),
        ("Context", text(turn, "/context")),
        ("Prompt cache", text(turn, "/prompt/cache")),
        ("Undone", moment_of(&text(turn, "/undone_at"))),
        ("Answer", ending.to_owned()),
        ("Parse error", text(turn, "/parse_error")),
    ];
    if tokens > 0 {
        let cached = number(turn, "/usage/cached_tokens");
        let calls = number(turn, "/usage/llm_calls");
        let estimated = turn.pointer("/usage/estimated").and_then(Value::as_bool).unwrap_or_default();
        let about = if estimated { "about " } else { "" };
        let why = if estimated { ". The provider did not tell all tokens; we estimated the rest" } else { "" };
        facts.push(("Tokens", format!("{about}{tokens}, {cached} of them cached. Model calls: {calls}{why}")));
    }
    if let Some(micros) = turn.pointer("/usage/cost_micros").and_then(Value::as_u64) {
        facts.push(("Cost", cost(micros)));
    }
    if !first.is_empty() {
        facts.push(("Changes in the journal", format!("{first} to {last}")));
    }
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// Undoes the turn, or shows which rows prevent that. With `rest`, it keeps those rows and undoes all other changes.
pub async fn undo(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    if at.form.has("rest") {
        undo::undo_rest(&at.app, &at.caller, &at.campaign.slug, turn).await?;
        let message = "The turn was undone, except for rows that were changed since.";
        return Ok(at.redirect(&at.url(&format!("turns/{turn}")), message));
    }
    match undo::undo(&at.app, &at.caller, &at.campaign.slug, turn, None).await {
        Ok(undone) => {
            let message = match undone.fresh() {
                Some(undo::Undo::InSteps(_)) => "The turn is being undone.",
                _ => "The turn was undone. All of its changes are reverted.",
            };
            Ok(at.redirect(&at.url(&format!("turns/{turn}")), message))
        }
        Err(error) if error.code.status() == 409 || error.code == Code::Gone => {
            let rows = in_the_way::of(&at, &error).await?;
            let page = page_of(&at, Some(Problem { message: error.detail.clone(), rows })).await?;
            at.show_again(&page)
        }
        Err(error) => Err(error),
    }
}

/// Tries the answer again, and redirects to the new turn as soon as it runs.
pub async fn try_again(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    let given = |name: &str| Some(at.form.text(name).trim().to_owned()).filter(|text| !text.is_empty());
    let reroll = at.form.has("reroll");
    let wished = Wished { model: given("model"), hint: given("hint"), reroll };
    let caller = at.caller.clone();
    let done = again::try_again(at.app.clone(), caller, &at.campaign.slug, turn, wished, Wish::Later, None).await;
    started(&at, done).await
}

/// Lets the answer go on, and redirects to the new turn as soon as it runs.
pub async fn go_on(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    let done = again::continue_one(at.app.clone(), at.caller.clone(), &at.campaign.slug, turn, Wish::Later, None).await;
    started(&at, done).await
}

async fn started(at: &InCampaign, done: Result<HttpResponse>) -> Result<HttpResponse> {
    match done {
        Ok(response) => {
            let location = response.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or_default();
            let turn = location.rsplit('/').next().unwrap_or_default().to_owned();
            Ok(at.redirect(&at.url(&format!("turns/{turn}")), "The turn has started."))
        }
        Err(error) => refused(at, error).await,
    }
}

/// The page again, with why something could not be done.
async fn refused(at: &InCampaign, error: Error) -> Result<HttpResponse> {
    if !matches!(error.code.status(), 403 | 409 | 410 | 412 | 422 | 429 | 502 | 503 | 504) {
        return Err(error);
    }
    let rows = in_the_way::of(at, &error).await?;
    let told: Vec<&str> = error.errors.iter().filter(|_| rows.is_empty()).map(|e| e.message.as_str()).collect();
    let message = if told.is_empty() { error.detail.clone() } else { told.join(" ") };
    at.show_again(&page_of(at, Some(Problem { message, rows })).await?)
}

/// Chooses this attempt.
pub async fn choose(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    match again::choose_one(&at.app, &at.caller, &at.request, &at.campaign.slug, turn, None).await {
        Ok(_) => Ok(at.redirect(&at.url(&format!("turns/{turn}")), "This answer is chosen now.")),
        Err(error) => refused(&at, error).await,
    }
}

/// Corrects the narrative.
pub async fn correct(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    let narrative = at.form.text("narrative").to_owned();
    match again::correct_one(&at.app, &at.caller, &at.campaign.slug, turn, &narrative, &Expected::any()).await {
        Ok(_) => Ok(at.redirect(&at.url(&format!("turns/{turn}")), "The answer was corrected.")),
        Err(error) => refused(&at, error).await,
    }
}

/// Copies the campaign as it was after the turn, and redirects to the copy.
pub async fn fork(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    let name = at.form.text("name").trim();
    let name = if name.is_empty() { format!("{} (fork)", at.campaign.name) } else { name.to_owned() };
    let input = ForkInput { at_turn: Some(turn), slug: None, name: Some(world::interchange::text::line(&name)) };
    let once = once(&at, &form_id(&at), &input);
    match fork::make(&at.app, &at.caller, &at.campaign.slug, &input, once.as_ref()).await {
        Ok(slug) => {
            Ok(at.redirect(&format!("/admin/c/{slug}"), "This is the fork: the campaign as it was after the turn."))
        }
        Err(error) if error.code.status() == 409 || error.code == Code::Gone => {
            let page = page_of(&at, Some(Problem { message: error.detail.clone(), rows: Vec::new() })).await?;
            at.show_again(&page)
        }
        Err(error) => Err(error),
    }
}
