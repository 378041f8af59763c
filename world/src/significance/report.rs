//! Stores an action and raises the score of everyone whom it concerns. This takes two statements, however many that
//! are.

use std::collections::BTreeSet;

use entity::shapes::Extensions;
use garde::Validate;
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::scores::Significance;
use base::{
    clock,
    error::{Error, FieldError, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{
    caller::{Caller, Scope},
    http::{
        resource::{Ref, scope_key},
        validate,
    },
};

/// The most entities that one action concerns: its targets first, then owners, then NPCs at the same location.
pub(super) const CONCERNED_MAX: i32 = 200;
/// The most actions that a reacting entity reads. Of older ones it reads only how many there were.
pub const KEPT_MAX: u32 = 50;
/// The most characters in the text of an action.
const TEXT_CHARS_MAX: usize = 2000;
/// The most actions of one request.
const ACTIONS_MAX: usize = 50;
/// The most targets of an action.
const TARGETS_MAX: usize = 50;

/// What a player's character did.
#[derive(Clone, Debug, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ActionReport {
    /// The character that acted, by id or slug.
    pub player_id: String,
    /// The type of action: `look`, `move`, `say`, `use_item`, `talk`, `pray`, `attack`, …, or one that the campaign's
    /// `significance_scores` defines.
    #[serde(rename = "type")]
    #[schema(max_length = 40)]
    pub kind: String,
    /// The NPCs, owners and characters at whom the action was aimed, by id or slug.
    #[garde(length(max = TARGETS_MAX))]
    #[schema(max_items = 50)]
    #[serde(default)]
    pub targets: Vec<String>,
    /// Where the action happened. By default, where the character is.
    #[garde(custom(validate::opt_line))]
    #[schema(min_length = 1)]
    #[serde(default)]
    pub location: Option<String>,
    /// What the character said, or what the action looked like. Entities that react read this.
    #[garde(custom(text_fits))]
    #[schema(max_length = 2000)]
    #[serde(default)]
    pub text: Option<String>,
}

/// What a player's character did: one action, or several in order.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionsReport {
    /// The character that acted, by id or slug.
    player_id: String,
    /// The type of the action: `look`, `move`, `say`, `use_item`, `talk`, `pray`, `attack`, …, or one that the campaign's
    /// `significance_scores` defines. Alternatively, `actions`.
    #[serde(rename = "type", default)]
    #[schema(max_length = 40)]
    kind: Option<String>,
    /// The NPCs, owners and characters at whom the action was aimed, by id or slug.
    #[schema(max_items = 50)]
    #[serde(default)]
    targets: Vec<String>,
    /// Where the action happened. By default, where the character is.
    #[schema(min_length = 1)]
    #[serde(default)]
    location: Option<String>,
    /// What the character said, or what the action looked like. Entities that react read this.
    #[schema(max_length = 2000)]
    #[serde(default)]
    text: Option<String>,
    /// Several actions in order, instead of the members above. All of them count, or none.
    #[schema(min_items = 1, max_items = 50)]
    #[serde(default)]
    actions: Option<Vec<ReportedAction>>,
}

/// One of several actions.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportedAction {
    /// As for a single action.
    #[serde(rename = "type")]
    #[schema(max_length = 40)]
    kind: String,
    /// As for a single action.
    #[schema(max_items = 50)]
    #[serde(default)]
    targets: Vec<String>,
    /// As for a single action.
    #[schema(min_length = 1)]
    #[serde(default)]
    location: Option<String>,
    /// As for a single action.
    #[schema(max_length = 2000)]
    #[serde(default)]
    text: Option<String>,
}

impl ActionsReport {
    /// The actions, each with the pointer to it in the request.
    ///
    /// # Errors
    /// `validation_failed` with pointers to what is missing or wrong.
    pub fn each(self) -> Result<Vec<(String, ActionReport)>> {
        let Self { player_id, kind, targets, location, text, actions } = self;
        let reports: Vec<_> = match (kind, actions) {
            (None, None) => {
                return Err(Error::invalid("/type", "required", "Name the type of the action, or send `actions`."));
            }
            (Some(kind), None) => vec![(String::new(), ActionReport { player_id, kind, targets, location, text })],
            (None, Some(actions)) if targets.is_empty() && location.is_none() && text.is_none() => {
                if !(1..=ACTIONS_MAX).contains(&actions.len()) {
                    let rule = format!("must have 1 to {ACTIONS_MAX} actions");
                    return Err(Error::invalid("/actions", "invalid_value", rule));
                }
                let report = |(n, action): (usize, ReportedAction)| {
                    let ReportedAction { kind, targets, location, text } = action;
                    let player_id = player_id.clone();
                    (format!("/actions/{n}"), ActionReport { player_id, kind, targets, location, text })
                };
                actions.into_iter().enumerate().map(report).collect()
            }
            _ => {
                let rule = "Send one action, or only `player_id` and `actions`.";
                return Err(Error::invalid("/actions", "invalid_value", rule));
            }
        };
        for (at, report) in &reports {
            validate::check(report).map_err(|error| error.below(at))?;
        }
        Ok(reports)
    }
}

