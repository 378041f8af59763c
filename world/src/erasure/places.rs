//! What an erasure does with every column of text, JSON or bytes of every table.
//!
//! This table drives the erasure: [`steps`](super::steps) searches every table that has a [`Walk`] and does what is
//! written here. A column that never contains a person's words says why. `tests/erasure` compares [`TABLES`] with the
//! database's catalogue. To add a table, add a [`Table`] to [`TABLES`]. If it contains words, give it keys and a scope,
//! so that it is searched.

use serde_json::{Map, Value, json};

use super::Kind;

/// What is done with a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The words in it are replaced by `[erased]`.
    Text,
    /// The same, for every string and member name of a JSON document.
    Json,
    /// A slug that contains such a word is replaced by one that identifies only the row.
    Slug,
    /// The same, for a client's own reference.
    Ref,
    /// A key derived from a name.
    Key,
    /// It is deleted together with its row. The text says why it needs no treatment of its own.
    Goes(&'static str),
    /// It never contains a person's words. The text says why.
    Nothing(&'static str),
}

use Treatment::{Goes, Json, Key, Nothing, Ref, Slug, Text};

/// How to find the rows that belong to the campaigns of an erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The rows are campaigns.
    Itself,
    /// By `campaign_id`.
    Campaign,
    /// By the row's encounter, session or turn. Only ended turns count.
    Encounter,
    Session,
    Turn,
    /// By tenant: all of its rows.
    Tenant,
}

impl Scope {
    const fn as_str(self) -> &'static str {
        match self {
            Scope::Itself => "self",
            Scope::Campaign => "campaign",
            Scope::Encounter => "encounter",
            Scope::Session => "session",
            Scope::Turn => "turn",
            Scope::Tenant => "tenant",
        }
    }
}

/// What is done with a row that belongs to the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is deleted.
    Delete,
    /// The row stays, without these columns.
    Wipe(&'static [&'static str]),
}

/// The rows that belong to the person: the columns that identify them, and what is done with them.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    pub columns: &'static [&'static str],
    pub then: Then,
}

/// What is done with every other row of the scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The words are removed.
    Redact,
    /// A row that contains such a word is deleted.
    DeleteMatching,
    /// Every row is deleted. It would not have been kept for long anyway.
    Delete,
    /// A stored answer that contains such a word, or is about the person, is replaced by an error.
    Refuse,
    /// Images of rows are treated like the tables that they come from.
    Images,
}

/// A table that is searched.
#[derive(Clone, Copy, Debug)]
pub struct Walk {
    /// The key columns after the tenant, and their types.
    pub keys: &'static [(&'static str, &'static str)],
    pub scope: Scope,
    pub rest: Rest,
    pub of_character: Option<Own>,
    pub of_user: Option<Own>,
    /// Whether a changed row is marked in `redacted_at`.
    pub is_marked: bool,
}

/// A table and its columns.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub name: &'static str,
    pub walk: Option<Walk>,
    pub columns: &'static [(&'static str, Treatment)],
}

const BY_ID: &[(&str, &str)] = &[("id", "uuid")];

const fn walk(keys: &'static [(&'static str, &'static str)], scope: Scope) -> Walk {
    Walk { keys, scope, rest: Rest::Redact, of_character: None, of_user: None, is_marked: false }
}

impl Walk {
    const fn character(self, columns: &'static [&'static str], then: Then) -> Self {
        Self { of_character: Some(Own { columns, then }), ..self }
    }

    const fn user(self, columns: &'static [&'static str], then: Then) -> Self {
        Self { of_user: Some(Own { columns, then }), ..self }
    }

    const fn rest(self, rest: Rest) -> Self {
        Self { rest, ..self }
    }

    const fn marked(self) -> Self {
        Self { is_marked: true, ..self }
    }
}

const OURS: Treatment = Nothing("one of a fixed set of values");
const RANDOM: Treatment = Nothing("random bits, or a hash of them");
const SEARCH: Treatment = Nothing("generated from other columns, and again when they change");
const FOLDED: Treatment = Nothing("emptied when the words of its column are replaced, and written again");
const IDS: Treatment = Nothing("ids: numbers that name nobody once the row is gone");

