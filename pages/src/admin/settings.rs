//! The tenant's settings. The operator sets the limits; the page only shows them.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::{Value, json};

use super::{
    Editor, Frame, Tab,
    form::{Errors, Field, FormView, Group, Kind},
    saving::{Saved, Saving},
};
use crate::render_blocks;
use base::error::Result;
use edge::{
    http::etag::Expected,
    tenant_settings::{change, service},
};

const GROUPS: &[Group] = &[
    Group { title: "", is_folded: false, fields: &[Field::new("/name", "Name", Kind::Line).needed()] },
    Group {
        title: "Switches",
        is_folded: false,
        fields: &[
            Field::new("/settings/features/llm", "AI turns", Kind::Tick),
            Field::new("/settings/features/planner", "The planner", Kind::Tick),
            Field::new("/settings/features/llm_visible", "The planner executes its plans instead of only logging them", Kind::Tick),
            Field::new("/settings/second_factor_required", "Users need a second factor", Kind::Tick),
        ],
    },
    Group {
        title: "Model",
        is_folded: false,
        fields: &[
            Field::new("/settings/llm/endpoint", "Endpoint", Kind::Line).hint("Leave empty for the operator's endpoint. If you change the endpoint, enter its key again."),
            Field::new("/settings/llm/model", "Model", Kind::Line).hint("At the operator's endpoint, a model that the operator offers."),
            Field::new(
                "/settings/llm/reply_mode",
                "Replies",
                Kind::Choice(&[("", "as set by the operator"), ("native", "native tool calls"), ("xml", "XML")]),
            ),
            Field::new("/settings/llm/prices", "Prices", Kind::Json { rows: 4 })
                .hint("Micro-units per million tokens: {\"prompt\": …, \"cached\": …, \"completion\": …}. Without prices, usage has no cost."),
            Field::new("/settings/models", "Model profiles", Kind::Json { rows: 3 })
                .hint("By task, where a campaign names none: {\"npc\": \"storyteller\"}. Tasks: npc, owner, gm, classify, narrate, plan, extract."),
        ],
    },
    Group {
        title: "Retention",
        is_folded: false,
        fields: &[
            Field::new("/settings/journal_retention_days", "Days to keep the journal", Kind::Number).hint("Leave empty to keep it forever."),
            Field::new("/settings/turn_retention_days", "Days to keep turns", Kind::Number).hint("Leave empty for 30."),
        ],
    },
    Group {
        title: "For other programs",
        is_folded: true,
        fields: &[
            Field::new("/origins", "Origins", Kind::Words).hint("Websites that may call the API from a browser, one per line, such as https://play.example.org."),
            Field::new("/settings/extensions", "Extensions", Kind::Json { rows: 3 }),
        ],
    },
];

#[derive(Template)]
#[template(path = "admin/settings.html", blocks = ["main"])]
struct SettingsPage {
    frame: Frame,
    version: i64,
    form: FormView,
    has_key: bool,
    limits: Vec<(String, String)>,
    is_conflict: bool,
}
render_blocks!(SettingsPage: as_main);

async fn stored(editor: &Editor) -> Result<(i64, Value)> {
    service::view(&editor.read().await?, false).await
}

fn settings_page(editor: &Editor, version: i64, row: &Value, form: FormView, is_conflict: bool) -> SettingsPage {
    let limits = row["limits"].as_object().into_iter().flatten().map(|(name, value)| {
        let value = if value.as_u64() == Some(0) { "no limit".to_owned() } else { value.to_string() };
        (name.replace('_', " "), value)
    });
    SettingsPage {
        frame: editor.frame("Settings", Tab::Settings),
        version,
        form,
        has_key: row["has_llm_api_key"] == Value::Bool(true),
        limits: limits.collect(),
        is_conflict,
    }
}

/// The form.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    let (version, row) = stored(&editor).await?;
    let form = FormView::of_row(GROUPS, &row, false);
    editor.show(&settings_page(&editor, version, &row, form, false))
}

/// Saves the settings. If somebody else saved first, the user sees both versions.
pub async fn save(editor: Editor) -> Result<HttpResponse> {
    let (version, row) = stored(&editor).await?;
    let saving = Saving::of(GROUPS, &editor.form)?;
    let write = async |expected: Expected, patch: Value| {
        change::apply(&editor.app, &editor.caller, &expected, &patch).await.map(|_| ())
    };
    match saving.over((version, &row), key_sent(&editor), write).await? {
        Saved::Done(_) => Ok(editor.redirect("/admin/settings", "The settings were saved.")),
        Saved::Wrong(errors) => {
            let form = FormView::over(GROUPS, &row, &saving.texts, &errors, false);
            editor.show_again(&settings_page(&editor, version, &row, form, false))
        }
        Saved::Late => {
            let (version, row) = stored(&editor).await?;
            let form = FormView::over(GROUPS, &row, &saving.texts, &Errors::default(), true);
            editor.show_with(StatusCode::CONFLICT, &settings_page(&editor, version, &row, form, true))
        }
    }
}

/// The change to the provider's key. It is not a normal field, because it is never shown.
fn key_sent(editor: &Editor) -> Value {
    match editor.form.text("llm_api_key").trim() {
        _ if editor.form.has("llm_api_key_gone") => json!({ "settings": { "llm": { "api_key": null } } }),
        "" => Value::Null,
        key => json!({ "settings": { "llm": { "api_key": key } } }),
    }
}
