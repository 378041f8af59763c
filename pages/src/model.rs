//! Which model answers, for the bar above every page: nobody should wonder whether an AI or the rehearsal model speaks.

use entity::campaign;

use ai::state::Ai;
use edge::tenants::{
    Tenant,
    tasks::{Task, slug_in},
};

/// The model name of the operator's endpoint if no model is configured.
const REHEARSAL: &str = "rehearsal";

/// What answers.
#[derive(Clone)]
pub enum Model {
    Named(String),
    /// The built-in model, which makes up its answers by rules and costs nothing.
    Rehearsal,
    /// The tenant has no AI turns.
    Off,
    /// No model can be asked: its endpoint or name is not allowed, or its key cannot be read.
    None,
}

impl Model {
    #[must_use]
    pub fn label(&self) -> &str {
        match self {
            Self::Named(name) => name,
            Self::Rehearsal => "Rehearsal model",
            Self::Off => "AI is off",
            Self::None => "No model",
        }
    }

    /// What the label means.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Named(_) => "The model for NPCs. An NPC or a task may have its own.",
            Self::Rehearsal => {
                "The built-in model answers for NPCs by rules, at no cost. An NPC or a task may have its own."
            }
            Self::Off => "This tenant has no AI turns.",
            Self::None => "The model is not allowed, or its key cannot be read.",
        }
    }

    #[must_use]
    pub fn is_rehearsal(&self) -> bool {
        matches!(self, Self::Rehearsal)
    }
}

/// The model that speaks for NPCs, of a campaign or where its campaign names none. Usually no round trip.
pub async fn of(app: &Ai, tenant: &Tenant, campaign: Option<&campaign::Model>) -> Option<Model> {
    let models = match app.llm.of(&app.pool, &app.secrets, tenant).await {
        Ok(models) => models,
        Err(error) => {
            tracing::info!(%error, "a page does not say which model answers");
            return None;
        }
    };
    if models.check_on().is_err() {
        return Some(Model::Off);
    }
    let named = campaign.and_then(|campaign| slug_in(campaign.settings.0.get("models"), Task::Npc));
    Some(match models.choose(Task::Npc, &[named]) {
        Ok(choice) if choice.endpoint.trusted && choice.endpoint.model == REHEARSAL => Model::Rehearsal,
        Ok(choice) => Model::Named(choice.endpoint.model.clone()),
        Err(_) => Model::None,
    })
}
