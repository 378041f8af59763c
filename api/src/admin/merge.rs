//! Two people wrote at once: what each changed since the version both began with, put together field by field. Nothing is
//! written before somebody has looked at it.

use std::time::Instant;

use actix_web::{HttpResponse, http::StatusCode, web};
use askama::Template;

use super::{
    Frame, InCampaign,
    diff::{self, Differ, Piece},
    form::{self, Errors, FormView, Group, Kind, Texts},
    world::{Current, World},
};
use crate::{
    auth::Scope,
    error::{Error, Result},
    http::resource,
    revisions::{self, RevisionParams},
    shown,
    tenancy::TenantTx,
};

/// A field that both changed, and differently.
struct Contested {
    name: String,
    label: &'static str,
    /// From the version both began with to what is stored now.
    theirs: Vec<Piece>,
    /// And to what was written here.
    mine: Vec<Piece>,
    /// Whether the field below holds changes of both, as far as they do not touch the same lines.
    is_mixed: bool,
}

#[derive(Template)]
#[template(path = "admin/merge.html", blocks = ["main"])]
struct MergePage {
    frame: Frame,
    heading: String,
    action: String,
    version: i64,
    /// Who wrote meanwhile, if the journal says so.
    who: Option<String>,
    /// Fields that only they changed, taken over.
    taken: Vec<&'static str>,
    contested: Vec<Contested>,
    form: FormView,
    /// What the page was loaded with, for a kind that asks about renames.
    was_label: String,
}
shown!(MergePage: as_main);

/// The page with both versions put together, over the stored one.
///
/// # Errors
/// Those of the database.
pub async fn page<W: World>(at: &InCampaign, row: &Current, mine: &Texts, version: i64) -> Result<HttpResponse> {
    let tx = at.read().await?;
    let base = base::<W>(at, &tx, row, version).await?;
    let who = who::<W>(at, &tx, row).await?;
    drop(tx);
    let (mine, theirs) = (mine.clone(), form::texts_of(W::GROUPS, &row.view));
    // Comparing texts takes long: not on a thread that answers requests.
    let put = web::block(move || put_together(W::GROUPS, base.as_ref(), &mine, &theirs));
    let Merged { texts, taken, contested } = put.await.map_err(Error::internal)?;
    let page = MergePage {
        frame: at.frame(&format!("Merge {}", row.label), W::TAB),
        heading: row.label.clone(),
        action: format!("{}/{}", at.url(W::PATH), row.id),
        version: row.version,
        who,
        taken,
        contested,
        form: FormView::over(W::GROUPS, &row.view, &texts, &Errors::default(), false),
        was_label: at.form.get("was_label").unwrap_or(&row.label).to_owned(),
    };
    at.show_with(StatusCode::CONFLICT, &page)
}

struct Merged {
    texts: Texts,
    taken: Vec<&'static str>,
    contested: Vec<Contested>,
}

/// Field by field: what only one changed is taken, texts are put together by their lines, and of all else mine stays. Without the
/// version both began with, whatever differs is contested.
fn put_together(groups: &'static [Group], base: Option<&Texts>, mine: &Texts, theirs: &Texts) -> Merged {
    let mut merged = Merged { texts: Texts::new(), taken: Vec::new(), contested: Vec::new() };
    let differ = Differ::begun(Instant::now());
    for field in groups.iter().flat_map(|group| group.fields) {
        let name = field.name();
        // What was left alone is as it is stored.
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

/// The version both began with, if the journal has it still.
async fn base<W: World>(at: &InCampaign, tx: &TenantTx, row: &Current, version: i64) -> Result<Option<Texts>> {
    let Some(model) = revisions::at_version::<W>(tx, at.campaign.id.0, row.id, version).await? else {
        return Ok(None);
    };
    let view = W::written(tx, resource::view::<W>(model, &at.caller)?).await?;
    Ok(Some(form::texts_of(W::GROUPS, &view)))
}

/// Who wrote last, for those who may read the journal.
async fn who<W: World>(at: &InCampaign, tx: &TenantTx, row: &Current) -> Result<Option<String>> {
    if !at.may(Scope::Gm) {
        return Ok(None);
    }
    let asked = RevisionParams { limit: 1, before: None };
    let page = revisions::page(tx, at.campaign.id.0, W::TABLE, row.id, &asked).await?;
    Ok(page.items.into_iter().next().and_then(|revision| revision.actor_name))
}
