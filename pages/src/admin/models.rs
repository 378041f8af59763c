//! The tenant's model profiles: a list, a form for each, and what a test of one found.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use serde_json::{Value, json};

use super::{
    Editor, Frame, Tab,
    ask::AskPage,
    form::{self, Errors, Field, FormView, Group, Kind},
    saving::{Saved, Saving},
    world_form::{form_id, once, whole},
};
use crate::render_blocks;
use base::{
    clock,
    error::{Code, Error, Result},
};
use edge::{
    caller::Scope,
    http::{
        etag::Expected,
        paging::{NoFilter, Page},
        read,
    },
    model_profiles::{
        probe::{self, TestView},
        service::{self, ModelView},
    },
};

const NAME: Field = Field::new("/name", "Name", Kind::Line).needed();
const ENDPOINT: Group = Group {
    title: "Endpoint",
    is_folded: false,
    fields: &[
        Field::new("/endpoint", "Endpoint", Kind::Line)
            .hint("An OpenAI-compatible address. Leave empty for the endpoint in the settings. If you change it, enter its key again."),
        Field::new("/model", "Model", Kind::Line).hint("The provider's name for the model."),
        Field::new(
            "/reply_mode",
            "Replies",
            Kind::Choice(&[("", "as set for the tenant"), ("native", "native tool calls"), ("xml", "XML")]),
        ),
        Field::new("/context_tokens", "Context window", Kind::Number)
            .hint("In tokens. The limit of an answer leaves room for the prompt."),
    ],
};
const PARAMETERS: Group = Group {
    title: "Parameters",
    is_folded: false,
    fields: &[
        Field::new("/parameters/temperature", "Temperature", Kind::Number).hint("0 to 2."),
        Field::new("/parameters/top_p", "Top p", Kind::Number).hint("0 to 1."),
        Field::new("/parameters/max_output_tokens", "Maximum answer", Kind::Number)
            .hint("In tokens, reasoning included. Leave empty for the operator's limit."),
        Field::new("/parameters/stop", "Stop texts", Kind::Words).hint("One per line. Each of them ends the answer."),
        Field::new("/parameters/seed", "Seed", Kind::Number),
        Field::new("/parameters/presence_penalty", "Presence penalty", Kind::Number).hint("-2 to 2."),
        Field::new("/parameters/frequency_penalty", "Frequency penalty", Kind::Number).hint("-2 to 2."),
        Field::new(
            "/parameters/reasoning_effort",
            "Reasoning",
            Kind::Choice(&[
                ("", "as the model does"),
                ("none", "none"),
                ("minimal", "minimal"),
                ("low", "low"),
                ("medium", "medium"),
                ("high", "high"),
                ("xhigh", "extra high"),
            ]),
        ),
        Field::new("/parameters/extra", "Other parameters", Kind::Json { rows: 4 })
            .hint("What only this provider knows, such as {\"min_p\": 0.05}."),
    ],
};
const REST: Group = Group {
    title: "Fallbacks, prices and limits",
    is_folded: true,
    fields: &[
        Field::new("/fallbacks", "Fallbacks", Kind::Words)
            .hint("Slugs of profiles that answer when this one cannot, one per line, in their order."),
        Field::new("/prices", "Prices", Kind::Json { rows: 4 })
            .hint("Micro-units per million tokens: {\"prompt\": …, \"cached\": …, \"completion\": …}."),
        Field::new("/timeouts/first_token_ms", "Wait for the first token", Kind::Number).hint("In milliseconds."),
        Field::new("/timeouts/total_ms", "Wait for the answer", Kind::Number).hint("In milliseconds."),
        Field::new("/headers", "Headers", Kind::Json { rows: 3 })
            .hint("Sent with each request. *** stands for a stored secret and keeps it."),
        Field::new("/supports", "What works", Kind::Json { rows: 4 }).hint("As a test of this profile found it."),
    ],
};
const NEW: &[Group] = &[
    Group {
        title: "",
        is_folded: false,
        fields: &[
            NAME,
            Field::new("/slug", "Slug", Kind::Line)
                .hint("By which campaigns name the profile. Leave empty to make it from the name. It cannot be changed later."),
        ],
    },
    ENDPOINT,
    PARAMETERS,
    REST,
];
const GROUPS: &[Group] = &[Group { title: "", is_folded: false, fields: &[NAME] }, ENDPOINT, PARAMETERS, REST];

#[derive(Template)]
#[template(path = "admin/models.html", blocks = ["main"])]
struct ModelsPage {
    frame: Frame,
    models: Vec<ModelView>,
    next: Option<String>,
}
render_blocks!(ModelsPage: as_main);

#[derive(Template)]
#[template(path = "admin/model.html", blocks = ["main"])]
struct ModelPage {
    frame: Frame,
    heading: String,
    /// None for a new profile.
    stored: Option<ModelView>,
    form_id: String,
    form: FormView,
    is_conflict: bool,
    may_test: bool,
    tested: Option<TestView>,
}
render_blocks!(ModelPage: as_main);

/// The profiles.
pub async fn list(editor: Editor) -> Result<HttpResponse> {
    let query =
        if editor.request.query_string().is_empty() { "sort=created_at" } else { editor.request.query_string() };
    let page = Page::<NoFilter>::parse(query)?;
    let found = service::list(&editor.app, &editor.read().await?, &page).await?;
    editor.show(&ModelsPage {
        frame: editor.frame("Models", Tab::Models),
        models: found.items,
        next: found.next_cursor.map(|cursor| format!("/admin/models?sort=created_at&cursor={cursor}")),
    })
}

