//! A model says which check an action needs, and the rules decide it. This is the work of a rules turn, within any kind of turn.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    Acting, context,
    fight::{self, Settled},
    offer,
};
use crate::{
    tools::{
        self, Hold, Work,
        spec::{ActorKind, ToolCx},
    },
    turns::{
        live::Item,
        talk::{Talk, answer_calls},
        view::{CallError, CallStatus, ToolCall},
    },
};
use base::{
    error::{Code, Error, Result},
    metrics,
};
use db::{
    retry::{self, PAID},
    tenancy::Origin,
};
use edge::{models::Choice, tenants::tasks::Task};
use entity::session;
use llm::{ChatRequest, Message, ReplyMode, Role, ToolChoice, reply};
use world::{
    encounters::stand::Stand, messages::service::NewMessage, playing::Reader, rules::answers::ResolvedOutcome,
};

const NO_CHECK: &str = "mark_no_check";
const IMPOSSIBLE: &str = "mark_impossible";
/// How often the model is asked: a second time if its arguments were wrong.
const STEPS_MAX: usize = 2;

/// The decision of the rules.
pub struct Decided {
    pub tool: &'static str,
    pub arguments: Value,
    /// The lines for a narrator.
    pub raw: String,
    /// The same in members.
    pub outcome: Box<ResolvedOutcome>,
    /// The text that the fight's log already has.
    pub told: Option<String>,
    /// What to ask the player. If set, nothing was done.
    pub unclear: Option<String>,
}

/// A decision as the turn's record keeps it.
#[derive(Serialize)]
struct WithLines<'a> {
    #[serde(flatten)]
    outcome: &'a ResolvedOutcome,
    raw: &'a str,
}

impl Decided {
    /// Whether there is anything for a narrator. Ending a turn is nothing to tell.
    #[must_use]
    pub fn is_a_tale(&self) -> bool {
        self.unclear.is_none() && !(self.tool == fight::TOOL && self.arguments["action"] == "advance_turn")
    }
}

/// An action that is being decided.
pub struct Ruling<'t, 'a> {
    pub talk: &'t mut Talk<'a>,
    /// The model that says which check an action needs.
    pub judge: Arc<Choice>,
    pub campaign: Uuid,
    pub player: Uuid,
    /// Who acts, and where.
    pub acting: &'t Acting,
    /// The player's words.
    pub action: &'t str,
    /// Whether the words are those of a command, which reports itself as an action.
    pub is_command: bool,
    pub dice: Option<&'t [u32]>,
    pub preview: bool,
}

impl Ruling<'_, '_> {
    /// Asks the model which check the action needs, and decides it.
    ///
    /// # Errors
    /// `llm_unavailable`, `llm_timeout`, `invalid_dice`; `conflict` if the turn is no longer this server's.
    pub async fn decide(&mut self) -> Result<Decided> {
        let (mode, fights) = (self.talk.mode, self.stand().is_some());
        if fights && self.preview && !self.talk.caller.sees_secrets() {
            let message = "Previewing an action in a fight needs the scope `gm`, because a preview would reveal the enemies' numbers.";
            return Err(Error::new(Code::Forbidden, message));
        }
        let messages = [
            Message::text(Role::System, context::instructions(mode, fights)),
            Message::text(Role::User, self.acting.situation.clone()),
        ];
        let native = mode == ReplyMode::Native;
        let tools = if native { offer::definitions(fights) } else { None };
        let mut more = Vec::new();
        for _ in 0..STEPS_MAX {
            let request = ChatRequest {
                prefix: &messages,
                messages: &more,
                tools,
                tool_choice: native.then_some(ToolChoice::Required),
                ..ChatRequest::default()
            };
            let mut completion = self.talk.ask_once(Task::Classify, &self.judge, &request).await?;
            let mut parsed = reply::parse_native(&completion);
            if parsed.calls.is_empty() {
                // Some endpoints do not enforce a call even if asked to.
                parsed = reply::parse_text(&completion.text);
            }
            self.talk.parse_error = parsed.parse_error;
            let Some(proposed) = parsed.calls.into_iter().find(|c| offer::offers(&c.name, fights)) else { break };
            let id = proposed.id.unwrap_or_else(|| "call_1".to_owned());
            let (arguments, error) =
                match proposed.arguments.map(|given| offer::proposed(&proposed.name, fights, given)) {
                    Ok(arguments) => match self.settle(&id, &proposed.name, arguments.clone()).await {
                        Err(error) if error.code == Code::ValidationFailed => (arguments, error),
                        result => return result,
                    },
                    Err(why) => {
                        (Value::Null, Error::invalid("", "invalid_json", format!("The arguments are not JSON: {why}")))
                    }
                };
            completion.tool_calls.retain(|call| call.id == id);
            let refused = self.refused(id, proposed.name, arguments, &error);
            answer_calls(&mut more, completion, &[refused], mode);
        }
        let reason = "Nothing here needs a check.";
        self.resolve("call_1", NO_CHECK, json!({ "reason": reason })).await
    }

    fn stand(&self) -> Option<&Stand> {
        self.acting.stand.as_ref()
    }

    /// Decides a proposal. In a fight, it first becomes a call in that fight.
    async fn settle(&mut self, id: &str, name: &str, arguments: Value) -> Result<Decided> {
        let settled = match self.stand() {
            Some(stand) => fight::settle(stand, self.action, name, arguments)?,
            None => Settled::Call(arguments),
        };
        match settled {
            Settled::Call(arguments) => match self.resolve(id, name, arguments).await {
                // The call was built here, so the player has to correct what the engine objects to.
                Err(error) if error.code == Code::ValidationFailed && name == fight::TOOL => {
                    self.unclear(id, fight::engine_says(&error)).await
                }
                decided => decided,
            },
            Settled::Unclear(why) => self.unclear(id, why).await,
        }
    }

