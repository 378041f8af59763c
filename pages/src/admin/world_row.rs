//! What the editor knows about a kind of row, and a row as it is now.

use serde_json::Value;
use uuid::Uuid;

use super::{InCampaign, Tab, form::Group};
use base::error::Result;
use db::tenancy::TenantTx;
use edge::http::resource::{self, Ref, Resource};

/// What the editor knows about a kind of row.
pub trait World: Resource {
    const TAB: Tab;
    /// Singular, plural, and the word in the path: `NPC`, `NPCs`, `npcs`.
    const ONE: &'static str;
    const MANY: &'static str;
    const PATH: &'static str;
    /// A sentence under the list's title.
    const ABOUT: &'static str;
    /// What the first row could be, in a sentence; empty for kinds with a list of their own.
    const EXAMPLE: &'static str = "";
    const GROUPS: &'static [Group];
    /// The list's columns after the name.
    const COLUMNS: &'static [&'static str];

    /// Whether rows belong to people, who may ask to have them erased.
    const IS_ERASED: bool = false;

    /// Whether rows react to the actions of characters, and have a page for their reactions.
    const REACTS: bool = false;

    /// The cells of a row's columns.
    fn cells(model: &Self::Model) -> Vec<String>;

    /// The initial values of the form for a new row.
    #[must_use]
    fn blank() -> Value {
        Value::Object(serde_json::Map::new())
    }

    /// A row's view for the form: it has names where the view has ids.
    fn form_view(_: &TenantTx, view: Value) -> impl Future<Output = Result<Value>> {
        async { Ok(view) }
    }
}

/// A row as it is now: its label, its version, and its JSON for the form.
pub struct Current {
    pub id: Uuid,
    pub label: String,
    pub version: i64,
    pub view: Value,
}

impl Current {
    /// A text member of the row.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        self.view.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl InCampaign {
    /// The present state of the row that a path names.
    ///
    /// # Errors
    /// `not_found`.
    pub(super) async fn current<W: World>(&self, tx: &TenantTx, x: &str) -> Result<Current> {
        let campaign = Ref::Id(self.campaign.id.0);
        let model = resource::find::<W>(tx, &self.caller, Some(&campaign), &Ref::parse(x)).await?;
        let stamp = W::stamp(&model);
        let (id, label, version) = (stamp.id, stamp.label.to_owned(), stamp.version);
        let view = W::form_view(tx, resource::view::<W>(model, &self.caller)?).await?;
        Ok(Current { id, label, version, view })
    }

    pub(super) async fn read_current<W: World>(&self, x: &str) -> Result<Current> {
        self.current::<W>(&self.read().await?, x).await
    }

    pub(super) fn campaign_id(&self) -> String {
        self.campaign.id.0.to_string()
    }

    pub(super) fn may_write(&self) -> bool {
        self.may(edge::caller::Scope::Write)
    }
}