fn text_fits(text: &Option<String>, _: &()) -> garde::Result {
    match text {
        Some(text) if text.chars().count() > TEXT_CHARS_MAX => {
            Err(garde::Error::new("must have at most 2000 characters"))
        }
        _ => Ok(()),
    }
}

/// The entity that reacts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ReactingEntity {
    /// `npc` or `owner`.
    #[serde(rename = "type")]
    pub kind: String,
    pub id: Uuid,
    pub slug: String,
}

/// A reaction that was queued.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TriggeredReaction {
    pub entity: ReactingEntity,
    /// The turn of the reaction. It runs in the background.
    pub turn_id: Uuid,
    /// Always `queued`.
    pub status: &'static str,
}

impl TriggeredReaction {
    /// A reaction that was queued now.
    #[must_use]
    pub fn queued(entity: ReactingEntity, turn_id: Uuid) -> Self {
        Self { entity, turn_id, status: "queued" }
    }
}

/// The reactions to an action or a prayer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Triggered {
    /// The reactions that were queued. Each entity is listed at most once.
    pub triggered: Vec<TriggeredReaction>,
    /// Owners whom a prayer concerns but who do not answer it, because at most 20 answer one prayer. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub left_out: Vec<ReactingEntity>,
}

/// A target of an action.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    #[serde(rename = "type")]
    pub kind: String,
    pub id: Uuid,
    pub slug: String,
}

/// An action as the functions in `sql/reactions.sql` take it.
#[derive(Debug, Serialize)]
pub struct Action {
    pub id: Uuid,
    pub campaign_id: Uuid,
    pub player_id: Uuid,
    #[serde(rename = "type")]
    pub kind: String,
    pub score: f64,
    pub targets: Vec<Target>,
    target_ids: Vec<Uuid>,
    pub location: Option<String>,
    pub location_key: Option<String>,
    spellings: Vec<String>,
    touches: BTreeSet<Touched>,
    text: Option<String>,
    source: &'static str,
    concerned_max: i32,
    kept_max: u32,
    /// The ids of entities for whom the action does not count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<Uuid>,
    /// Whether the campaign lets the dead speak, who then notice things too.
    dead_speak: bool,
    #[serde(flatten)]
    pub rules: ReactionRules,
}

/// What an action touches, so that it concerns the owners who watch over it.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Touched {
    aspect: &'static str,
    key: String,
}

impl Touched {
    fn of(aspect: &'static str, name: Option<&str>) -> Option<Self> {
        let key = scope_key(name.filter(|name| !name.trim().is_empty())?);
        Some(Self { aspect, key })
    }
}

/// What the character or a target is, and where the target is.
#[derive(Debug, Deserialize)]
struct Subject {
    location: Option<String>,
    race: Option<String>,
    profession: Option<String>,
    faction: Option<String>,
}

impl Subject {
    fn touched(&self) -> impl Iterator<Item = Touched> {
        let Self { location, race, profession, faction } = self;
        let named = [("location", location), ("race", race), ("profession", profession), ("faction", faction)];
        named.into_iter().filter_map(|(aspect, name)| Touched::of(aspect, name.as_deref()))
    }
}

/// How to queue reactions, in the form that the database function `queue_reaction` takes.
#[derive(Clone, Debug, Serialize)]
pub struct ReactionRules {
    cooldown_seconds: u32,
    per_day: u32,
    /// The key or user that reported the action.
    key_id: Option<Uuid>,
}

impl ReactionRules {
    #[must_use]
    pub fn of(settings: &Significance, key_id: Option<Uuid>) -> Self {
        Self { cooldown_seconds: settings.cooldown_seconds(), per_day: settings.per_day(), key_id }
    }
}

