//! The answers when no script step applies.

use ::rehearsal::Script;
use serde_json::{Value, json};

use super::{Outcome, ask, call, model, post, text, turn, with_tools};

#[tokio::test(flavor = "multi_thread")]
async fn the_persona_answers_in_character() -> Outcome {
    let model = model(Script::default()).await?;
    let answer = ask(&model, &turn("You are Bertha.", "I sit down &lt;b>bold&lt;/b>")).await?;
    assert!(text(&answer).contains("Alice") && !text(&answer).contains("bold"), "{answer}");
    assert_eq!(answer["model"], "m");
    assert_eq!(answer["created"], 0);
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    let sum = answer["usage"]["prompt_tokens"].as_u64().zip(answer["usage"]["completion_tokens"].as_u64());
    assert_eq!(answer["usage"]["total_tokens"].as_u64(), sum.map(|(prompt, written)| prompt + written));

    let known = turn("<memories of=\"player_alice\">\n- She paid.\n</memories>", "I sit down");
    assert!(text(&ask(&model, &known).await?).contains("remember you"));
    let unknown = turn("<memories of=\"player_alice\">\n</memories>", "I sit down");
    assert!(!text(&ask(&model, &unknown).await?).contains("remember you"));

    let bare = json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "Go on."}]}]});
    let answer = ask(&model, &bare).await?;
    assert!(!text(&answer).is_empty());
    assert_eq!(answer["model"], "rehearsal");
    model.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cues_call_a_memory_tool_once() -> Outcome {
    let model = model(Script::default()).await?;
    let both = ["OWNER_memorize", "NPC_memorize", "OWNER_memorize_dependables"];
    let paid = with_tools(turn("You are Bertha.", "I pay &lt;5&gt; gold {and}\nbow"), &both);
    let answer = ask(&model, &paid).await?;
    let expected = json!({"player_id": "player_alice", "memory_string": "Alice: I pay 5 gold and bow"});
    assert_eq!(call(&answer), ("NPC_memorize", expected));
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
    assert!(text(&answer).contains("Alice"));

    let spread = with_tools(turn("s", "Tell everyone I paid!"), &both);
    assert_eq!(call(&ask(&model, &spread).await?).0, "OWNER_memorize_dependables");
    let long = with_tools(turn("s", &"I promise to pay ".repeat(90)), &both);
    let (_, arguments) = call(&ask(&model, &long).await?);
    assert!(arguments["memory_string"].as_str().is_some_and(|text| (150..=200).contains(&text.len())));
    let plain = with_tools(turn("s", "I tiptoe in"), &both);
    assert_eq!(call(&ask(&model, &plain).await?).0, "");
    let other = with_tools(turn("s", "I pay"), &["roll_dice"]);
    assert_eq!(call(&ask(&model, &other).await?).0, "");

    let mut after = paid.clone();
    let message = answer["choices"][0]["message"].clone();
    let id = message["tool_calls"][0]["id"].clone();
    if let Some(messages) = after["messages"].as_array_mut() {
        messages.push(message);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "{}"}));
    }
    let answer = ask(&model, &after).await?;
    assert!(answer["choices"][0]["message"]["tool_calls"].is_null());
    assert!(text(&answer).contains("Alice"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn xml_when_the_prompt_asks_for_it() -> Outcome {
    let model = model(Script::default()).await?;
    let contract = "Answer as <response><narrative>TEXT</narrative><tools>JSON</tools></response>.\n";
    let offered = format!("{contract}- OWNER_memorize(player_id, memory_string)");
    let answer = ask(&model, &turn(&offered, "I give you a gift")).await?;
    let reply = text(&answer);
    assert!(reply.starts_with("<response><narrative>") && reply.ends_with("</tools></response>"), "{reply}");
    let tools = reply.split("<tools>").nth(1).and_then(|rest| rest.split("</tools>").next());
    let tools: Value = serde_json::from_str(tools.unwrap_or_default())?;
    assert_eq!(tools[0]["tool_name"], "OWNER_memorize");
    assert_eq!(tools[0]["parameters"]["memory_string"], "Alice: I give you a gift");

    let longer = format!("{contract}- OWNER_memorize_dependables(player_id, memory_string)");
    for prompt in [contract, longer.as_str()] {
        let answer = ask(&model, &turn(prompt, "I give you a gift")).await?;
        assert!(text(&answer).ends_with("</narrative></response>"), "{answer}");
    }
    Ok(())
}

/// Tools may also stand in the first user message, with the world; a player who names one does not have it.
#[tokio::test(flavor = "multi_thread")]
async fn xml_tools_may_be_listed_with_the_world() -> Outcome {
    let model = model(Script::default()).await?;
    let contract = "Answer as <response><narrative>TEXT</narrative><tools>JSON</tools></response>.";
    let listed = "<available_tools>\n- NPC_memorize: Remember.\n</available_tools>\n";
    for (world, called) in [(listed, true), ("", false), ("<lore>\nNPC_memorize\n</lore>\n", false)] {
        let mut body = turn(contract, "I give you a gift, NPC_memorize it");
        let action = body["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
        body["messages"][1]["content"] = json!(format!("{world}{action}"));
        let answer = ask(&model, &body).await?;
        assert_eq!(text(&answer).contains("\"tool_name\":\"NPC_memorize\""), called, "{answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forced_tool_is_called_with_valid_arguments() -> Outcome {
    let model = model(Script::default()).await?;
    let mut body = with_tools(turn("s", "I sneak past the guard"), &["roll_dice", "skill_check"]);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "skill_check"}});
    let expected = json!({"skill": "athletics", "dc": 5, "note": "I sneak past"});
    assert_eq!(call(&ask(&model, &body).await?), ("skill_check", expected));
    body["tool_choice"] = json!("required");
    assert_eq!(call(&ask(&model, &body).await?).0, "roll_dice");
    body["tool_choice"] = json!({"type": "function", "function": {"name": "missing"}});
    assert_eq!(post(&model, &body).await?.status(), 400);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_answer_byte_for_byte_alike() -> Outcome {
    let (one, two) = (model(Script::default()).await?, model(Script::default()).await?);
    let mut texts = Vec::new();
    for round in 0..12 {
        let mut body = with_tools(turn("s", &format!("I pay {round} gold")), &["NPC_memorize"]);
        body["stream"] = json!(round % 2 == 0);
        let text = post(&one, &body).await?.text().await?;
        assert_eq!(text, post(&two, &body).await?.text().await?);
        texts.push(text);
    }
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 12);
    Ok(())
}
