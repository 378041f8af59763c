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
    error::{Code, Error, FieldError, Result},
    stored::Columns,
};
use db::tenancy::TenantTx;
use edge::{
    caller::Caller,
    http::{
        resource::{Ref, scope_key},
        validate,
    },
};

/// The most entities that one action concerns: its targets first, then owners, then NPCs at the same location.
pub(super) const CONCERNED_MAX: i32 = 200;
/// The most actions that a reacting entity reads. Of older ones it reads only how many there were.
pub const KEPT_MAX: u32 = 100;
/// The most characters in the text of an action.
const TEXT_CHARS_MAX: usize = 2000;
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

fn text_fits(text: &Option<String>, _: &()) -> garde::Result {
    match text {
        Some(text) if text.chars().count() > TEXT_CHARS_MAX => {
            Err(garde::Error::new("must have at most 2000 characters"))
        }
        Some(text) if text.contains('\0') => Err(garde::Error::new("must not contain NUL characters")),
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
}

/// The reactions to an action or a prayer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Triggered {
    /// The reactions that were queued. Each entity is listed at most once.
    pub triggered: Vec<TriggeredReaction>,
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
    immediate_threshold: Option<f64>,
    pub targets: Vec<Target>,
    target_ids: Vec<Uuid>,
    pub location: Option<String>,
    pub location_key: Option<String>,
    spellings: Vec<String>,
    race_key: Option<String>,
    profession_key: Option<String>,
    factions: BTreeSet<String>,
    text: Option<String>,
    source: &'static str,
    concerned_max: i32,
    kept_max: u32,
    #[serde(flatten)]
    pub rules: ReactionRules,
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
    Encounter,
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
            Source::Command => "command",
            Source::Encounter => "encounter",
            Source::Table => "table",
        }
    }
}

/// An action whose names are resolved to ids, with the campaign's settings.
pub struct Resolved {
    pub settings: Significance,
    pub action: Action,
    /// The character's own location, as a slug.
    stands_at: Option<String>,
}

/// Stores an action and counts it.
///
/// # Errors
/// `not_found` for the campaign; `validation_failed` for an unknown type, player or target; `forbidden` for another player, and for a
/// player's report of an action elsewhere. Nothing is counted then.
pub async fn report(tx: &TenantTx, caller: &Caller, campaign: &str, report: &ActionReport) -> Result<Triggered> {
    let Resolved { action, .. } = resolve_for(tx, caller, campaign, report).await?;
    count(tx, &action).await
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
    if caller.is_player() && stands_at.is_some() && location_key != stands_at {
        let message = "The character is elsewhere. Players may only report actions at their character's location.";
        return Err(Error::new(Code::Forbidden, message));
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
    if found.settings.is_automatic(&seen.kind) {
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
    let score = settings.score(&report.kind).ok_or_else(|| unknown_type(&settings))?;
    let found: Vec<Target> = row.read_json("targets")?;
    let targets = if source == Source::Report { all_known(&report.targets, found)? } else { found };
    let key = |name: Option<String>| name.filter(|name| !name.trim().is_empty()).map(|name| scope_key(&name));
    let own_location: Option<String> = row.read("location")?;
    let stands_at = key(own_location.clone());
    let location = report.location.clone().or(own_location);
    let location_key = key(location.clone());
    let without_key: Vec<String> = row.read("without_key")?;
    let factions: Vec<String> = row.read("factions")?;
    let action = Action {
        id: Uuid::now_v7(),
        campaign_id: campaign,
        player_id: player,
        kind: report.kind.clone(),
        score,
        immediate_threshold: settings.immediate_threshold(),
        target_ids: targets.iter().map(|target| target.id).collect(),
        targets,
        spellings: without_key.into_iter().filter(|name| Some(scope_key(name)) == location_key).collect(),
        location,
        location_key,
        race_key: key(row.read("race")?),
        profession_key: key(row.read("profession")?),
        factions: factions.iter().map(|name| scope_key(name)).collect(),
        text: report.text.clone().filter(|text| !text.trim().is_empty()),
        source: source.as_str(),
        concerned_max: CONCERNED_MAX,
        kept_max: KEPT_MAX,
        rules: ReactionRules::of(&settings, None),
    };
    Ok(Resolved { settings, action, stands_at })
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
async fn count(tx: &TenantTx, action: &Action) -> Result<Triggered> {
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
            Ok(TriggeredReaction { entity, turn_id: row.read("turn_id")? })
        })
        .collect::<Result<_>>()?;
    base::metrics::ACTIONS.with_label_values(&[action.source]).inc();
    Ok(Triggered { triggered })
}