/// Who reported an action: a client, or the server itself for a command, a fight or the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Report,
    Command,
    /// A command in the player's own words.
    Deed,
    Encounter,
    Move,
    Table,
}

impl ActionReport {
    /// An action of a character that the server itself saw.
    #[must_use]
    pub fn observed(player: Uuid, kind: &str, targets: Vec<String>, text: &str) -> Self {
        let text = Some(text.chars().take(TEXT_CHARS_MAX).collect());
        Self { player_id: player.to_string(), kind: kind.to_owned(), targets, location: None, text }
    }
}

impl Source {
    fn as_str(self) -> &'static str {
        match self {
            Source::Report => "report",
            Source::Command | Source::Deed => "command",
            Source::Encounter => "encounter",
            Source::Move => "move",
            Source::Table => "table",
        }
    }
}

/// An action whose names are resolved to ids, with the campaign's settings.
pub struct Resolved {
    pub settings: Significance,
    pub action: Action,
    /// Whether the character is dead or unconscious.
    pub is_fallen: bool,
    /// The character's own location, as a slug.
    stands_at: Option<String>,
}

/// Stores actions and counts them. Two statements for each.
///
/// # Errors
/// `not_found` for the campaign; `validation_failed` for an unknown type, player or target, and for an action elsewhere that the caller may
/// not report; `forbidden` for another player. Nothing is counted then.
pub async fn report(
    tx: &TenantTx,
    caller: &Caller,
    campaign: &str,
    reports: &[(String, ActionReport)],
) -> Result<Triggered> {
    let mut triggered = Vec::new();
    for (at, report) in reports {
        let resolved = resolve_for(tx, caller, campaign, report).await.map_err(|error| match &*error.errors {
            [field] if field.pointer == "/player_id" => error,
            _ => error.below(at),
        })?;
        triggered.extend(count(tx, &resolved.action).await?.triggered);
    }
    Ok(Triggered { triggered, left_out: Vec::new() })
}

/// Looks up everything that a caller's report names, in one statement.
///
/// # Errors
/// The errors of [`report`].
pub async fn resolve_for(tx: &TenantTx, caller: &Caller, campaign: &str, report: &ActionReport) -> Result<Resolved> {
    let mut resolved = resolve(tx, campaign, report, Source::Report).await?;
    let Resolved { action: Action { campaign_id, player_id, location_key, rules, .. }, stands_at, .. } = &mut resolved;
    if caller.campaign.is_some_and(|only| only != *campaign_id) {
        return Err(Error::not_found("campaign"));
    }
    caller.may_act_as(*player_id)?;
    let may_say_where = !caller.is_player() && (caller.sees_secrets() || caller.scopes.has(Scope::Write));
    if report.location.is_some() && location_key != stands_at && !may_say_where {
        let rule = "The character is elsewhere. Leave out `location`, or use a key with the scope `gm` or `write`.";
        return Err(Error::invalid("/location", "invalid_value", rule));
    }
    rules.key_id = caller.author();
    Ok(resolved)
}

/// Reports an action that the server itself saw, if the campaign's settings say so. Leaves out targets that are not
/// characters, NPCs or owners.
///
/// # Errors
/// Database errors.
pub async fn report_own(tx: &TenantTx, campaign: Uuid, seen: &ActionReport, source: Source) -> Result<()> {
    let found = resolve(tx, &campaign.to_string(), seen, source).await?;
    let reports = found.settings.report_actions();
    let is_reported = match source {
        Source::Report => true,
        Source::Command | Source::Deed => reports.commands,
        Source::Encounter => reports.encounters,
        Source::Move => reports.moves,
        Source::Table => reports.table_events,
    };
    if is_reported {
        count(tx, &found.action).await?;
    }
    Ok(())
}

