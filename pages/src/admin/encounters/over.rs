//! The end of a fight: its outcome, what it did, and writing that to the sheets.

use actix_web::HttpResponse;
use askama::Template;
use rules::encounter::Changes;

use super::work::{once_for_form, said_on_page};
use crate::{
    admin::{
        InCampaign, Tab,
        answer::is_htmx,
        table::answer::{AT_TABLE, fields_at_table},
    },
    fight::OUTCOMES,
};
use base::error::{Error, Result};
use edge::http::resource::Ref;
use world::encounters::{
    aftermath::{self, AfterRecord, CommitState},
    commit::commit as commit_into_records,
    input::{CommitInput, EndInput},
    open,
    service::{self, Cx},
};

/// What an ended fight did.
pub(super) struct OverView {
    pub outcome: &'static str,
    pub summary: String,
    pub notes: Option<String>,
    /// Those to whom it did something.
    pub records: Vec<RecordView>,
    /// The names of the others who have a sheet.
    pub unchanged: Vec<String>,
    /// Whether the user can write something that is not written yet.
    pub may_write: bool,
    /// Whether it stands at the table.
    pub is_at_table: bool,
}

/// What it did to somebody with a record.
pub(super) struct RecordView {
    pub name: String,
    pub lines: Vec<String>,
    pub commit: CommitState,
}

impl RecordView {
    /// Whether it is written.
    pub fn state(&self) -> &'static str {
        match self.commit {
            CommitState::Waits => "not written yet",
            CommitState::WaitsForMerge => "not written yet; the sheet was edited since, so it takes the differences",
            CommitState::Written => "written to the sheet",
            CommitState::Gone => "the sheet was deleted",
        }
    }

    fn of(record: AfterRecord) -> Self {
        let mut lines = lines(&record.changes);
        if lines.is_empty() && record.has_changed {
            lines.push("How long something lasts has changed.".to_owned());
        }
        Self { name: record.name, lines, commit: record.commit }
    }
}

impl OverView {
    /// Reads what an ended fight did.
    pub async fn of(cx: &Cx<'_>, id: &str, may_commit: bool) -> Result<Self> {
        let after = aftermath::of(cx, id).await?;
        let (records, unchanged): (Vec<_>, Vec<_>) =
            after.records.into_iter().map(RecordView::of).partition(|record| !record.lines.is_empty());
        let waits = |record: &RecordView| matches!(record.commit, CommitState::Waits | CommitState::WaitsForMerge);
        Ok(Self {
            outcome: OUTCOMES.iter().find(|(outcome, ..)| *outcome == after.outcome).map_or("", |(.., words)| words),
            may_write: may_commit && records.iter().any(waits),
            is_at_table: false,
            summary: after.summary,
            notes: after.notes,
            records,
            unchanged: unchanged.into_iter().map(|record| record.name).collect(),
        })
    }
}

