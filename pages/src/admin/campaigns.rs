//! The tenant's campaigns: listing, creating, editing and deleting them.

use actix_web::{HttpResponse, http::StatusCode};
use askama::Template;
use entity::campaign;
use serde_json::{Value, json};

use super::{
    Editor, Frame, InCampaign, Tab,
    answer::see,
    ask::AskPage,
    editor::campaign_url,
    form::{self, EXTENSIONS, EXTERNAL_REF, Errors, Field, FormView, Group, Kind, Texts},
    list::moment,
    saving::{Saved, Saving},
    world_form::{FormPage, decision, form_id, once, pending, whole},
};
use crate::render_blocks;
use base::{
    clock,
    error::{Code, Result},
};
use edge::{
    caller::Scope,
    http::{
        self, Answer,
        etag::Expected,
        paging::{NoFilter, Page},
        read::typed,
        resource::{self, Ref},
    },
};
use world::{
    campaigns::{Campaigns, Named, models},
    sample,
};

/// The names of all settings, as `world::campaigns::settings` knows them.
const SETTINGS: &str = "Known settings: models (the model profile for each task), clean_answers (what is removed from the texts of \
    models: markup, player_lines, role_prefixes, unfinished_sentences), planner_commands, prompt_budgets, prompt_templates (which sections a prompt has, for npc, owner and gm), \
    memories_about_others, gm_encounters, dead_speak (whether the dead talk and act), tool_prices. For reactions: significance_scores (what a type of action counts \
    for), \
    reaction_cooldown_seconds, reactions_per_day_max, reactions_at_once_max, reply_expiry_seconds (how long a reply waits for its \
    player), withheld_reverts (whether a reply that nobody heard is undone), report_actions (what counts without a report of a frontend).";

const GROUPS: &[Group] = &[
    Group {
        title: "",
        is_folded: false,
        fields: &[
            Field::new("/name", "Name", Kind::Line).needed(),
            Field::new("/slug", "Slug", Kind::Line).hint("Its name in URLs. Leave empty to derive it from the name."),
            Field::new("/game_time", "Game time", Kind::Line)
                .hint("As you would say it, such as: first evening of the autumn fair."),
            Field::new("/description", "Description", Kind::Text { rows: 5 })
                .hint("Game masters of sessions read this text."),
            Field::new("/instructions", "Instructions for all models", Kind::Text { rows: 5 }).hint(
                "Tone, style, length, language, lines and veils. Every model of the campaign follows them, as far as the \
                 server's own rules allow.",
            ),
        ],
    },
    Group {
        title: "Settings and other programs",
        is_folded: true,
        fields: &[Field::new("/settings", "Settings", Kind::Json { rows: 5 }).hint(SETTINGS), EXTERNAL_REF, EXTENSIONS],
    },
];

#[derive(Template)]
#[template(path = "admin/campaigns.html", blocks = ["main", "rows"])]
struct CampaignsPage {
    frame: Frame,
    q: String,
    campaigns: Vec<Card>,
    next: Option<String>,
    form_id: String,
}
render_blocks!(CampaignsPage: as_main, "rows" => as_rows);

struct Card {
    path: String,
    name: String,
    description: String,
    slug: String,
    changed: String,
}

/// The start page: redirects to the campaigns.
pub async fn index(_: Editor) -> HttpResponse {
    see("/admin/campaigns")
}

/// The list.
pub async fn list(editor: Editor) -> Result<HttpResponse> {
    let page = Page::<NoFilter>::parse(editor.request.query_string())?;
    let tx = editor.read().await?;
    let found = resource::find_page::<Campaigns>(&tx, &editor.caller, None, &page).await?;
    let card = |campaign: campaign::Model| Card {
        path: campaign_url(&campaign, ""),
        name: campaign.name,
        description: campaign.description,
        slug: campaign.slug,
        changed: moment(campaign.updated_at),
    };
    let q = page.q.clone().unwrap_or_default();
    let next = found.next_cursor.map(|cursor| {
        let query = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("cursor", &cursor)
            .append_pair("q", &q)
            .finish();
        format!("/admin/campaigns?{query}")
    });
    editor.show(&CampaignsPage {
        frame: editor.frame("Campaigns", Tab::Campaigns),
        q,
        campaigns: found.items.into_iter().map(card).collect(),
        next,
        form_id: clock::id().to_string(),
    })
}

