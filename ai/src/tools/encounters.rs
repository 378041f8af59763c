//! `manage_encounter` and `encounter_action`: fights. Game masters may do everything; a character acts only for itself.

use std::borrow::Cow;

use entity::session::Role;
use rules::encounter::Verbosity;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    answers::{EncounterList, EncounterListed, EncounterManaged},
    arguments,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use edge::http::resource::Ref;
use world::encounters::{
    answers::ActionTold,
    commit,
    eyes::Eyes,
    input::{ActionInput, CommitInput, CreateInput, EndInput, ParticipantInput},
    roster,
    service::{self, Cx, Hand},
    stand,
    store::Place,
};

/// The most encounters in a list.
const LIST_MAX: i64 = 100;

/// The operation on an encounter.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Create,
    Get,
    End,
    Commit,
    List,
    AddParticipant,
}

/// An operation and its arguments.
#[derive(Debug, Deserialize)]
pub(super) struct Manage {
    operation: Operation,
    #[serde(default)]
    encounter_id: Option<String>,
    /// The operation's own arguments, parsed by a strict type of their own.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// One object with the arguments of all operations, because models do not understand alternatives.
impl JsonSchema for Manage {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Manage".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut properties = Map::new();
        for of in [
            CreateInput::json_schema(generator),
            Get::json_schema(generator),
            EndInput::json_schema(generator),
            CommitInput::json_schema(generator),
            List::json_schema(generator),
            Add::json_schema(generator),
        ] {
            if let Some(Value::Object(its)) = of.get("properties") {
                properties.extend(its.clone());
            }
        }
        properties.insert("operation".to_owned(), json!({
            "type": "string", "enum": ["create", "get", "end", "commit", "list", "add_participant"],
            "description": "create takes name, participants, terrain, lighting, surprise, seed; get takes verbosity; end takes \
                outcome, generate_summary, preserve_log, notes; commit takes character_ids, exclude_conditions, \
                exclude_spell_slots, dry_run; list takes include_ended; add_participant takes participant.",
        }));
        let id = json!({ "type": "string", "description": "For all but create and list." });
        properties.insert("encounter_id".to_owned(), id);
        json_schema!({ "type": "object", "properties": properties, "required": ["operation"], "additionalProperties": false })
    }
}

/// How much `get` tells.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Get {
    /// More with each.
    #[serde(default)]
    #[schemars(with = "String", extend("enum" = ["minimal", "summary", "standard", "detailed"]))]
    verbosity: Verbosity,
}

/// Which ones.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Those that have ended, too.
    #[serde(default)]
    include_ended: bool,
}

/// Who joins.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Add {
    /// Who joins.
    participant: ParticipantInput,
}

pub(super) struct ManageEncounter;

impl ToolSpec for ManageEncounter {
    const NAME: &'static str = "manage_encounter";
    const ALIASES: &'static [&'static str] = &["create_encounter", "end_encounter"];
    const DESCRIPTION: &'static str = "Create, read, list, end or commit an encounter. It is a simulation: characters change \
        only when it is committed.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm];
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    const PREVIEWS: bool = false;
    type Arguments = Manage;
    type Answer = EncounterManaged;

    async fn run(cx: &ToolCx<'_>, arguments: Manage) -> Result<Self::Answer> {
        let Manage { operation, encounter_id, rest } = arguments;
        let rest = Value::Object(rest);
        let campaign = Ref::Id(cx.campaign);
        let at = at(cx, &campaign).await?;
        let id = || {
            encounter_id
                .as_deref()
                .ok_or_else(|| Error::invalid("/encounter_id", "required", "Give the id of the encounter."))
        };
        Ok(match operation {
            Operation::Create => {
                let mut input: CreateInput = arguments::read(rest)?;
                input.dice = cx.dice.map(<[u32]>::to_vec);
                if input.seed.is_some() && !is_master(cx) {
                    return Err(needs_gm("/seed"));
                }
                let created = service::create(cx.tx().await?, cx.campaign, &input, cx.rows_max, at.eyes).await?;
                EncounterManaged::View(created.view)
            }
            Operation::Get => {
                let Get { verbosity } = arguments::read(rest)?;
                EncounterManaged::View(service::get(&at, id()?, verbosity).await?)
            }
            Operation::End => {
                EncounterManaged::End(service::end(&at, id()?, &arguments::read::<EndInput>(rest)?).await?)
            }
            Operation::Commit => {
                // At most as many records as there can be participants.
                cx.changes(rules::encounter::limits::PARTICIPANTS_MAX as u64).await?;
                EncounterManaged::Commit(commit::commit(&at, id()?, &arguments::read::<CommitInput>(rest)?).await?)
            }
            Operation::List => EncounterManaged::List(list(cx, arguments::read::<List>(rest)?.include_ended).await?),
            Operation::AddParticipant => {
                let Add { participant } = arguments::read(rest)?;
                EncounterManaged::View(roster::join(&at, id()?, (&participant, "/participant"), cx.dice).await?)
            }
        })
    }
}

