//! Lore in the editor: [`list`], [`edit`] with preview and autosave, [`bulk`].

pub mod bulk;
pub mod edit;
pub mod list;

use entity::lore as table;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Tab,
    form::{EXTENSIONS, EXTERNAL_REF, Field, Group, Kind},
    world_row::World,
};
use ai::prompt::{HeldBack, LoreReason, scope::LoreScope};
use base::error::Result;
use db::tenancy::TenantTx;
use world::{actors, lore::LoreEntries};

/// The scopes and their labels.
pub const SCOPES: &[(&str, &str)] = &[
    ("global", "Everything"),
    ("zone", "A location"),
    ("race", "A race"),
    ("profession", "A profession"),
    ("faction", "A faction"),
    ("creature", "A creature"),
    ("item", "An item"),
];

/// A number with thousands separators.
#[must_use]
pub fn grouped(number: i64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The label of a scope.
#[must_use]
pub fn scope_name(scope: table::Scope) -> &'static str {
    let word = scope.as_str();
    SCOPES.iter().find(|(value, _)| *value == word).map_or(word, |(_, name)| *name)
}

/// Why an entry is in or out, in the editor's words: `scope zone harbour` becomes "about the location harbour".
#[must_use]
pub fn reason_in_words(reason: &LoreReason) -> String {
    match reason {
        LoreReason::Scope(scope) => about(scope),
        LoreReason::ScopeEarlier(scope) => {
            format!("{}, told in an earlier turn that is still in the history", about(scope))
        }
        LoreReason::Keyword(scope) => format!("keyword: activated this turn, {}", about(scope)),
        LoreReason::OtherScope(scope) => format!("{}, which concerns nobody here", about(scope)),
        LoreReason::Secret => format!("secret: {UNKNOWING}"),
        LoreReason::HeldBack(HeldBack::Secret) => format!("secret: a key was met, but {UNKNOWING}"),
        other => other.to_string(),
    }
}

/// Why a secret is not told. The editor's field for `known_by` is called so.
const UNKNOWING: &str = "whoever answers is not under \"Known by\"";

fn about(scope: &LoreScope) -> String {
    match scope.scope {
        "" => "about anything".to_owned(),
        "global" => "about everything".to_owned(),
        "zone" => format!("about the location {}", scope.key),
        kind => format!("about the {kind} {}", scope.key),
    }
}

impl World for LoreEntries {
    const TAB: Tab = Tab::Lore;
    const ONE: &'static str = "lore entry";
    const MANY: &'static str = "Lore";
    const PATH: &'static str = "lore";
    const ABOUT: &'static str = "What is known about the world, who knows it, and when it goes into a prompt.";
    const COLUMNS: &'static [&'static str] = &[];
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/title", "Title", Kind::Line).needed(),
                Field::new("/scope", "About", Kind::Choice(SCOPES)),
                Field::new("/associated_id", "Which one", Kind::Line)
                    .hint("The name of the location, race, profession, faction, creature or item. Leave empty for everything."),
                Field::new("/tags", "Tags", Kind::Words).hint("One per line."),
                Field::new("/content", "Content", Kind::Text { rows: 16 })
                    .needed()
                    .hint("Markdown. [[Title]] links to another entry. [[Title|text]] shows other text for the link."),
            ],
        },
        Group {
            title: "When it goes into a prompt",
            is_folded: false,
            fields: &[
                Field::new("/enabled", "Enabled", Kind::Tick).hint("An entry that is not enabled never goes into a prompt."),
                Field::new(
                    "/activation",
                    "Activation",
                    Kind::Choice(&[("always", "Always"), ("keyword", "When a keyword occurs")]),
                ),
                Field::new("/keys", "Keywords", Kind::Words).hint("One per line. Required if keywords activate the entry."),
                Field::new("/secondary_keys", "Secondary keywords", Kind::Words).hint("One per line."),
                Field::new(
                    "/logic",
                    "Required secondary keywords",
                    Kind::Choice(&[
                        ("and_any", "At least one of them"),
                        ("and_all", "All of them"),
                        ("not_any", "None of them"),
                        ("not_all", "Not all of them"),
                    ]),
                ),
                Field::new("/scan_depth", "Scan depth (messages)", Kind::Number)
                    .hint("How many messages are searched for keywords, including the present action. 0 searches only the action."),
                Field::new("/priority", "Priority", Kind::Number).hint("If the prompt is full, higher priorities go first."),
            ],
        },
        Group {
            title: "Who knows it",
            is_folded: false,
            fields: &[
                Field::new("/secret", "Secret", Kind::Tick).hint("Only for the game master and those listed below."),
                Field::new("/known_by", "Known by", Kind::Words)
                    .hint("Slugs of NPCs, owners and characters, one per line."),
                Field::new("/ai_lock", "Locked", Kind::Tick).hint("The AI's tools cannot change it."),
            ],
        },
        Group {
            title: "For other programs",
            is_folded: true,
            fields: &[
                Field::new("/slug", "Slug", Kind::Line)
                    .hint("Its name in URLs and tools. Leave empty to derive it from the title."),
                EXTERNAL_REF,
                EXTENSIONS,
            ],
        },
    ];

    fn cells(_: &table::Model) -> Vec<String> {
        Vec::new()
    }

    fn blank() -> Value {
        json!({ "scope": "global", "enabled": true, "activation": "always", "logic": "and_any", "scan_depth": 2, "priority": 0 })
    }

    /// Replaces the ids of those who know it by slugs.
    async fn form_view(tx: &TenantTx, mut view: Value) -> Result<Value> {
        let ids = view.get("known_by").and_then(Value::as_array).cloned().unwrap_or_default();
        let ids: Vec<Uuid> = ids.iter().filter_map(|id| id.as_str()?.parse().ok()).collect();
        let known_by = actors::names(tx, &ids).await?;
        if let Some(members) = view.as_object_mut() {
            members.insert("known_by".to_owned(), json!(known_by));
        }
        Ok(view)
    }
}