/// Creates a small world to try.
pub async fn sample(editor: Editor) -> Result<HttpResponse> {
    let key = once(&editor, &form_id(&editor), &"sample");
    let made = http::write(&editor.app, &editor.caller, key.as_ref(), async |tx| {
        let campaign = sample::write(tx, &editor.caller, None).await?;
        Ok(Answer::ok(campaign))
    });
    let made = made.await?.part(|campaign| Named { slug: campaign.slug })?;
    Ok(editor.redirect(&path_of(&made.slug), "The small world is ready. Ask somebody something in the prompt lab."))
}

fn new_page(editor: &Editor, form_id: String, texts: &Texts, errors: &Errors) -> FormPage {
    FormPage {
        frame: editor.frame("New campaign", Tab::Campaigns),
        heading: "New campaign".to_owned(),
        action: "/admin/campaigns".to_owned(),
        back: "/admin/campaigns".to_owned(),
        many: "Campaigns".to_owned(),
        version: None,
        form_id: Some(form_id),
        delete_path: None,
        form: FormView::new(GROUPS, texts, errors, None, false),
        is_conflict: false,
        pending: Vec::new(),
        pending_path: String::new(),
        actors_path: None,
    }
}

/// The form for a new campaign.
pub async fn new(editor: Editor) -> Result<HttpResponse> {
    editor.show(&new_page(&editor, clock::id().to_string(), &Texts::new(), &Errors::default()))
}

/// Creates a campaign.
pub async fn create(editor: Editor) -> Result<HttpResponse> {
    let texts = form::texts_sent(GROUPS, &editor.form);
    let form_id = form_id(&editor);
    let show_again = |errors: &Errors| editor.show_again(&new_page(&editor, form_id.clone(), &texts, errors));
    let value = match whole(GROUPS, &texts, json!({})) {
        Ok(value) => value,
        Err(errors) => return show_again(&errors),
    };
    let made = async {
        models::check(&editor.app, &editor.caller, value.pointer("/settings/models")).await?;
        let once = once(&editor, &form_id, &texts);
        let sent = (&typed(value)?, once.as_ref());
        let made = resource::create::<Campaigns>(&editor.app, &editor.caller, None, "/admin/c", sent).await?;
        made.part(|shown| Named { slug: shown.row.slug })
    };
    match made.await {
        Ok(made) => Ok(editor.redirect(&path_of(&made.slug), "The campaign was created.")),
        Err(error) => show_again(&Errors::of(GROUPS, error)?),
    }
}

/// The path of a campaign: a request may have changed its slug.
fn path_of(slug: &str) -> String {
    format!("/admin/c/{slug}")
}

fn edit_page(at: &InCampaign, version: i64, form: FormView, is_conflict: bool) -> FormPage {
    FormPage {
        frame: at.frame("Edit the campaign", Tab::Home),
        heading: at.campaign.name.clone(),
        action: at.url("edit"),
        back: at.url(""),
        many: "Overview".to_owned(),
        version: Some(version),
        form_id: None,
        delete_path: at.may(Scope::Write).then(|| at.url("delete")),
        form,
        is_conflict,
        pending: serde_json::to_value(&at.campaign.pending_instructions)
            .map(|draft| pending(&json!({ "pending_instructions": draft })))
            .unwrap_or_default(),
        pending_path: at.url("instructions"),
        actors_path: None,
    }
}

/// The form of a campaign.
pub async fn edit(at: InCampaign) -> Result<HttpResponse> {
    let row = resource::view::<Campaigns>(at.campaign.clone(), &at.caller)?;
    at.show(&edit_page(&at, at.campaign.version, FormView::of_row(GROUPS, &row, false), false))
}

