//! A model says which check an action needs, and the rules decide it: the work of a rules turn, within whatever turn it is.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{context, offer};
use crate::{
    error::{Code, Error, Result},
    llm::{ChatRequest, Message, ReplyMode, Role, ToolChoice, reply},
    messages::service::Reader,
    ops::metrics,
    tenancy::Origin,
    tools::{self, ActorKind, Hold, ToolCx, Work},
    turns::{CallError, CallStatus, ToolCall, live::Item, runner::answer_calls, talk::Talk},
};

const NO_CHECK: &str = "mark_no_check";
/// How often the model is asked: once more if its arguments were wrong.
const STEPS_MAX: usize = 2;

/// What the rules said.
pub struct Decided {
    pub tool: &'static str,
    pub arguments: Value,
    pub raw: String,
    pub parsed: Value,
}

/// An action on its way to a decision.
pub struct Ruling<'t, 'a> {
    pub talk: &'t mut Talk<'a>,
    pub campaign: Uuid,
    pub player: Uuid,
    /// Who acts, who is there, and what is done, as the model is told it.
    pub situation: &'t str,
    pub dice: Option<&'t [u32]>,
    pub preview: bool,
}

impl Ruling<'_, '_> {
    /// Asks the model which check it is, and decides it.
    ///
    /// # Errors
    /// `llm_unavailable`, `llm_timeout`, `invalid_dice`; `conflict` if the turn is no longer this server's.
    pub async fn decide(&mut self) -> Result<Decided> {
        let mode = self.talk.mode;
        let messages = [
            Message::text(Role::System, context::instructions(mode)),
            Message::text(Role::User, self.situation.to_owned()),
        ];
        let native = mode == ReplyMode::Native;
        let tools = if native { offer::definitions() } else { None };
        let mut more = Vec::new();
        for _ in 0..STEPS_MAX {
            let request = ChatRequest {
                prefix: &messages,
                messages: &more,
                tools,
                tool_choice: native.then_some(ToolChoice::Required),
                ..ChatRequest::default()
            };
            let mut completion = self.talk.ask_once(&request).await?;
            let mut parsed = reply::parse_native(&completion);
            if parsed.calls.is_empty() {
                // Some endpoints do not force a call although they are asked to.
                parsed = reply::parse_text(&completion.text);
            }
            self.talk.parse_error = parsed.parse_error;
            let Some(proposed) = parsed.calls.into_iter().find(|c| offer::offers(&c.name)) else { break };
            let id = proposed.id.unwrap_or_else(|| "call_1".to_owned());
            let (arguments, error) = match proposed.arguments.map(offer::proposed) {
                Ok(arguments) => match self.resolve(&id, &proposed.name, arguments.clone()).await {
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

    /// Runs the tool the model chose, as the player, in one transaction.
    async fn resolve(&mut self, id: &str, name: &str, arguments: Value) -> Result<Decided> {
        let tool = tools::find(name).ok_or_else(|| Error::internal("a tool of the rules is missing"))?;
        let decides = !name.starts_with("mark_");
        self.tell(|| Item::call(id, tool.name, &arguments));
        let mut result = self.run(tool, &arguments, decides).await?;
        let call = ToolCall {
            id: id.to_owned(),
            name: tool.name.to_owned(),
            arguments: arguments.clone(),
            status: CallStatus::Succeeded,
            result: Some(result.clone()),
            error: None,
        };
        self.tell(|| Item::result(&call));
        self.talk.tool_calls.push(call);
        metrics::TOOL_CALLS.with_label_values(&[tool.name, "succeeded"]).inc();
        let raw = result.as_object_mut().and_then(|r| r.remove("raw"));
        let raw = raw.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        if let (false, Some(dice), Some(members)) = (decides, &self.dice, result.as_object_mut()) {
            members.insert("dice_unused".to_owned(), json!(dice));
        }
        Ok(Decided { tool: tool.name, arguments, raw, parsed: result })
    }

    async fn run(&self, tool: &tools::Tool, arguments: &Value, decides: bool) -> Result<Value> {
        let talk = &*self.talk;
        let actor = talk.caller.actor().in_turn(talk.id, Origin::Turn);
        let hold = Hold { turn: talk.id, instance: talk.app.running.instance };
        let mut attempts_left = 3;
        loop {
            let work = Work::new(&talk.app.pool, &actor, self.campaign, Some(hold));
            let cx = ToolCx {
                effects: None,
                work: &work,
                campaign: self.campaign,
                kind: ActorKind::Character,
                entity: self.player,
                player: None,
                session: None,
                reader: Reader::GM,
                turn: Some(talk.id),
                key: None,
                dice: self.dice.filter(|_| decides),
                heard: None,
                hand: None,
                preview: self.preview,
                apply: false,
                rows_max: talk.caller.tenant.limits.rows_per_kind,
            };
            match tool.run(&cx, arguments.clone()).await {
                Ok(result) => {
                    work.commit().await?;
                    return Ok(result);
                }
                Err(error) if error.is_transient() && attempts_left > 1 => attempts_left -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Records a call that could not be executed.
    fn refused(&mut self, id: String, name: String, arguments: Value, error: &Error) -> ToolCall {
        metrics::TOOL_CALLS.with_label_values(&[tools::find(&name).map_or("unknown", |t| t.name), "failed"]).inc();
        let error = CallError { code: error.code.as_str().to_owned(), message: told(error) };
        self.talk.parse_error = Some(error.message.clone());
        let call = ToolCall { id, name, arguments, status: CallStatus::Failed, result: None, error: Some(error) };
        self.tell(|| Item::result(&call));
        self.talk.tool_calls.push(call.clone());
        call
    }

    /// Tells those who listen.
    fn tell(&self, item: impl FnOnce() -> Item) {
        if let Some(live) = &self.talk.asker.live {
            live.tell(item());
        }
    }
}

/// An error as the model is told it.
fn told(error: &Error) -> String {
    let fields: Vec<_> = error.errors.iter().map(|e| format!("{}: {}", e.pointer, e.message)).collect();
    format!("{} {}", error.detail, fields.join("; "))
}