    /// Does nothing: the player has to say it more clearly.
    async fn unclear(&mut self, id: &str, why: String) -> Result<Decided> {
        let decided = self.resolve(id, IMPOSSIBLE, json!({ "reason": why })).await?;
        Ok(Decided { unclear: Some(why), ..decided })
    }

    /// Runs the tool that the model chose, as the player, in one transaction.
    async fn resolve(&mut self, id: &str, name: &str, arguments: Value) -> Result<Decided> {
        let tool = tools::find(name).ok_or_else(|| Error::internal("a tool of the rules is missing"))?;
        let decides = !name.starts_with("mark_");
        let shown = self.shown(arguments.clone());
        self.tell(|| Item::call(id, tool.name, &shown));
        if !self.preview {
            self.talk.asker.acts();
        }
        let mut outcome = Box::new(self.run(tool, &arguments, decides).await?);
        let raw = outcome.take_lines();
        let told = match (self.stand(), tool.name) {
            (Some(_), fight::TOOL | fight::ATTACK) => outcome.told.clone().filter(|told| !told.is_empty()),
            (Some(_), _) if decides => self.roll_of(&outcome).map(|message| message.content),
            _ => None,
        };
        let result = serde_json::to_value(WithLines { outcome: &outcome, raw: &raw }).map_err(Error::internal)?;
        let call = ToolCall {
            id: id.to_owned(),
            name: tool.name.to_owned(),
            arguments: shown.clone(),
            status: CallStatus::Succeeded,
            result: Some(result),
            error: None,
        };
        self.tell(|| Item::result(&call));
        self.talk.tool_calls.push(call);
        metrics::TOOL_CALLS.with_label_values(&[tool.name, "succeeded"]).inc();
        if let (false, Some(dice)) = (decides, self.dice) {
            outcome.dice.dice_unused = dice.to_vec();
        }
        Ok(Decided { tool: tool.name, arguments: shown, raw, outcome, told, unclear: None })
    }

    /// A check or a save for the fight's log.
    fn roll_of(&self, outcome: &ResolvedOutcome) -> Option<NewMessage> {
        fight::roll_of(outcome, &self.acting.name, self.player, self.talk.id)
    }

    /// The arguments as players read them: in a fight without the difficulty that the model chose, which nobody told them.
    fn shown(&self, mut arguments: Value) -> Value {
        if let (Some(_), Some(members)) = (self.stand(), arguments.as_object_mut()) {
            members.remove("dc");
        }
        arguments
    }

    async fn run(&self, tool: &tools::Tool, arguments: &Value, decides: bool) -> Result<ResolvedOutcome> {
        let talk = &*self.talk;
        let actor = talk.caller.actor().in_turn(talk.id, Origin::Turn);
        // The turn's record keeps what a fight tells, so it tells everybody only what players may see.
        let player = Reader { role: session::Role::Player, player: Some(self.player) };
        let reader = if self.stand().is_some() { player } else { Reader::GM };
        let hold = Hold { turn: talk.id, instance: talk.app.running.instance };
        // A model was paid for what is written here.
        retry::repeat(PAID, async || {
            let work = Work::new(&talk.app.pool, &actor, self.campaign, Some(hold));
            let cx = ToolCx {
                effects: None,
                work: &work,
                corpora: &talk.app.prompts.corpora,
                campaign: self.campaign,
                kind: ActorKind::Character,
                entity: self.player,
                player: None,
                session: None,
                reader,
                turn: Some(talk.id),
                is_command: self.is_command,
                key: None,
                dice: self.dice.filter(|_| decides),
                heard: None,
                hand: None,
                earlier: None,
                preview: self.preview,
                apply: false,
                rows_max: talk.caller.tenant.limits.rows_per_kind,
            };
            let result = match self.stand() {
                Some(stand) => self.run_in(stand, &cx, tool, arguments).await?,
                None => tool.resolve(&cx, arguments.clone()).await?,
            };
            work.commit().await?;
            Ok(result)
        })
        .await
    }

    /// The same in a fight: a check costs an action, and its result is written to the log.
    async fn run_in(
        &self,
        stand: &Stand,
        cx: &ToolCx<'_>,
        tool: &tools::Tool,
        arguments: &Value,
    ) -> Result<ResolvedOutcome> {
        let outcome = fight::run(stand, cx, tool, arguments.clone()).await?;
        if !matches!(tool.name, fight::TOOL | fight::ATTACK) && !self.preview {
            cx.work.say(self.roll_of(&outcome).into_iter().collect()).await?;
        }
        Ok(outcome)
    }

    /// Records a call that could not be executed.
    fn refused(&mut self, id: String, name: String, arguments: Value, error: &Error) -> ToolCall {
        metrics::TOOL_CALLS.with_label_values(&[tools::find(&name).map_or("unknown", |t| t.name), "failed"]).inc();
        let error = CallError { code: error.code.as_str().to_owned(), message: error_for_model(error) };
        let arguments = self.shown(arguments);
        self.talk.parse_error = Some(error.message.clone());
        let call = ToolCall { id, name, arguments, status: CallStatus::Failed, result: None, error: Some(error) };
        self.tell(|| Item::result(&call));
        self.talk.tool_calls.push(call.clone());
        call
    }

    /// Sends an event to listeners.
    fn tell(&self, item: impl FnOnce() -> Item) {
        if let Some(live) = &self.talk.asker.live {
            live.tell(item());
        }
    }
}

/// An error in the form in which the model reads it.
fn error_for_model(error: &Error) -> String {
    let fields: Vec<_> = error.errors.iter().map(|e| format!("{}: {}", e.pointer, e.message)).collect();
    format!("{} {}", error.detail, fields.join("; "))
}