/// Changes in words, one for each thing that changed.
fn lines(changes: &Changes) -> Vec<String> {
    let mut lines = Vec::new();
    let mut number = |what: &str, initial: i32, now: i32| {
        if initial != now {
            lines.push(format!("{what}: {initial} → {now}"));
        }
    };
    number("Hit points", changes.hp.initial, changes.hp.now);
    if let Some(temp) = changes.temp_hp {
        number("Temporary hit points", temp.initial, temp.now);
    }
    for slot in changes.spell_slots.iter().flatten() {
        number(&format!("Spell slots of level {}", slot.level), slot.initial, slot.now);
    }
    for resource in changes.resources.iter().flatten() {
        number(&resource.name, resource.initial, resource.now);
    }
    if let Some(dice) = changes.hit_dice {
        number("Hit dice", dice.initial, dice.now);
    }
    if let Some(saves) = &changes.death_saves {
        number("Death saves that succeeded", saves.initial.successes, saves.now.successes);
        number("Death saves that failed", saves.initial.failures, saves.now.failures);
    }
    lines.extend(changes.conditions.added.iter().map(|name| format!("Now {name}")));
    lines.extend(changes.conditions.removed.iter().map(|name| format!("No longer {name}")));
    lines.extend(changes.conditions.changed.iter().map(|name| format!("Still {name}, but differently")));
    if let Some(spell) = &changes.concentration {
        lines.push(match &spell.now {
            Some(now) => format!("Concentrates on {now}"),
            None => "No longer concentrates".to_owned(),
        });
    }
    if let Some(effects) = &changes.effects {
        let names = |list: &[rules::sheet::ActiveEffect]| list.iter().map(|e| e.name.clone()).collect::<Vec<_>>();
        let (before, now) = (names(&effects.initial), names(&effects.now));
        lines.extend(now.iter().filter(|name| !before.contains(name)).map(|name| format!("Has {name}")));
        lines.extend(before.iter().filter(|name| !now.contains(name)).map(|name| format!("{name} has ended")));
    }
    let words = |flag: &String| flag.replace('_', " ");
    lines.extend(changes.rest_flags.iter().map(|flag| format!("Used until a long rest: {}", words(flag))));
    lines.extend(changes.cleared_rest_flags.iter().map(|flag| format!("Can be used again: {}", words(flag))));
    lines
}

/// Ends a fight.
pub async fn end(at: InCampaign) -> Result<HttpResponse> {
    let chosen = at.form.text("outcome");
    let outcome = OUTCOMES.iter().find(|(_, name, _)| *name == chosen).map(|(outcome, ..)| *outcome);
    let notes = Some(at.form.text("notes").trim().replace("\r\n", "\n")).filter(|notes| !notes.is_empty());
    let done = once_for_form(&at, async |cx, id| {
        let outcome =
            outcome.ok_or_else(|| Error::invalid("/outcome", "invalid_value", "Choose how the fight ends."))?;
        let input = EndInput { outcome, generate_summary: false, preserve_log: true, notes: notes.clone() };
        service::end(cx, id, &input).await?;
        Ok(Some("The fight has ended. What it did is not in the sheets yet.".to_owned()))
    });
    shown(&at, done.await).await
}

/// Writes what a fight did to the sheets, each of them once.
pub async fn commit(at: InCampaign) -> Result<HttpResponse> {
    let done = once_for_form(&at, async |cx, id| {
        let told = commit_into_records(cx, id, &CommitInput::default()).await?;
        let names: Vec<&str> =
            told.committed.iter().filter_map(|one| one.character_name.as_deref().or(one.npc_name.as_deref())).collect();
        Ok(Some(match names.as_slice() {
            [] => "Everything was in the sheets already.".to_owned(),
            names => format!("Written to the sheets of {}.", names.join(", ")),
        }))
    });
    shown(&at, done.await).await
}

/// An ended fight beside the talk.
#[derive(Template)]
#[template(path = "admin/table-over.html")]
struct OverPiece {
    path: String,
    /// The hidden fields of its form.
    token: String,
    name: String,
    round: u32,
    over: OverView,
    /// What was done just now.
    told: Option<String>,
}

/// Shows what an ended fight did, after something was done: at the table beside the talk, otherwise on its page.
async fn shown(at: &InCampaign, done: Result<Option<String>>) -> Result<HttpResponse> {
    if !at.form.has(AT_TABLE) || !is_htmx(&at.request) {
        return said_on_page(at, done);
    }
    let told = done?;
    let tx = at.read().await?;
    let fight = open::seen_by(&tx, at.campaign.id.0, at.path("x"), &at.caller).await?;
    let campaign = Ref::Id(at.campaign.id.0);
    let over = OverView::of(&Cx::of(&tx, &campaign, &at.caller), at.path("x"), true).await?;
    at.piece(&OverPiece {
        path: at.url(&format!("encounters/{}", fight.id)),
        token: fields_at_table(&at.frame("", Tab::Table).token()),
        name: fight.fight.name().unwrap_or("A fight").to_owned(),
        round: fight.fight.round(),
        over: OverView { is_at_table: true, ..over },
        told,
    })
}
