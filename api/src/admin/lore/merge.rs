//! Two people wrote at once: what each changed since the version both began with, put together field by field. Nothing is
//! written before somebody has looked at it.

use askama::Template;
use serde_json::{Value, json};

use super::edit::{Stored, sees_journal};
use crate::{
    actors,
    admin::{
        Frame, InCampaign, Tab,
        diff::{self, Piece},
        form::{self, Errors, FormView, Kind, Texts},
        submitted::Submitted,
        world::World,
    },
    error::Result,
    http::resource::Resource,
    lore::LoreEntries,
    revisions::{self, RevisionParams},
    shown,
    tenancy::TenantTx,
};

/// A field that both changed, and differently.
pub struct Contested {
    pub name: String,
    pub label: &'static str,
    /// From the version both began with to what is stored now.
    pub theirs: Vec<Piece>,
    /// And to what was written here.
    pub mine: Vec<Piece>,
    /// Whether the field below holds changes of both, as far as they do not touch the same lines.
    pub is_mixed: bool,
}

#[derive(Template)]
#[template(path = "admin/lore-merge.html", blocks = ["main"])]
pub struct MergePage {
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
}
shown!(MergePage: as_main);

/// Both versions put together, over the stored one.
///
/// # Errors
/// Those of the database.
pub async fn page(at: &InCampaign, tx: &TenantTx, row: &Stored, mine: &Texts, version: i64) -> Result<MergePage> {
    let theirs = form::texts_of(LoreEntries::GROUPS, &row.view);
    let base = base(at, tx, row, version).await?.map(|view| form::texts_of(LoreEntries::GROUPS, &view));
    let mut texts = Texts::new();
    let (mut taken, mut contested) = (Vec::new(), Vec::new());
    for field in LoreEntries::GROUPS.iter().flat_map(|group| group.fields) {
        let name = field.name();
        let text = |of: &Texts| of.get(&name).cloned().unwrap_or_default();
        let (my, their) = (text(mine), text(&theirs));
        // Without the version both began with, whatever differs is contested.
        let was = base.as_ref().map(text);
        let put = if my == their || was.as_ref() == Some(&their) {
            my
        } else if was.as_ref() == Some(&my) {
            taken.push(field.label);
            their
        } else {
            let was = was.unwrap_or_default();
            let (both, touch) = match field.kind {
                Kind::Text { .. } => diff::merged(&was, &my, &their),
                _ => (my.clone(), true),
            };
            contested.push(Contested {
                label: field.label,
                theirs: diff::words(&was, &their),
                mine: diff::words(&was, &my),
                is_mixed: matches!(field.kind, Kind::Text { .. }) && (!touch || both != my),
                name: name.clone(),
            });
            both
        };
        texts.insert(name, put);
    }
    Ok(MergePage {
        frame: at.frame(&format!("Merge {}", row.entry.title), Tab::Lore),
        heading: row.entry.title.clone(),
        action: format!("{}/{}", at.url("lore"), row.entry.id),
        version: row.entry.version,
        who: who(at, tx, row).await?,
        taken,
        contested,
        form: FormView::new(LoreEntries::GROUPS, &texts, &Errors::default(), None, false),
    })
}

/// The version both began with, if the journal has it still.
async fn base(at: &InCampaign, tx: &TenantTx, row: &Stored, version: i64) -> Result<Option<Value>> {
    let campaign = at.campaign.id.0;
    let Some(mut view) = revisions::at_version(tx, campaign, LoreEntries::TABLE, row.entry.id.0, version).await? else {
        return Ok(None);
    };
    let ids = view.get("known_by").and_then(Value::as_array).cloned().unwrap_or_default();
    let ids: Vec<uuid::Uuid> = ids.iter().filter_map(|id| id.as_str()?.parse().ok()).collect();
    let known_by = actors::names(tx, &ids).await?;
    if let Some(members) = view.as_object_mut() {
        members.insert("known_by".to_owned(), json!(known_by));
    }
    Ok(Some(view))
}

async fn who(at: &InCampaign, tx: &TenantTx, row: &Stored) -> Result<Option<String>> {
    if !sees_journal(&at.caller) {
        return Ok(None);
    }
    let asked = RevisionParams { limit: 1, before: None };
    let page = revisions::page(tx, at.campaign.id.0, LoreEntries::TABLE, row.entry.id.0, &asked).await?;
    Ok(page.items.into_iter().next().and_then(|revision| revision.actor_name))
}

/// Puts what is stored in place of what was written, where somebody chose that.
pub fn take_theirs(form: &Submitted, texts: &mut Texts, stored: &Value) {
    let theirs = form::texts_of(LoreEntries::GROUPS, stored);
    for (name, text) in texts.iter_mut() {
        if form.text(&format!("use-{name}")) == "theirs"
            && let Some(their) = theirs.get(name)
        {
            text.clone_from(their);
        }
    }
}
