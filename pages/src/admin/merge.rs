//! Merges two concurrent edits: what each user changed since the version that both began with, field by field. Nothing
//! is written before the user has checked the result.

use std::time::Instant;

use actix_web::{HttpResponse, http::StatusCode, web};
use askama::Template;
use serde_json::Value;
use uuid::Uuid;

use super::{
    Frame, InCampaign, Tab,
    diff::{self, Differ, Piece},
    form::{self, Errors, FormView, Group, Kind, Texts},
    world_row::{Current, World},
};
use crate::render_blocks;
use base::error::{Error, Result};
use db::tenancy::TenantTx;
use edge::{caller::Scope, http::resource};
use world::revisions::{self, RevisionParams};

/// A field that both users changed differently.
struct Contested {
    name: String,
    label: &'static str,
    /// The difference from the common version to the stored one.
    theirs: Vec<Piece>,
    /// The difference from the common version to the submitted one.
    mine: Vec<Piece>,
    /// Whether the field below contains changes of both, as far as they do not touch the same lines.
    is_mixed: bool,
}

#[derive(Template)]
#[template(path = "admin/merge.html", blocks = ["main"])]
struct MergePage {
    frame: Frame,
    heading: String,
    action: String,
    version: i64,
    /// Who saved meanwhile, if the journal has the name.
    who: Option<String>,
    /// Fields that only the other user changed. Their text is taken.
    taken: Vec<&'static str>,
    contested: Vec<Contested>,
    form: FormView,
    /// The label that the form was loaded with, for kinds that ask about renames.
    was_label: String,
}
render_blocks!(MergePage: as_main);

/// The row whose versions are merged.
pub struct Of<'a> {
    pub tab: Tab,
    pub table: &'static str,
    pub id: Uuid,
    pub label: &'a str,
    /// The row's address.
    pub path: String,
    /// The version that is stored now, and its JSON for the form.
    pub version: i64,
    pub view: &'a Value,
    pub groups: &'static [Group],
    /// The version that both users began with, if the journal still has it.
    pub base: Option<Texts>,
}

/// The page with both versions merged.
///
/// # Errors
/// Database errors.
pub async fn page<W: World>(at: &InCampaign, row: &Current, mine: &Texts, version: i64) -> Result<HttpResponse> {
    let of = Of {
        tab: W::TAB,
        table: W::TABLE,
        id: row.id,
        label: &row.label,
        path: format!("{}/{}", at.url(W::PATH), row.id),
        version: row.version,
        view: &row.view,
        groups: W::GROUPS,
        base: base::<W>(at, &at.read().await?, row, version).await?,
    };
    page_of(at, of, mine).await
}

/// The same for any row.
///
/// # Errors
/// Database errors.
pub async fn page_of(at: &InCampaign, of: Of<'_>, mine: &Texts) -> Result<HttpResponse> {
    let who = who(at, &of).await?;
    let Of { groups, base, view, .. } = of;
    let (mine, theirs) = (mine.clone(), form::texts_of(groups, view));
    // Comparing texts takes long, so it does not run on a thread that answers requests.
    let put = web::block(move || put_together(groups, base.as_ref(), &mine, &theirs));
    let Merged { texts, taken, contested } = put.await.map_err(Error::internal)?;
    let page = MergePage {
        frame: at.frame(&format!("Merge {}", of.label), of.tab),
        heading: of.label.to_owned(),
        action: of.path,
        version: of.version,
        who,
        taken,
        contested,
        form: FormView::over(groups, view, &texts, &Errors::default(), false),
        was_label: at.form.get("was_label").unwrap_or(of.label).to_owned(),
    };
    at.show_with(StatusCode::CONFLICT, &page)
}

struct Merged {
    texts: Texts,
    taken: Vec<&'static str>,
    contested: Vec<Contested>,
}

/// Merges field by field: a change by only one user is taken, texts are merged by lines, and in all other fields mine
/// stays. Without the common version, every difference is contested.
fn put_together(groups: &'static [Group], base: Option<&Texts>, mine: &Texts, theirs: &Texts) -> Merged {
    let mut merged = Merged { texts: Texts::new(), taken: Vec::new(), contested: Vec::new() };
    let differ = Differ::begun(Instant::now());
    for field in groups.iter().flat_map(|group| group.fields) {
        let name = field.name();
        // A field that was not sent keeps the stored value.
        let Some(my) = mine.get(&name) else { continue };
        let text = |of: &Texts| of.get(&name).cloned().unwrap_or_default();
        let (their, was) = (text(theirs), base.map(text));
        let put = if *my == their || was.as_ref() == Some(&their) {
            my.clone()
        } else if was.as_ref() == Some(my) {
            merged.taken.push(field.label);
            their
        } else {
            let was = was.unwrap_or_default();
            let is_text = matches!(field.kind, Kind::Text { .. });
            let (both, touch) = if is_text { diff::merged(&was, my, &their) } else { (my.clone(), true) };
            merged.contested.push(Contested {
                label: field.label,
                theirs: differ.words(&was, &their),
                mine: differ.words(&was, my),
                is_mixed: is_text && (!touch || both != *my),
                name: name.clone(),
            });
            both
        };
        merged.texts.insert(name, put);
    }
    merged
}

/// The version that both users began with, if the journal still has it.
async fn base<W: World>(at: &InCampaign, tx: &TenantTx, row: &Current, version: i64) -> Result<Option<Texts>> {
    let Some(model) = revisions::at_version::<W>(tx, at.campaign.id.0, row.id, version).await? else {
        return Ok(None);
    };
    let view = W::form_view(tx, resource::view::<W>(model, &at.caller)?).await?;
    Ok(Some(form::texts_of(W::GROUPS, &view)))
}

/// Who changed the row last, for users who may read the journal.
async fn who(at: &InCampaign, of: &Of<'_>) -> Result<Option<String>> {
    if !at.may(Scope::Gm) {
        return Ok(None);
    }
    let asked = RevisionParams { limit: 1, before: None };
    let page = revisions::page(&at.read().await?, at.campaign.id.0, of.table, of.id, &asked).await?;
    Ok(page.items.into_iter().next().and_then(|revision| revision.actor_name))
}