fn new_page(editor: &Editor, form_id: String, form: FormView) -> ModelPage {
    ModelPage {
        frame: editor.frame("New model profile", Tab::Models),
        heading: "New model profile".to_owned(),
        stored: None,
        form_id,
        form,
        is_conflict: false,
        may_test: false,
        tested: None,
    }
}

/// The form for a new profile.
pub async fn new(editor: Editor) -> Result<HttpResponse> {
    let form = FormView::of_row(NEW, &json!({}), false);
    editor.show(&new_page(&editor, clock::id().to_string(), form))
}

/// Creates a profile.
pub async fn create(editor: Editor) -> Result<HttpResponse> {
    let texts = form::texts_sent(NEW, &editor.form);
    let id = form_id(&editor);
    let show_again = |errors: &Errors| {
        editor.show_again(&new_page(&editor, id.clone(), FormView::over(NEW, &json!({}), &texts, errors, false)))
    };
    let mut value = match whole(NEW, &texts, json!({})) {
        Ok(value) => value,
        Err(errors) => return show_again(&errors),
    };
    let key = editor.form.text("api_key").trim();
    if let (false, Some(members)) = (key.is_empty(), value.as_object_mut()) {
        members.insert("api_key".to_owned(), key.into());
    }
    let once = once(&editor, &id, &(&texts, key));
    let made = async { service::create(&editor.app, &editor.caller, &read::typed(value)?, once.as_ref()).await };
    match made.await {
        Ok(_) => Ok(editor.redirect("/admin/models", "The model profile was created.")),
        Err(error) => show_again(&Errors::of(NEW, error)?),
    }
}

async fn stored(editor: &Editor) -> Result<(ModelView, Value)> {
    let view = service::get(&editor.app, &editor.read().await?, editor.path("x")).await?;
    let row = serde_json::to_value(&view).map_err(Error::internal)?;
    Ok((view, row))
}

fn model_page(editor: &Editor, view: ModelView, form: FormView) -> ModelPage {
    ModelPage {
        frame: editor.frame(&view.name, Tab::Models),
        heading: view.name.clone(),
        stored: Some(view),
        form_id: String::new(),
        form,
        is_conflict: false,
        may_test: editor.may(Scope::Gm),
        tested: None,
    }
}

/// The form of a profile.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    let (view, row) = stored(&editor).await?;
    let form = FormView::of_row(GROUPS, &row, false);
    editor.show(&model_page(&editor, view, form))
}

/// Saves a profile. If somebody else saved first, the user sees both versions.
pub async fn save(editor: Editor) -> Result<HttpResponse> {
    let (view, row) = stored(&editor).await?;
    let saving = Saving::of(GROUPS, &editor.form)?;
    let key = match editor.form.text("api_key").trim() {
        _ if editor.form.has("api_key_gone") => json!({ "api_key": null }),
        "" => Value::Null,
        key => json!({ "api_key": key }),
    };
    let id = view.id.to_string();
    let write = async |expected: Expected, patch: Value| {
        service::update(&editor.app, &editor.caller, &expected, &id, &patch).await.map(|_| ())
    };
    match saving.over((view.version, &row), key, write).await? {
        Saved::Done(_) => Ok(editor.redirect(&format!("/admin/models/{id}"), "The model profile was saved.")),
        Saved::Wrong(errors) => {
            let form = FormView::over(GROUPS, &row, &saving.texts, &errors, false);
            editor.show_again(&model_page(&editor, view, form))
        }
        Saved::Late => {
            let (view, row) = stored(&editor).await?;
            let form = FormView::over(GROUPS, &row, &saving.texts, &Errors::default(), true);
            let page = ModelPage { is_conflict: true, ..model_page(&editor, view, form) };
            editor.show_with(StatusCode::CONFLICT, &page)
        }
    }
}

/// Tries the stored profile and shows what works.
pub async fn test(editor: Editor) -> Result<HttpResponse> {
    let (view, row) = stored(&editor).await?;
    let (slug, endpoint) = service::endpoint(&editor.app, &editor.caller, editor.path("x")).await?;
    let tested = probe::test(&editor.app, &editor.caller, &slug, &endpoint).await?;
    let form = FormView::of_row(GROUPS, &row, false);
    editor.show(&ModelPage { tested: Some(tested), ..model_page(&editor, view, form) })
}

async fn ask_page(editor: &Editor, problem: Option<String>) -> Result<AskPage> {
    let (view, _) = stored(editor).await?;
    Ok(AskPage {
        frame: editor.frame("Delete a model profile", Tab::Models),
        question: format!("Delete {}?", view.name),
        quoted: None,
        then: "Its key is deleted with it. It cannot be restored.".to_owned(),
        yes: "Delete",
        no: "Keep it",
        back: format!("/admin/models/{}", view.id),
        version: Some(view.version),
        problem,
        repeat: None,
        forks: false,
        rows: Vec::new(),
        before: None,
    })
}

/// Asks whether to delete a profile.
pub async fn ask(editor: Editor) -> Result<HttpResponse> {
    editor.show(&ask_page(&editor, None).await?)
}

/// Deletes a profile that nothing names.
pub async fn delete(editor: Editor) -> Result<HttpResponse> {
    let expected = Expected::version(editor.form.version().unwrap_or(0));
    match service::delete(&editor.app, &editor.caller, &expected, editor.path("x")).await {
        Ok(_) => Ok(editor.redirect("/admin/models", "The model profile was deleted.")),
        Err(error) if matches!(error.code, Code::PreconditionFailed | Code::Referenced) => {
            let problem = match error.code {
                Code::Referenced => error.detail.clone(),
                _ => "Somebody changed this profile after you opened it. The page now shows its present state."
                    .to_owned(),
            };
            editor.show_with(StatusCode::CONFLICT, &ask_page(&editor, Some(problem)).await?)
        }
        Err(error) => Err(error),
    }
}
