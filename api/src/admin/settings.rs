//! The tenant's settings. Limits are the operator's, and only shown.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::{Value, json};

use super::{
    Editor, Frame, Tab,
    form::{Errors, Field, FormView, Group, Kind},
    saving::{Saved, Saving},
};
use crate::{
    error::Result,
    http::etag::Expected,
    shown,
    tenants::{change, service},
};

const GROUPS: &[Group] = &[
    Group { title: "", is_folded: false, fields: &[Field::new("/name", "Name", Kind::Line).needed()] },
    Group {
        title: "Switches",
        is_folded: false,
        fields: &[
            Field::new("/settings/features/llm", "AI turns", Kind::Tick),
            Field::new("/settings/features/planner", "The planner", Kind::Tick),
            Field::new("/settings/features/llm_visible", "The planner acts, and not only logs", Kind::Tick),
            Field::new("/settings/second_factor_required", "Users need a second factor", Kind::Tick),
        ],
    },
    Group {
        title: "Model",
        is_folded: false,
        fields: &[
            Field::new("/settings/llm/endpoint", "Endpoint", Kind::Line).hint("The operator's if left empty. Another endpoint needs its key anew."),
            Field::new("/settings/llm/model", "Model", Kind::Line).hint("At the operator's endpoint one that the operator offers."),
            Field::new(
                "/settings/llm/reply_mode",
                "Replies",
                Kind::Choice(&[("", "as the operator set"), ("native", "native tool calls"), ("xml", "XML")]),
            ),
            Field::new("/settings/llm/prices", "Prices", Kind::Json { rows: 4 })
                .hint("Micro-units per million tokens: {\"prompt\": …, \"cached\": …, \"completion\": …}. Without them usage has no cost."),
        ],
    },
    Group {
        title: "Keeping",
        is_folded: false,
        fields: &[
            Field::new("/settings/journal_retention_days", "Days that the journal is kept", Kind::Number).hint("For ever if left empty."),
            Field::new("/settings/turn_retention_days", "Days that turns are kept", Kind::Number).hint("30 if left empty."),
        ],
    },
    Group {
        title: "For other programs",
        is_folded: true,
        fields: &[
            Field::new("/origins", "Origins", Kind::Words).hint("Pages that may call the API from a browser, one a line: https://play.example.org."),
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
shown!(SettingsPage: as_main);

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

/// Saves it. Who was slower than somebody else sees both versions.
pub async fn save(editor: Editor) -> Result<HttpResponse> {
    let (version, row) = stored(&editor).await?;
    let saving = Saving::of(GROUPS, &editor.form)?;
    let write = async |expected: Expected, patch: Value| {
        change::apply(&editor.app, &editor.caller, &expected, &patch).await.map(|_| ())
    };
    match saving.over((version, &row), key_sent(&editor), write).await? {
        Saved::Done(_) => Ok(editor.done("/admin/settings", "The settings were saved.")),
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

/// What becomes of the provider's key, which is no field since it is never shown.
fn key_sent(editor: &Editor) -> Value {
    match editor.form.text("llm_api_key").trim() {
        _ if editor.form.has("llm_api_key_gone") => json!({ "settings": { "llm": { "api_key": null } } }),
        "" => Value::Null,
        key => json!({ "settings": { "llm": { "api_key": key } } }),
    }
}