/// Whether the caller speaks as a game master.
fn is_master(cx: &ToolCx<'_>) -> bool {
    cx.reader.role != Role::Player
}

/// Checks that a caller may preview an action in a fight. A rules turn checks it itself.
pub(super) fn may_preview(cx: &ToolCx<'_>) -> Result<()> {
    match (cx.turn, cx.session) {
        (Some(_), None) => Ok(()),
        _ => service::may_preview(Eyes::of_reader(cx.reader)),
    }
}

fn needs_gm(pointer: &str) -> Error {
    Error::invalid(pointer, "invalid_value", "Only a game master may give this value.")
}

async fn at<'a>(cx: &'a ToolCx<'_>, campaign: &'a Ref) -> Result<Cx<'a>> {
    let place = Place { campaign, only: None };
    Ok(Cx {
        tx: cx.tx().await?,
        place,
        turn: cx.turn,
        is_command: cx.is_command,
        obeys_locks: !cx.is_command,
        rows_max: cx.rows_max,
        eyes: Eyes::of_reader(cx.reader),
    })
}

async fn list(cx: &ToolCx<'_>, include_ended: bool) -> Result<EncounterList> {
    let rows: Vec<(_, _, _, _, _, _)> = sqlx::query_as(
        "SELECT id, nullif(name, ''), status, round, participant_count, outcome FROM encounter \
         WHERE tenant_id = $1 AND campaign_id = $2 AND NOT hidden AND (status = 'active' OR $3) ORDER BY id DESC LIMIT $4",
    )
    .bind(cx.work.tenant())
    .bind(cx.campaign)
    .bind(include_ended)
    .bind(LIST_MAX)
    .fetch_all(&mut *cx.tx().await?.connection().await)
    .await?;
    let encounters = rows.into_iter().map(|(encounter_id, name, status, round, participant_count, outcome)| {
        EncounterListed { encounter_id, name, status, round, participant_count, outcome }
    });
    Ok(EncounterList { encounters: encounters.collect() })
}

/// An action and its encounter.
#[derive(Debug, Deserialize)]
pub(crate) struct Act {
    #[serde(default)]
    encounter_id: Option<String>,
    /// The action, parsed by a strict type of its own.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl JsonSchema for Act {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Act".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = ActionInput::json_schema(generator);
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            let id = json!({ "type": "string", "description": "Where it happens; for a character the fight it stands in, unless given." });
            properties.insert("encounter_id".to_owned(), id);
        }
        schema.insert("required".to_owned(), json!(["action"]));
        schema
    }
}

pub(super) struct EncounterAction;

impl ToolSpec for EncounterAction {
    const NAME: &'static str = "encounter_action";
    const DESCRIPTION: &'static str = "Do something in an encounter. `participant_id` acts, `target_id` is affected; each action reads \
        the fields it needs.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Gm, ActorKind::Character];
    const LISTED: bool = false;
    const OF_RULES: bool = true;
    const INFORMS: bool = true;
    type Arguments = Act;
    type Answer = ActionTold;

    async fn run(cx: &ToolCx<'_>, arguments: Act) -> Result<Self::Answer> {
        act(cx, arguments).await
    }
}

/// Does something in an encounter.
///
/// # Errors
/// As for [`service::act`].
pub(crate) async fn act(cx: &ToolCx<'_>, arguments: Act) -> Result<ActionTold> {
    let mut input: ActionInput = arguments::read(Value::Object(arguments.rest))?;
    input.dice = cx.dice.map(<[u32]>::to_vec);
    input.preview |= cx.preview;
    if input.preview {
        may_preview(cx)?;
    }
    if input.overridden && !is_master(cx) {
        return Err(needs_gm("/override"));
    }
    let campaign = Ref::Id(cx.campaign);
    // A player's AI acts for the player's character.
    let player = if cx.kind == ActorKind::Character { Some(cx.entity) } else { cx.reader.player };
    let id = match (arguments.encounter_id, player) {
        (Some(id), _) => Some(id),
        // Without an encounter, a character acts in the fight that it is in.
        (None, Some(player)) => stand::fight_of(cx.tx().await?, player).await?.map(|id| id.to_string()),
        (None, None) => None,
    };
    let id = id.ok_or_else(|| Error::invalid("/encounter_id", "required", "Give the id of the encounter."))?;
    let own = player.map(|id| id.to_string());
    let hand = own.as_deref().map_or(Hand::Table, Hand::Own);
    let mut at = at(cx, &campaign).await?;
    if !is_master(cx) {
        at.eyes = Eyes::Player(player);
    }
    service::act(&at, &id, &input, hand).await
}