/// Every table with a column of text, JSON or bytes, in the order in which they are searched.
#[rustfmt::skip]
pub const TABLES: &[Table] = &[
    // Messages are first, because their sentences are looked for in all other tables.
    Table { name: "message", walk: Some(walk(BY_ID, Scope::Campaign).character(&["player_id"], Then::Delete)), columns: &[
        ("type", OURS), ("speaker", Json), ("content", Text), ("flavor", Text), ("roll", Json), ("author", OURS), ("whisper_to", IDS),
        ("prompt_text", Text), ("event", Json), ("extensions", Json), ("external_ref", Ref), ("told_as", Nothing("a role and an id")),
    ] },
    Table { name: "turn", walk: Some(walk(BY_ID, Scope::Campaign).marked()
        .character(&["player_id", "entity_id"], Then::Wipe(&["action", "record", "error", "revert_conflicts", "revert_error"]))), columns: &[
        ("kind", OURS), ("status", OURS), ("action", Text), ("trigger", OURS), ("on_failure", OURS), ("reply_mode", OURS), ("record", Json),
        ("error", Json), ("revert_conflicts", Json), ("told_as", Nothing("a role and an id")),
        ("revert_as", OURS), ("revert_error", Text),
    ] },
    Table { name: "turn_event", walk: Some(walk(&[("turn_id", "uuid"), ("seq", "int")], Scope::Turn).rest(Rest::Delete)), columns: &[
        ("name", OURS), ("data", Goes("the events of running turns are deleted for the whole campaign, because a word may be split between two of them")),
    ] },
    Table { name: "memory", walk: Some(walk(BY_ID, Scope::Campaign)
        .character(&["subject_id", "holder_id"], Then::Delete).user(&["author"], Then::Wipe(&["author"]))), columns: &[
        ("holder_type", OURS), ("subject_type", OURS), ("text", Text), ("game_time", Text), ("source", OURS), ("search", SEARCH), ("extensions", Json),
        ("external_ref", Ref), ("folded_text", FOLDED),
    ] },
    // The character's own row is deleted last.
    Table { name: "character", walk: Some(walk(BY_ID, Scope::Campaign)
        .user(&["player_user"], Then::Wipe(&["player_user", "player_name"]))), columns: &[
        ("slug", Slug), ("name", Text), ("player_name", Text), ("race", Text), ("profession", Text), ("faction", Text),
        ("abilities", Nothing("six numbers")), ("size", OURS), ("skill_proficiencies", Json), ("saving_throw_proficiencies", Json),
        ("weapon_proficiencies", Json), ("features", Json), ("weapons", Json), ("armor", Json), ("shield", Json),
        ("spellcasting_ability", OURS), ("spells", Json), ("effects", Json), ("concentration", Json), ("hit_dice", Json),
        ("death_saves", Nothing("two numbers")), ("resistances", Json), ("immunities", Json), ("vulnerabilities", Json),
        ("spell_slots", Nothing("numbers by level")), ("resources", Json), ("conditions", Json), ("inventory", Json), ("location", Text),
        ("turn_flags", Json), ("extensions", Json), ("external_ref", Ref),
    ] },
    Table { name: "npc", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("slug", Slug), ("name", Text), ("description", Text), ("personality_prompt", Text), ("race", Text), ("profession", Text),
        ("location", Text), ("faction", Text), ("owner_ids", IDS), ("available_tools", Json), ("stats", Json), ("conditions", Json),
        ("effects", Json), ("disposition", Text), ("behaviors", Json), ("inventory", Json), ("extensions", Json), ("external_ref", Ref),
        ("location_key", SEARCH), ("model", Nothing("an administrator's name for a model")), ("instructions", Text),
        ("post_history_instructions", Text), ("authors_note", Json), ("example_dialogue", Text), ("greetings", Json), ("scenario", Text),
        ("pending_instructions", Json),
    ] },
    Table { name: "owner", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("slug", Slug), ("name", Text), ("description", Text), ("personality_prompt", Text), ("monitored_aspect", OURS),
        ("associated_id", Text), ("associated_key", Key), ("available_tools", Json), ("resources", Json), ("extensions", Json),
        ("external_ref", Ref), ("model", Nothing("an administrator's name for a model")), ("instructions", Text),
        ("post_history_instructions", Text), ("authors_note", Json), ("example_dialogue", Text), ("greetings", Json), ("scenario", Text),
        ("pending_instructions", Json),
    ] },
    Table { name: "lore", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("slug", Slug), ("title", Text), ("scope", OURS), ("associated_id", Text), ("associated_key", Key), ("content", Text),
        ("tags", Json), ("known_by", Nothing("ids; the character's is taken out")), ("activation", OURS), ("keys", Json),
        ("secondary_keys", Json), ("logic", OURS), ("search", SEARCH), ("extensions", Json), ("external_ref", Ref),
        ("folded_title", FOLDED), ("folded_content", FOLDED), ("folded_tags", FOLDED), ("folded_keys", FOLDED),
        ("folded_secondary_keys", FOLDED),
    ] },
    Table { name: "scene", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("slug", Slug), ("name", Text), ("description", Text), ("location", Text), ("channel", Ref), ("grid", Json), ("tokens", Json),
        ("notes", Json), ("light_sources", Json), ("extensions", Json), ("external_ref", Ref),
    ] },
    Table { name: "campaign", walk: Some(walk(BY_ID, Scope::Itself)), columns: &[
        ("slug", Slug), ("name", Text), ("description", Text), ("game_system", OURS), ("game_time", Text), ("instructions", Text),
        ("pending_instructions", Json), ("settings", Json),
        ("extensions", Json), ("external_ref", Ref), ("forked_from", IDS),
    ] },
    Table { name: "campaign_removal", walk: None, columns: &[("failed", Nothing("PostgreSQL's name of an error"))] },
    Table { name: "session", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("client_id", Ref), ("role", OURS), ("dice", OURS), ("extensions", Json), ("external_ref", Ref),
    ] },
    Table { name: "session_state", walk: Some(walk(&[("session_id", "uuid")], Scope::Campaign)), columns: &[
        ("world_state", Json), ("combat", Json),
    ] },
    Table { name: "session_event", walk: Some(walk(&[("session_id", "uuid"), ("number", "bigint")], Scope::Session)), columns: &[
        ("delta", Json),
    ] },
    Table { name: "encounter", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("name", Text), ("status", OURS), ("current_participant_id", Text), ("outcome", OURS), ("notes", Text), ("last_action", Json),
        ("extensions", Json), ("external_ref", Ref),
    ] },
    Table { name: "encounter_state", walk: Some(walk(&[("encounter_id", "uuid")], Scope::Encounter)), columns: &[
        ("beginning", Json), ("state", Json), ("tail", Json),
    ] },
    Table { name: "encounter_log", walk: Some(walk(&[("encounter_id", "uuid"), ("seq", "bigint")], Scope::Encounter)), columns: &[
        ("action", Json), ("events", Json), ("told", IDS),
    ] },
    Table { name: "encounter_member", walk: Some(walk(&[("encounter_id", "uuid"), ("participant_id", "text")], Scope::Encounter)), columns: &[
        ("participant_id", Text), ("kind", OURS),
    ] },
    Table { name: "encounter_past", walk: Some(walk(BY_ID, Scope::Campaign)), columns: &[
        ("kind", OURS), ("content", Json),
    ] },
    Table { name: "edit_step", walk: Some(walk(BY_ID, Scope::Campaign).user(&["author"], Then::Wipe(&["author"]))), columns: &[
        ("what", OURS),
    ] },
    Table { name: "dice_seed", walk: Some(walk(BY_ID, Scope::Tenant)), columns: &[
        ("server_seed", RANDOM), ("client_seed", Text),
    ] },
    Table { name: "version_head", walk: Some(walk(&[("campaign_id", "uuid"), ("key", "text")], Scope::Campaign).rest(Rest::DeleteMatching)), columns: &[
        ("key", Text),
    ] },
    Table { name: "pending_import", walk: Some(walk(&[("user_id", "uuid")], Scope::Campaign).rest(Rest::Delete)), columns: &[
        ("name", Goes("files that wait to be imported are deleted for the whole campaign, because their content is unknown")),
        ("bytes", Goes("deleted with the file")),
    ] },
    Table { name: "bridge_mail", walk: Some(walk(BY_ID, Scope::Campaign).rest(Rest::Delete)), columns: &[
        ("kind", OURS), ("data", Goes("mail between servers lives for seconds")), ("reply", Goes("with the mail")),
    ] },
    Table { name: "api_key", walk: Some(walk(BY_ID, Scope::Tenant)), columns: &[
        ("prefix", RANDOM), ("hash", RANDOM), ("name", Text), ("scopes", OURS),
    ] },
    Table { name: "player_link", walk: Some(walk(BY_ID, Scope::Campaign).character(&["player_id"], Then::Delete).user(&["author"], Then::Wipe(&["author"]))), columns: &[
        ("name", Text), ("hash", RANDOM), ("sealed", Nothing("a secret, encrypted")),
    ] },
    Table { name: "invitation", walk: Some(walk(BY_ID, Scope::Tenant).rest(Rest::DeleteMatching)), columns: &[
        ("hash", RANDOM), ("email", Text), ("email_folded", Text), ("name", Text), ("role", OURS),
    ] },
    Table { name: "idempotency", walk: Some(walk(BY_ID, Scope::Tenant).rest(Rest::Refuse)), columns: &[
        ("key", Text), ("route", Text), ("fingerprint", Nothing("a hash")), ("state", OURS), ("headers", Goes("replaced with the answer")),
        ("body", Goes("an answer about the person is replaced by an error")),
    ] },
    Table { name: "journal", walk: Some(walk(&[("campaign_id", "uuid"), ("seq", "bigint")], Scope::Campaign).rest(Rest::Images)
        .user(&["user_id"], Then::Wipe(&["user_id"]))), columns: &[
        ("table_name", OURS), ("op", OURS), ("before", Json), ("after", Json), ("origin", OURS), ("request_id", Text),
    ] },
    Table { name: "player_action", walk: Some(walk(BY_ID, Scope::Campaign).character(&["player_id"], Then::Delete)), columns: &[
        ("type", OURS), ("targets", Json), ("location", Text), ("text", Text), ("source", OURS),
    ] },
    Table { name: "reaction", walk: Some(walk(BY_ID, Scope::Campaign).character(&["player_id"], Then::Delete)), columns: &[
        ("kind", OURS), ("entity_kind", OURS), ("state", OURS), ("message", Text), ("location_key", Key), ("error", Json),
    ] },
    Table { name: "reply", walk: Some(walk(BY_ID, Scope::Campaign).character(&["player_id"], Then::Delete)), columns: &[
        ("entity_kind", OURS), ("narrative", Text), ("messages", Json), ("location_key", Key), ("state", OURS), ("extensions", Json),
        ("external_ref", Ref),
    ] },
    Table { name: "significance", walk: Some(walk(&[("entity_id", "uuid"), ("player_id", "uuid")], Scope::Campaign).character(&["player_id"], Then::Delete)), columns: &[
        ("entity_kind", OURS), ("location_key", Key),
    ] },
    // Tables that are not searched.
    Table { name: "action_concern", walk: None, columns: &[("reason", OURS)] },
    Table { name: "actor_slug", walk: None, columns: &[
        ("slug", Nothing("kept by a trigger of the actors' tables: it changes and goes with theirs")), ("kind", OURS),
    ] },
    Table { name: "lore_link", walk: None, columns: &[
        ("target", Nothing("kept by a trigger of the lore's table: it changes with the content")),
        ("page", Nothing("a part of `target`")),
    ] },
    Table { name: "app_user", walk: None, columns: &[
        ("email", Goes("a user's account goes when their erasure begins, unless it is other tenants' too")), ("name", Goes("with the account")),
        ("email_folded", Goes("with the account")), ("password_hash", Goes("with the account")), ("totp_secret", Goes("with the account")),
        ("totp_pending", Goes("with the account")),
    ] },
    Table { name: "password_reset", walk: None, columns: &[("hash", RANDOM)] },
    Table { name: "recovery_code", walk: None, columns: &[("hash", RANDOM)] },
    Table { name: "half_sign_in", walk: None, columns: &[("hash", RANDOM), ("password_hash", Goes("with the account, and in minutes"))] },
    Table { name: "editor_session", walk: None, columns: &[("hash", RANDOM)] },
    Table { name: "membership", walk: None, columns: &[("role", OURS)] },
    Table { name: "tenant", walk: None, columns: &[
        ("slug", Nothing("the operator's name for the tenant")), ("name", Nothing("the operator's name for the tenant")),
        ("settings", Nothing("switches, models and addresses that owners set")), ("limits", Nothing("numbers")),
        ("origins", Nothing("addresses of frontends")), ("llm_api_key", Nothing("a secret, encrypted")),
    ] },
    Table { name: "model_profile", walk: None, columns: &[
        ("slug", Nothing("an administrator's name for a model")), ("name", Nothing("an administrator's name for a model")),
        ("settings", Nothing("addresses, models and numbers that administrators set")), ("api_key", Nothing("a secret, encrypted")),
        ("headers", Nothing("headers for a provider, encrypted")),
    ] },
    Table { name: "usage_entry", walk: None, columns: &[
        ("kind", OURS), ("task", OURS), ("model", Nothing("the name of a model")),
        ("profile", Nothing("an administrator's name for a model")),
    ] },
    Table { name: "operator_switch", walk: None, columns: &[("name", OURS)] },
    Table { name: "erasure", walk: None, columns: &[
        ("kind", OURS), ("campaign_ids", IDS), ("subject_ids", IDS), ("words", Goes("emptied when the erasure is done")),
        ("seen", Goes("emptied when the erasure is done")),
    ] },
    Table { name: "erasure_word", walk: None, columns: &[
        ("hash", Goes("deleted when the erasure is done")), ("word", Goes("deleted when the erasure is done")),
        ("escaped", Goes("deleted when the erasure is done")),
    ] },
    Table { name: "seaql_migrations", walk: None, columns: &[("version", OURS)] },
];