/// Changes a campaign. If somebody else changed it first, the user sees both versions.
pub async fn save(at: InCampaign) -> Result<HttpResponse> {
    let saving = Saving::of(GROUPS, &at.form)?;
    let id = at.campaign.id.0.to_string();
    let row = resource::view::<Campaigns>(at.campaign.clone(), &at.caller)?;
    let write = async |expected: Expected, patch: Value| {
        models::check(&at.app, &at.caller, patch.pointer("/settings/models")).await?;
        resource::change::<Campaigns>(&at.app, &at.caller, &expected, None, &id, patch).await
    };
    match saving.over((at.campaign.version, &row), Value::Null, write).await? {
        Saved::Done(Some(saved)) => Ok(at.redirect(&path_of(&saved.slug), "The campaign was saved.")),
        Saved::Done(None) => Ok(at.redirect(&at.url(""), "The campaign was saved.")),
        Saved::Wrong(errors) => {
            let form = FormView::over(GROUPS, &row, &saving.texts, &errors, false);
            at.show_again(&edit_page(&at, at.campaign.version, form, false))
        }
        Saved::Late => {
            let (tx, named) = (at.read().await?, Ref::Id(at.campaign.id.0));
            let now = resource::find::<Campaigns>(&tx, &at.caller, None, &named).await?;
            let (version, row) = (now.version, resource::view::<Campaigns>(now, &at.caller)?);
            let form = FormView::over(GROUPS, &row, &saving.texts, &Errors::default(), true);
            at.show_with(StatusCode::CONFLICT, &edit_page(&at, version, form, true))
        }
    }
}

/// Accepts the campaign's draft or throws it away.
pub async fn decide(at: InCampaign) -> Result<HttpResponse> {
    let id = at.campaign.id.0.to_string();
    let row = resource::view::<Campaigns>(at.campaign.clone(), &at.caller)?;
    let decided = decision(&at, &row, async |expected: Expected, patch: Value| {
        resource::change::<Campaigns>(&at.app, &at.caller, &expected, None, &id, patch).await
    });
    let notice = decided.await?;
    Ok(at.redirect(&at.url("edit"), &notice))
}

fn delete_page(at: &InCampaign, problem: Option<String>) -> AskPage {
    AskPage {
        frame: at.frame(&format!("Delete {}", at.campaign.name), Tab::Home),
        question: format!("Delete {}?", at.campaign.name),
        quoted: None,
        then: "This deletes the campaign with everything in it, including its history. It cannot be restored."
            .to_owned(),
        rows: Vec::new(),
        before: at.may(Scope::Gm).then(|| (at.url("exchange/campaign.json"), "Export it first")),
        yes: "Delete",
        no: "Keep it",
        back: at.url(""),
        version: Some(at.campaign.version),
        repeat: Some(at.campaign.slug.clone()),
        forks: false,
        problem,
    }
}

/// Asks whether to delete the campaign.
pub async fn ask(at: InCampaign) -> Result<HttpResponse> {
    at.show(&delete_page(&at, None))
}

/// Deletes the campaign and everything in it, if the user typed its slug.
pub async fn delete(at: InCampaign) -> Result<HttpResponse> {
    if at.form.text("repeat").trim() != at.campaign.slug {
        let problem = format!("Type {} to delete it.", at.campaign.slug);
        return at.show_again(&delete_page(&at, Some(problem)));
    }
    let expected = Expected::version(at.form.version().unwrap_or(0));
    let id = at.campaign.id.0.to_string();
    match resource::remove::<Campaigns>(&at.app, &at.caller, &expected, None, &id).await {
        Ok(_) => Ok(at.redirect("/admin/campaigns", &format!("The campaign {} was deleted.", at.campaign.name))),
        Err(error) if matches!(error.code, Code::PreconditionFailed | Code::Referenced | Code::Conflict) => {
            at.show_with(StatusCode::CONFLICT, &delete_page(&at, Some(error.detail.clone())))
        }
        Err(error) => Err(error),
    }
}
