//! The answer if no script step applies: a short line in character, and now and then a call of a memory tool.
//!
//! It depends only on the prompt, and on how often the prompt came before. It must never follow, quote or judge what a player wrote: the
//! action only selects among fixed phrases and sentences of the lore, and its cleaned text only goes into tool arguments. To teach it
//! another tool, add it to `remember`.

use serde_json::{Value, json};

use crate::completion::{Call, Completion, Text};
use crate::known::Known;
use crate::lines::{self, Topic};
use crate::master;
use crate::planner;
use crate::prefix_cache::mix;
use crate::referee;
use crate::scene::{self, Scene};
use crate::schema::{self, Hints};
use crate::wire::{ChatRequest, Role, Tool, ToolChoice, ToolMode};

/// A text that a prompt contains if it asks for XML replies.
const XML_CONTRACT: &str = "<response><narrative>";
/// The maximum length of a memory, in characters.
const MEMORY_CHARS_MAX: usize = 200;
/// Memory tools for a single holder, in order of preference.
const MEMORIZE: [&str; 2] = ["NPC_memorize", "OWNER_memorize"];
/// The memory tool for all NPCs of an owner.
const BROADCAST: &str = "OWNER_memorize_dependables";

/// The persona's answer. `last_user` is the text of the last user message.
///
/// `fingerprint` stands for the prompt, and `times` says how often it was answered before: each time in other words.
pub(crate) fn answer(request: &ChatRequest<'_>, last_user: &str, fingerprint: u64, times: u64) -> Completion {
    let scene = scene::read(request, last_user);
    let tools = request.tools();
    if let Some(plan) = instructions(request).find_map(|text| planner::plan(&text, last_user)) {
        return Completion::new(Text::Whole(plan.to_string()), Vec::new());
    }
    if let Some(completion) = refereed(request, last_user, &scene) {
        return completion;
    }
    if let Some(tool) = forced(request) {
        let call = call(&tool.function.name, &forced_arguments(tool, &scene));
        return Completion::new(Text::None, vec![call]);
    }
    let topic = scene.player_id.as_ref().and_then(|_| lines::topic(&scene.action));
    let text = narrative(request, &scene, topic, (fingerprint, times));
    if tools.is_empty() && wants_xml(request) {
        let offers = |name: &str| prompt_offers(request, name);
        let call = remember(&scene, topic, offers).map(|tool| (tool, memory(&scene)));
        let call = call.or_else(|| master::call(last_user, offers));
        return Completion::new(Text::Whole(xml(&text, call)), Vec::new());
    }
    let allowed = !matches!(request.tool_choice, Some(ToolChoice::Mode(ToolMode::None)));
    let offers = |name: &str| allowed && tools.iter().any(|tool| &*tool.function.name == name);
    if let Some((tool, arguments)) = master::call(last_user, offers).filter(|_| !scene.after_tool) {
        return Completion::new(Text::None, vec![call(tool, &arguments)]);
    }
    let calls = remember(&scene, topic, offers).map(|tool| call(tool, &memory(&scene)));
    Completion::new(Text::Whole(text), calls.into_iter().collect())
}

/// The answer to a request of the rules. Such a request forces a call of one of its tools or, in XML mode, lists them and
/// has no character.
fn refereed(request: &ChatRequest<'_>, last_user: &str, scene: &Scene) -> Option<Completion> {
    const CHECK: &str = "resolve_skill_check";
    let tools = request.tools();
    let required = matches!(request.tool_choice, Some(ToolChoice::Mode(ToolMode::Required)));
    let native = required && tools.iter().any(|tool| &*tool.function.name == CHECK);
    let in_xml = || wants_xml(request) && instructions(request).any(|text| schema::contains_word(&text, CHECK));
    if native {
        let (name, arguments) = referee::classify(last_user, scene);
        let offered = tools.iter().any(|tool| &*tool.function.name == name);
        return offered.then(|| Completion::new(Text::None, vec![call(name, &arguments)]));
    }
    if tools.is_empty() && in_xml() {
        let (name, arguments) = referee::classify(last_user, scene);
        let calls = json!([{ "tool_name": name, "parameters": arguments }]);
        let text = format!("{XML_CONTRACT}</narrative><tools>{calls}</tools></response>");
        return Some(Completion::new(Text::Whole(text), Vec::new()));
    }
    None
}

/// The tool that must be called: the named one; for `required` a memory tool, or else the first.
fn forced<'r>(request: &'r ChatRequest<'_>) -> Option<&'r Tool<'r>> {
    let tools = request.tools();
    match request.tool_choice.as_ref()? {
        ToolChoice::Named { function } => tools.iter().find(|tool| *tool.function.name == *function.name),
        ToolChoice::Mode(ToolMode::Required) => {
            let memorizes = |tool: &&Tool<'_>| MEMORIZE.contains(&&*tool.function.name);
            tools.iter().find(memorizes).or(tools.first())
        }
        ToolChoice::Mode(ToolMode::None | ToolMode::Auto) => None,
    }
}

fn forced_arguments(tool: &Tool<'_>, scene: &Scene) -> Value {
    let name = &*tool.function.name;
    if scene.player_id.is_some() && (MEMORIZE.contains(&name) || name == BROADCAST) {
        return memory(scene);
    }
    let schema = tool.function.parameters.map_or("{}", |schema| schema.get());
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let text = scene::clean_line(&scene.action, 2 * MEMORY_CHARS_MAX);
    let hints = Hints { text: &text, player_id: scene.player_id.as_deref() };
    schema::fill(&schema, &schema, &hints, 0)
}