async fn resolve(tx: &TenantTx, campaign: &str, report: &ActionReport, source: Source) -> Result<Resolved> {
    let by = |name: &str| match Ref::parse(name) {
        Ref::Id(id) => (Some(id), None),
        Ref::Slug(slug) => (None, Some(slug)),
    };
    let (campaign_id, campaign_slug) = by(campaign);
    let (player_id, player_slug) = by(&report.player_id);
    let ids: Vec<Uuid> = report.targets.iter().filter_map(|name| Uuid::try_parse(name).ok()).collect();
    let row = sqlx::query("SELECT * FROM resolve_action($1, $2, $3, $4, $5, $6, $7)")
        .bind(tx.tenant())
        .bind(campaign_id)
        .bind(campaign_slug)
        .bind(player_id)
        .bind(player_slug)
        .bind(&report.targets)
        .bind(&ids)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        .ok_or_else(|| Error::not_found("campaign"))?;
    let campaign: Uuid = row.read("campaign")?;
    let player: Uuid = row.read::<Option<Uuid>>("player")?.ok_or_else(|| {
        Error::invalid("/player_id", "unknown_reference", "There is no such character in this campaign.")
    })?;
    let settings = Significance::of(&row.read_json::<Extensions>("settings")?);
    let kind = match source {
        Source::Deed => settings.kind_of(report.text.as_deref().unwrap_or_default(), &report.kind),
        _ => report.kind.clone(),
    };
    let score = settings.score(&kind).ok_or_else(|| unknown_type(&settings))?;
    let found: Vec<Target> = row.read_json("targets")?;
    let targets = if source == Source::Report { all_known(&report.targets, found)? } else { found };
    let key = |name: Option<String>| name.filter(|name| !name.trim().is_empty()).map(|name| scope_key(&name));
    let own_location: Option<String> = row.read("location")?;
    let stands_at = key(own_location.clone());
    let location = report.location.clone().or(own_location);
    let location_key = key(location.clone());
    let without_key: Vec<String> = row.read("without_key")?;
    let subjects: Vec<Subject> = row.read_json("subjects")?;
    let place = Touched::of("location", location.as_deref());
    let touches = place.into_iter().chain(subjects.iter().flat_map(Subject::touched)).collect();
    let action = Action {
        id: clock::id(),
        campaign_id: campaign,
        player_id: player,
        kind,
        score,
        target_ids: targets.iter().map(|target| target.id).collect(),
        targets,
        spellings: without_key.into_iter().filter(|name| Some(scope_key(name)) == location_key).collect(),
        location,
        location_key,
        touches,
        text: report.text.clone().filter(|text| !text.trim().is_empty()),
        source: source.as_str(),
        concerned_max: CONCERNED_MAX,
        kept_max: KEPT_MAX,
        except: Vec::new(),
        dead_speak: settings.dead_speak(),
        rules: ReactionRules::of(&settings, None),
    };
    Ok(Resolved { settings, action, is_fallen: row.read::<Option<bool>>("is_fallen")?.unwrap_or_default(), stands_at })
}

fn unknown_type(settings: &Significance) -> Error {
    let known: Vec<String> = settings.types().into_keys().collect();
    let message = format!(
        "This campaign has no such type of action. It has {}. Add others to the campaign's setting `significance_scores`.",
        known.join(", ")
    );
    Error::invalid("/type", "invalid_value", message)
}

/// The targets in the order of their names, each once.
fn all_known(names: &[String], found: Vec<Target>) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::with_capacity(names.len());
    let mut errors = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let is = |target: &&Target| match Ref::parse(name) {
            Ref::Id(id) => id == target.id,
            Ref::Slug(slug) => slug == target.slug,
        };
        match found.iter().find(is) {
            Some(target) if targets.iter().any(|known| known.id == target.id) => {}
            Some(target) => targets.push(target.clone()),
            None => errors.push(FieldError {
                pointer: format!("/targets/{i}"),
                code: "unknown_reference".into(),
                message: "There is no such character, NPC or owner in this campaign.".to_owned(),
            }),
        }
    }
    if errors.is_empty() { Ok(targets) } else { Err(Error::validation(errors)) }
}

/// Stores a resolved action and raises scores, in one statement.
///
/// # Errors
/// Database errors.
pub async fn count(tx: &TenantTx, action: &Action) -> Result<Triggered> {
    let rows = sqlx::query("SELECT * FROM report_action($1, $2)")
        .bind(tx.tenant())
        .bind(Json(action))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let triggered = rows
        .iter()
        .map(|row| {
            let entity =
                ReactingEntity { kind: row.read("entity_kind")?, id: row.read("entity_id")?, slug: row.read("slug")? };
            Ok(TriggeredReaction::queued(entity, row.read("turn_id")?))
        })
        .collect::<Result<_>>()?;
    base::metrics::ACTIONS.with_label_values(&[action.source]).inc();
    Ok(Triggered { triggered, left_out: Vec::new() })
}
