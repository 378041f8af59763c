//! What the user of the prompt lab chose, and from what.

use uuid::Uuid;

use crate::admin::{InCampaign, query::given, submitted::Submitted, words};
use ai::turns::lab::{PromptSubject, Trial};
use base::error::{Code, Error, Result};
use entity::kind::EntityKind;

const ACTION_CHARS_MAX: usize = 4000;
const FIND_CHARS_MAX: usize = 200;

/// A choice in a list: the value that is sent, and the label that people read.
pub(super) type Choice = (String, String);

/// What the user chose.
#[derive(Clone, Default)]
pub(super) struct Asked {
    /// `npc:slug`, `owner:slug` or `session:id`.
    pub(super) entity: String,
    pub(super) player: String,
    pub(super) action: String,
    /// The search text for lore entries.
    pub(super) find: String,
    /// The id of a past turn.
    pub(super) turn: String,
    /// The entry that is being edited.
    pub(super) lore: String,
    /// The edit: the fields of its form.
    pub(super) draft: Vec<(String, String)>,
    /// The profiles to ask; none of them is the usual model.
    pub(super) profiles: Vec<String>,
    /// Parameters to try, as JSON.
    pub(super) parameters: String,
}

impl Asked {
    pub(super) fn of_query(at: &InCampaign) -> Self {
        Self::of(|name| given(at.request.query_string(), name))
    }

    pub(super) fn of_form(form: &Submitted) -> Self {
        let profiles = form.all("profile").map(ToOwned::to_owned).collect();
        let parameters = form.text("parameters").to_owned();
        Self { profiles, parameters, ..Self::of(|name| form.text(name).to_owned()) }
    }

    /// Whether the usual model is asked too.
    pub(super) fn asks_usual(&self) -> bool {
        self.profiles.iter().any(String::is_empty)
    }

    /// What to ask with.
    pub(super) fn trial(&self) -> Result<Trial> {
        let refused = |why: String| Error::new(Code::ValidationFailed, why);
        let parameters = match self.parameters.trim() {
            "" => None,
            text => Some(words::json_of(text).map_err(|e| refused(format!("The parameters: {e}")))?),
        };
        let profiles = self.profiles.iter().map(|slug| Some(slug.clone()).filter(|slug| !slug.is_empty())).collect();
        Ok(Trial { profiles, parameters })
    }

    fn of(text: impl Fn(&str) -> String) -> Self {
        Self {
            entity: text("entity"),
            player: text("player"),
            action: text("action"),
            find: text("find").trim().chars().take(FIND_CHARS_MAX).collect(),
            turn: text("turn"),
            lore: text("lore"),
            draft: Vec::new(),
            profiles: Vec::new(),
            parameters: String::new(),
        }
    }

    /// Whom the prompt is for.
    pub(super) fn subject(&self) -> Result<PromptSubject> {
        let whole = || Error::new(Code::ValidationFailed, "Choose who is asked.");
        let (kind, name) = self.entity.split_once(':').filter(|(_, name)| !name.is_empty()).ok_or_else(whole)?;
        if self.action.chars().count() > ACTION_CHARS_MAX {
            return Err(Error::new(
                Code::ValidationFailed,
                format!("An action may have at most {ACTION_CHARS_MAX} characters."),
            ));
        }
        let entity = |kind| {
            if self.player.is_empty() {
                return Err(Error::new(Code::ValidationFailed, "Choose the character who acts."));
            }
            Ok(PromptSubject::Entity { kind, entity: name.to_owned(), player: self.player.clone() })
        };
        match kind {
            "npc" => entity(EntityKind::Npc),
            "owner" => entity(EntityKind::Owner),
            "session" => Uuid::try_parse(name).map(PromptSubject::Session).map_err(|_| whole()),
            _ => Err(whole()),
        }
    }
}
