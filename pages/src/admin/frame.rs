//! What surrounds every page: the navigation, the signed-in user, and the message about the last action.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use entity::campaign;

use super::{
    editor::{Editor, InCampaign, MESSAGE_COOKIE, REFUSAL, campaign_url},
    submitted::TOKEN_FIELD,
    words,
};
use crate::model::Model;
use edge::caller::Scope;

/// The items of the navigation. Each page names its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// None of them.
    Elsewhere,
    Campaigns,
    Home,
    Table,
    Story,
    Lore,
    Memories,
    Npcs,
    Owners,
    Characters,
    Scenes,
    Encounters,
    Turns,
    Reactions,
    Rehearsal,
    PromptLab,
    Exchange,
    Invite,
    Audit,
    Keys,
    Models,
    Users,
    Usage,
    Settings,
}

/// The items of a campaign: label, icon, path, and the scope of the page.
const CAMPAIGN_TABS: &[(Tab, &str, &str, &str, Scope)] = &[
    (Tab::Home, "Overview", "overview", "", Scope::Read),
    (Tab::Table, "Table", "table", "table", Scope::Gm),
    (Tab::Story, "Story so far", "lore", "story", Scope::Read),
    (Tab::Lore, "Lore", "lore", "lore", Scope::Read),
    (Tab::Memories, "Memories", "memories", "memories", Scope::Read),
    (Tab::Npcs, "NPCs", "npcs", "npcs", Scope::Read),
    (Tab::Owners, "Owners", "owners", "owners", Scope::Read),
    (Tab::Characters, "Characters", "characters", "characters", Scope::Read),
    (Tab::Scenes, "Scenes", "scenes", "scenes", Scope::Read),
    (Tab::Encounters, "Encounters", "encounters", "encounters", Scope::Read),
    (Tab::Turns, "Turns", "turns", "turns", Scope::Read),
    (Tab::Reactions, "Reactions", "reactions", "reactions", Scope::Gm),
    (Tab::Rehearsal, "Rehearsal", "rehearsal", "rehearsal", Scope::Gm),
    (Tab::PromptLab, "Prompt lab", "lab", "lab", Scope::Gm),
    (Tab::Exchange, "Import, export", "exchange", "exchange", Scope::Read),
    (Tab::Invite, "Invite a player", "users", "invite", Scope::Play),
    (Tab::Audit, "Audit", "audit", "audit", Scope::Admin),
];

/// The items of a tenant.
const TENANT_TABS: &[(Tab, &str, &str, &str, Scope)] = &[
    (Tab::Campaigns, "Campaigns", "campaigns", "/admin/campaigns", Scope::Read),
    (Tab::Models, "Models", "models", "/admin/models", Scope::Admin),
    (Tab::Keys, "API keys", "keys", "/admin/keys", Scope::Admin),
    (Tab::Users, "Users", "users", "/admin/users", Scope::Admin),
    (Tab::Usage, "Usage", "usage", "/admin/usage", Scope::Admin),
    (Tab::Settings, "Settings", "settings", "/admin/settings", Scope::Admin),
];

/// The most items of [`Frame::quick`].
const QUICK_MAX: usize = 4;

/// A link in the navigation.
pub struct Link {
    pub label: &'static str,
    /// The name of its icon.
    pub icon: &'static str,
    pub path: String,
    pub is_current: bool,
}

/// The campaign that a page belongs to.
pub struct CampaignCard {
    pub name: String,
    pub path: String,
    pub links: Vec<Link>,
}

/// The `frame` of a page's template.
pub struct Frame {
    pub title: String,
    pub user_name: String,
    pub role: &'static str,
    pub tenant_name: String,
    /// Whether the user can switch to another tenant.
    pub has_tenants: bool,
    /// Whether the user may write the world.
    pub may_write: bool,
    /// Whether the user may see secrets and the journal.
    pub may_see_secrets: bool,
    pub tenant_links: Vec<Link>,
    pub campaign: Option<CampaignCard>,
    /// Which model answers, if that is known.
    pub model: Option<Model>,
    /// The message about the last action.
    pub message: Option<String>,
    /// Whether that says why something was not done.
    pub is_refusal: bool,
    form_token: String,
}

impl Frame {
    fn new(editor: &Editor, campaign: Option<&campaign::Model>, title: &str, tab: Tab) -> Self {
        let link = |(its, label, icon, path, scope): &(Tab, &'static str, &'static str, &str, Scope)| {
            editor.may(*scope).then(|| Link { label, icon, path: (*path).to_owned(), is_current: *its == tab })
        };
        let left = editor.request.cookie(MESSAGE_COOKIE);
        let left = left.as_ref().map(|cookie| cookie.value()).unwrap_or_default();
        let is_refusal = left.starts_with(REFUSAL);
        let message = || {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(left.trim_start_matches(REFUSAL)).ok()?;
            String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
        };
        Self {
            title: title.to_owned(),
            user_name: editor.user.name.clone(),
            role: words::role(editor.role),
            tenant_name: editor.tenant_name.clone(),
            has_tenants: editor.user.tenants > 1,
            may_write: editor.may(Scope::Write),
            may_see_secrets: editor.may(Scope::Gm),
            tenant_links: TENANT_TABS.iter().filter_map(link).collect(),
            campaign: campaign.map(|campaign| CampaignCard {
                name: campaign.name.clone(),
                path: campaign_url(campaign, ""),
                links: CAMPAIGN_TABS
                    .iter()
                    .filter_map(link)
                    .map(|link| Link { path: campaign_url(campaign, &link.path), ..link })
                    .collect(),
            }),
            model: editor.model.clone(),
            message: message(),
            is_refusal,
            form_token: editor.secret.form_token(),
        }
    }

    /// The hidden field that every form contains. It consists only of our own safe characters.
    #[must_use]
    pub fn token(&self) -> String {
        format!(r#"<input type="hidden" name="{TOKEN_FIELD}" value="{}">"#, self.form_token)
    }

    /// The items that a phone has at hand: those of a campaign that are used most, or the first ones of the tenant.
    #[must_use]
    pub fn quick(&self) -> Vec<&Link> {
        let used_most = |link: &&Link| ["overview", "table", "lore", "npcs"].contains(&link.icon);
        match &self.campaign {
            Some(campaign) => campaign.links.iter().filter(used_most).collect(),
            None => self.tenant_links.iter().take(QUICK_MAX).collect(),
        }
    }

    /// Only the token, for htmx requests.
    #[must_use]
    pub fn form_token(&self) -> &str {
        &self.form_token
    }
}

impl Editor {
    /// The frame of a page outside of a campaign.
    #[must_use]
    pub fn frame(&self, title: &str, tab: Tab) -> Frame {
        Frame::new(self, None, title, tab)
    }
}

impl InCampaign {
    /// The frame of a page of the campaign.
    #[must_use]
    pub fn frame(&self, title: &str, tab: Tab) -> Frame {
        Frame::new(self, Some(&self.campaign), title, tab)
    }
}