/// The tables that are searched, in order.
pub fn walked() -> impl Iterator<Item = (&'static Table, &'static Walk)> {
    TABLES.iter().filter_map(|table| table.walk.as_ref().map(|walk| (table, walk)))
}

fn columns(table: &Table) -> Value {
    let named = table.columns.iter().filter_map(|(name, treatment)| {
        let kind = match treatment {
            Text => "text",
            Json => "json",
            Slug => "slug",
            Ref => "ref",
            Key => "key",
            Goes(_) | Nothing(_) => return None,
        };
        Some(((*name).to_owned(), json!(kind)))
    });
    Value::Object(named.collect())
}

/// Describes a table for the database's functions: its columns, and what an erasure of this kind does with them. `kept`
/// are words that documents need where they stand alone.
#[must_use]
pub fn describe_table(table: &Table, walk: &Walk, kind: Kind, kept: &[String]) -> Value {
    let own = match kind {
        Kind::Character => walk.of_character,
        Kind::User => walk.of_user,
    };
    let wiped = match own.map(|own| own.then) {
        Some(Then::Wipe(columns)) => columns.iter().map(|name| ((*name).to_owned(), Value::Null)).collect(),
        _ => Map::new(),
    };
    let then = match (walk.rest, own.map(|own| own.then)) {
        (Rest::Delete, _) => "goes",
        (Rest::DeleteMatching, _) => "matching",
        (_, Some(Then::Delete)) => "delete",
        (_, Some(Then::Wipe(_))) => "wipe",
        (_, None) => "stays",
    };
    let keys: Vec<_> = walk.keys.iter().map(|(name, of)| json!({ "name": name, "type": of })).collect();
    let mut place = json!({
        "table": table.name, "keys": keys, "scope": walk.scope.as_str(), "then": then, "own": own.map_or(&[][..], |own| own.columns),
        "wiped": wiped, "columns": columns(table), "kept": kept,
        "marks": if walk.is_marked { json!({ "redacted_at": "now" }) } else { json!({}) },
    });
    if walk.rest == Rest::Images {
        let images: Map<String, Value> = walked().map(|(table, _)| (table.name.to_owned(), columns(table))).collect();
        place["images"] = Value::Object(images);
    }

    place
}