fn call(name: &str, arguments: &Value) -> Call {
    Call { id: None, name: name.to_owned(), arguments: arguments.to_string() }
}

/// The memory tool for this action, if the action is worth remembering and such a tool is offered.
fn remember(scene: &Scene, topic: Option<Topic>, offers: impl Fn(&str) -> bool) -> Option<&'static str> {
    let topic = topic.filter(|_| !scene.after_tool)?;
    if matches!(topic, Topic::Spread | Topic::Theft) && offers(BROADCAST) {
        return Some(BROADCAST);
    }
    MEMORIZE.into_iter().find(|name| offers(name))
}

/// The arguments of a memory tool: who did what.
fn memory(scene: &Scene) -> Value {
    let name = scene.name.as_deref().unwrap_or("A traveller");
    let rest = MEMORY_CHARS_MAX.saturating_sub(name.chars().count() + 2);
    let action = scene::clean_line(&scene.action, rest);
    json!({
        "player_id": scene.player_id,
        "memory_string": format!("{name}: {action}"),
    })
}

/// One or two sentences, chosen by the prompt's fingerprint and by how often it was answered before.
fn narrative(
    request: &ChatRequest<'_>,
    scene: &Scene,
    topic: Option<Topic>,
    (fingerprint, times): (u64, u64),
) -> String {
    let first = mix(fingerprint, 0x9e37_79b9_7f4a_7c15);
    let second = mix(first, 0xd6e8_feb8_6659_fd93);
    // The next of each list, so that no phrase comes twice in a row.
    let (first, second) = (first.wrapping_add(times), second.wrapping_add(times));
    let name = scene.name.as_deref().unwrap_or("traveller");
    if let Some((succeeds, name)) = &scene.ruled {
        return lines::pick(if *succeeds { lines::SUCCEEDED } else { lines::FAILED }, first, name);
    }
    if scene.player_id.is_none() && scene.name.is_none() {
        let list = if scene.after_tool { lines::AFTER_TOOL_UNNAMED } else { lines::NARRATION };
        return lines::pick(list, first, name);
    }
    if scene.after_tool {
        return lines::pick(lines::AFTER_TOOL, first, name);
    }
    let greetings = match scene {
        Scene { was_told: true, .. } => lines::WARNED,
        Scene { remembers: true, .. } => lines::RECOGNITIONS,
        _ => lines::GREETINGS,
    };
    let question = scene.action.trim_end().ends_with('?');
    let greeting = lines::pick(greetings, first, name);
    let phrase = topic.is_none().then(|| told(request, scene, question, second)).flatten();
    let phrase = phrase.unwrap_or_else(|| lines::pick(lines::phrases(topic, question), second, name));
    // Who is neither new nor remembered has been greeted already.
    if scene.has_spoken && !scene.was_told && !scene.remembers {
        return phrase;
    }
    format!("{greeting} {phrase}")
}

/// What the persona can tell of itself and of the world.
fn told(request: &ChatRequest<'_>, scene: &Scene, question: bool, choice: u64) -> Option<String> {
    let name = scene.name.as_deref().unwrap_or("traveller");
    let own = scene.own_name.as_deref()?;
    if lines::asks_for_name(&scene.action) {
        return Some(lines::pick(lines::INTRODUCTIONS, choice, name).replace("{own}", own));
    }
    let known = Known::read(request);
    // The next sentence comes with every second phrase, so that all of them meet.
    let (list, fact) = match known.about(&scene.action, choice / 2) {
        Some(fact) => (lines::TOLD, fact),
        None if question => (lines::RUMOURS, known.any(choice / 2)?),
        // Not each remark is answered with the sights.
        None if choice.is_multiple_of(3) => (lines::HERE, known.here(choice / 2)?),
        None => return None,
    };
    Some(lines::pick(list, choice, name).replace("{fact}", &fact))
}

/// Whether the instructions or the first message describe the XML contract.
fn wants_xml(request: &ChatRequest<'_>) -> bool {
    instructions(request).any(|text| text.contains(XML_CONTRACT))
}

/// Whether the instructions name a tool, or the list of tools in the first user message does. That message may also
/// contain the world and a player's words, so only the list counts.
fn prompt_offers(request: &ChatRequest<'_>, name: &str) -> bool {
    let world = request.messages.iter().find(|message| message.role == Role::User).map(|message| message.text());
    let listed =
        world.as_deref().and_then(|text| text.split_once("<available_tools>")?.1.split_once("</available_tools>"));
    listed.is_some_and(|(tools, _)| schema::contains_word(tools, name))
        || instructions(request).any(|text| schema::contains_word(&text, name))
}

/// The first message and all system and developer messages.
fn instructions<'r>(request: &'r ChatRequest<'_>) -> impl Iterator<Item = std::borrow::Cow<'r, str>> {
    let messages = request.messages.iter().enumerate();
    messages
        .filter(|(at, message)| *at == 0 || matches!(message.role, Role::System | Role::Developer))
        .map(|(_, message)| message.text())
}

/// The answer in the XML contract's form. The phrases and the cleaned name contain no markup.
fn xml(narrative: &str, tool: Option<(&str, Value)>) -> String {
    let tools = tool.map_or_else(String::new, |(name, arguments)| {
        let calls = json!([{"tool_name": name, "parameters": arguments}]);
        format!("<tools>{calls}</tools>")
    });
    format!("{XML_CONTRACT}{narrative}</narrative>{tools}</response>")
}
