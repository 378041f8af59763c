//! A turn's trace: what was asked, what the model read and did, why, what it cost, and how to undo it.

use std::collections::HashMap;

use actix_web::HttpResponse;
use askama::Template;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    in_the_way::{self, InTheWay},
    list::moment,
    lore::reason_in_words,
    recalled::{self, Recalled},
    words::display_text,
    world_form::{form_id, once},
};
use crate::render_blocks;
use ai::{
    prompt::LoreDecision,
    tools::remembers,
    turns::{
        again::{self, Following, Next, Wished},
        job::OnFailure,
        kind::TurnKind,
        record::{Reverting, TurnRecord, TurnTrace},
        trace, undo,
        view::{Ending, LlmCall, PromptView, Status, ToolCall, Usage},
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
    campaigns::{
        Named,
        fork::{self, ForkInput},
    },
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
    kind: &'static str,
    status: &'static str,
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
    sections: Vec<(String, u32)>,
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
    status: &'static str,
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

fn seconds(milliseconds: f64) -> String {
    format!("{:.2} s", milliseconds / 1000.0)
}

fn pretty(value: &Value) -> String {
    if value.is_null() { String::new() } else { serde_json::to_string_pretty(value).unwrap_or_default() }
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
    let record = trace::find(&tx, &at.caller, at.campaign.id.0, id).await?;
    let names = trace::names(&tx, id).await?;
    let (facts, attempts) = (facts(&record), attempts(at, &record));
    let May { undo: may_undo, retry: may_retry } = May::of(at, &record);
    let TurnRecord { turn, trace, reverting, .. } = record;
    let TurnTrace { action, turn_text, lore, recall, cut, llm_calls, removed, .. } = trace.unwrap_or_default();
    let lore = entries(&tx, lore).await?;
    let recalled = match recall {
        Some(report) => Some(recalled::recalled(at, &tx, report).await?),
        None => None,
    };
    let is_undone = record.undone_at.is_some();
    let calls = calls(&tx, at.campaign.id.0, &turn.tool_calls).await?;
    let (kind, status) = (turn.kind, turn.status);
    let entity_kind = kind.of_entity();
    let forgets = match (entity_kind, &names.entity) {
        (Some(kind), Some((entity, _))) => forgets(at, &tx, kind, *entity).await?,
        _ => false,
    };
    let may_gm = at.may(Scope::Gm);
    let profiles = if may_retry { profiles(at, &tx).await? } else { Vec::new() };
    drop(tx);
    let is_running = matches!(status, Status::Queued | Status::Running);
    let place = if kind == TurnKind::Owner { "owners" } else { "npcs" };
    // By id, because a slug could be the name of a page.
    let link =
        |who: Option<(Uuid, String)>, place: &str| who.map(|(id, name)| (at.url(&format!("{place}/{id}")), name));
    Ok(TurnPage {
        frame: at.frame("Turn", Tab::Turns),
        path: at.url(&format!("turns/{id}")),
        back: at.url("turns"),
        lore_path: at.url("lore"),
        memories_path: at.url("memories"),
        lab: (may_gm && (entity_kind.is_some() || kind == TurnKind::Gm)).then(|| at.url(&format!("lab?turn={id}"))),
        entity: link(names.entity, place),
        forgets,
        player: link(names.player, "characters"),
        is_running,
        is_undone,
        reverting: reverting.as_ref().map(reverting_in_words),
        may_undo,
        may_fork: may_gm && at.may(Scope::Write) && !is_running,
        may_retry,
        is_chosen: record.chosen,
        attempts,
        profiles,
        edited: record.edited_at.is_some(),
        problem,
        action,
        narrative: turn.narrative,
        error: record.error.map(|error| error.message),
        facts,
        sections: turn.prompt.map(sections).unwrap_or_default(),
        turn_text,
        removed: removed.into_iter().map(|removed| (removed.rule.label(), removed.text)).collect(),
        cut: cut.iter().filter_map(|cut| Some((cut.first()?.replace('_', " "), cut.get(1)?.clone()))).collect(),
        lore,
        recalled,
        calls,
        model_calls: llm_calls.into_iter().map(model_call).collect(),
        sees_trace: may_gm,
        kind: kind.as_str(),
        status: status.as_str(),
    })
}

/// The prompt's sections, and their tokens.
fn sections(prompt: PromptView) -> Vec<(String, u32)> {
    prompt.sections.into_iter().map(|section| (section.name.replace('_', " "), section.tokens)).collect()
}

/// What the user may do with a turn.
struct May {
    undo: bool,
    /// Try the answer again, let it go on, or correct it.
    retry: bool,
}

impl May {
    fn of(at: &InCampaign, record: &TurnRecord) -> Self {
        let TurnRecord { turn, on_failure, undone_at, reverting, chosen, .. } = record;
        let has_ended_well = matches!(turn.status, Status::Succeeded | Status::LimitReached);
        // A player who cancels a turn leaves its effects.
        let has_effects = has_ended_well
            || matches!(turn.status, Status::Failed | Status::Cancelled) && *on_failure == OnFailure::Keep;
        let undo = at.may(Scope::Gm) && has_effects && undone_at.is_none() && reverting.is_none();
        let is_answer = turn.kind.of_entity().is_some();
        Self { undo, retry: undo && has_ended_well && at.may(Scope::Play) && *chosen && is_answer }
    }
}

/// The attempts at the answer: path, number, and whether it is this turn.
fn attempts(at: &InCampaign, record: &TurnRecord) -> Vec<(String, usize, bool)> {
    let id = record.turn.id;
    record
        .alternatives
        .iter()
        .enumerate()
        .map(|(n, other)| (at.url(&format!("turns/{other}")), n + 1, *other == id))
        .collect()
}

/// The slugs of the profiles that a game master may let answer.
async fn profiles(at: &InCampaign, tx: &TenantTx) -> Result<Vec<String>> {
    let known = model_service::list(&at.app, tx, &Page::<NoFilter>::parse("limit=100")?).await?;
    Ok(known.items.into_iter().map(|profile| profile.slug).collect())
}

/// Whether an NPC or owner that still exists has no tool to remember with.
async fn forgets(at: &InCampaign, tx: &TenantTx, kind: EntityKind, entity: Uuid) -> Result<bool> {
    let (campaign, id) = (Ref::Id(at.campaign.id.0), Ref::Id(entity));
    let tools = match kind {
        EntityKind::Npc => {
            resource::find::<Npcs>(tx, &at.caller, Some(&campaign), &id).await.map(|n| n.available_tools)
        }
        EntityKind::Owner => {
            resource::find::<Owners>(tx, &at.caller, Some(&campaign), &id).await.map(|o| o.available_tools)
        }
    };
    match tools {
        Ok(tools) => Ok(!remembers(kind, &tools.0)),
        Err(error) if error.code == Code::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lore of a turn's record, with the titles that the entries have now.
async fn entries(tx: &TenantTx, lore: Vec<LoreDecision>) -> Result<Vec<LoreRow>> {
    let ids: Vec<Uuid> = lore.iter().map(|entry| entry.id).collect();
    let mut known = if ids.is_empty() { HashMap::new() } else { overview::waking(tx, &ids).await? };
    let entry = |entry: LoreDecision| {
        let found = known.remove(&entry.id);
        LoreRow {
            id: found.as_ref().map(|_| entry.id),
            title: found.map_or(entry.slug, |found| found.title),
            is_in: entry.included,
            reason: reason_in_words(&entry.reason),
        }
    };
    Ok(lore.into_iter().map(entry).collect())
}

/// The tool calls of a turn. A memory that a call created is linked if it still exists.
async fn calls(tx: &TenantTx, campaign: Uuid, called: &[ToolCall]) -> Result<Vec<Call>> {
    let mut calls: Vec<Call> = called.iter().map(call).collect();
    let made: Vec<Uuid> = calls.iter().filter_map(|call| call.memory).collect();
    if !made.is_empty() {
        let there = service::existing(tx, campaign, &made).await?;
        for call in &mut calls {
            call.memory = call.memory.filter(|id| there.contains(id));
        }
    }
    Ok(calls)
}

/// A roll in a tool's result.
#[derive(Deserialize)]
struct Rolled {
    #[serde(default)]
    dice: Vec<Die>,
}

#[derive(Deserialize)]
struct Die {
    #[serde(default)]
    faces: Value,
    #[serde(default)]
    value: Value,
    #[serde(default = "is_kept")]
    kept: bool,
}

fn is_kept() -> bool {
    true
}

/// A member of a tool's result, if it is there and of this type. Each tool has its own.
fn part<T: DeserializeOwned + Default>(result: &Value, name: &str) -> T {
    result.get(name).and_then(|part| T::deserialize(part).ok()).unwrap_or_default()
}

fn call(call: &ToolCall) -> Call {
    let result = call.result.clone().unwrap_or_default();
    let dice = part::<Vec<Rolled>>(&result, "results").into_iter().flat_map(|roll| roll.dice);
    let error = call.error.as_ref().and_then(|error| serde_json::to_value(error).ok());
    Call {
        name: call.name.clone(),
        status: call.status.as_str(),
        arguments: pretty(&call.arguments),
        dice: dice
            .map(|die| (format!("d{} {}", display_text(&die.faces), display_text(&die.value)), die.kept))
            .collect(),
        memory: part(&result, "memory_id"),
        result: pretty(&call.result.clone().or(error).unwrap_or_default()),
    }
}

/// The progress of a revert, and why it does not continue.
fn reverting_in_words(reverting: &Reverting) -> String {
    let Reverting { changes, done, tries, next_try_at, last_error, .. } = reverting;
    let mut words = format!("The turn is being reverted: {done} of {} changes are done.", changes.unwrap_or_default());
    if *tries > 0 {
        let times = if *tries == 1 { "once".to_owned() } else { format!("{tries} times") };
        let next = next_try_at.map(moment).unwrap_or_default();
        words.push_str(&format!(" It failed {times}. The next try is at {next}."));
    }
    if let Some(error) = last_error {
        words.push_str(&format!(" The last error: {error}"));
    }
    words
}

fn model_call(call: LlmCall) -> ModelCall {
    let finish = call.finish_reason.unwrap_or_default();
    let Usage { prompt_tokens, cached_tokens, completion_tokens, .. } = call.usage;
    ModelCall {
        model: call.model,
        seconds: seconds(call.latency_ms),
        tokens: format!("{prompt_tokens} in ({cached_tokens} cached), {completion_tokens} out"),
        finish: if call.attempts > 1 { format!("{finish}, after {} attempts", call.attempts) } else { finish },
        text: call.text,
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
fn facts(record: &TurnRecord) -> Vec<(&'static str, String)> {
    let TurnRecord { turn, trace, journal, reply_mode, undone_at, .. } = record;
    let Usage { total_tokens, cached_tokens, llm_calls, estimated, .. } = turn.usage;
    let has_run = turn.timings_ms.total > 0.0;
    let time = |milliseconds: f64| if has_run { seconds(milliseconds) } else { String::new() };
    let mut facts = vec![
        ("Start", moment(turn.created_at)),
        ("Duration", time(turn.timings_ms.total)),
        ("Time in the model", time(turn.timings_ms.llm)),
        ("Time in this server", time(turn.timings_ms.server)),
        ("Model", turn.model.clone()),
        ("Reply mode", reply_mode.to_string()),
        ("Context", turn.context.map(|context| context.as_str().to_owned()).unwrap_or_default()),
        ("Prompt cache", turn.prompt.as_ref().map(|prompt| prompt.cache.as_str().to_owned()).unwrap_or_default()),
        ("Undone", undone_at.map(moment).unwrap_or_default()),
        ("Answer", turn.ending.map(how_it_ended).unwrap_or_default().to_owned()),
        ("Parse error", turn.parse_error.clone().unwrap_or_default()),
    ];
    if total_tokens > 0 {
        let about = if estimated { "about " } else { "" };
        let why = if estimated { ". The provider did not tell all tokens; we estimated the rest" } else { "" };
        let tokens = format!("{about}{total_tokens}, {cached_tokens} of them cached. Model calls: {llm_calls}{why}");
        facts.push(("Tokens", tokens));
    }
    if let Some(micros) = trace.as_ref().and_then(|trace| trace.cost(&turn.usage)) {
        facts.push(("Cost", cost(micros)));
    }
    if let Some((first, last)) = journal.as_ref().and_then(|journal| journal.first_seq.zip(journal.last_seq)) {
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
    follow(&at, turn, Next::Attempt(wished)).await
}

/// Lets the answer go on, and redirects to the new turn as soon as it runs.
pub async fn go_on(at: InCampaign) -> Result<HttpResponse> {
    let turn = id(&at)?;
    follow(&at, turn, Next::Continuation).await
}

async fn follow(at: &InCampaign, turn: Uuid, next: Next) -> Result<HttpResponse> {
    let wanted = Following { campaign: at.campaign.slug.clone(), turn, next };
    match again::start(&at.app, &at.caller, wanted).await {
        Ok(turn) => Ok(at.redirect(&at.url(&format!("turns/{turn}")), "The turn has started.")),
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
    match fork::fork(&at.app, &at.caller, &at.campaign.slug, &input, once.as_ref()).await {
        Ok(fork) => {
            let Named { slug } = fork.part(|shown| Named { slug: shown.row.slug })?;
            Ok(at.redirect(&format!("/admin/c/{slug}"), "This is the fork: the campaign as it was after the turn."))
        }
        Err(error) if matches!(error.code.status(), 409 | 410 | 503) => {
            let page = page_of(&at, Some(Problem { message: error.detail.clone(), rows: Vec::new() })).await?;
            at.show_again(&page)
        }
        Err(error) => Err(error),
    }
}
