//! What models write, and what is made of it. Tables for the forms, properties for "never panics, always linear".

use std::time::Duration;

use llm::reply::{Aside, CALLS_PER_REPLY_MAX, NARRATIVE_BYTES_MAX, ParsedReply, parse_native, parse_text};
use llm::{Completion, WireToolCall};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::processor_time;

/// The calls as `(name, arguments)`, a broken call's arguments as its error's text.
fn calls(reply: &ParsedReply) -> Vec<(String, Value)> {
    let arguments = |call: &Result<Value, String>| call.clone().unwrap_or_else(|error| json!({ "error": error }));
    reply.calls.iter().map(|call| (call.name.clone(), arguments(&call.arguments))).collect()
}

fn one(name: &str, arguments: Value) -> Vec<(String, Value)> {
    vec![(name.to_owned(), arguments)]
}

#[track_caller]
fn sound(text: &str, narrative: &str, expected: Vec<(String, Value)>) {
    let reply = parse_text(text);
    assert_eq!(reply.parse_error, None, "in {text}");
    assert_eq!(reply.narrative, narrative, "in {text}");
    assert_eq!(calls(&reply), expected, "in {text}");
    assert!(!reply.narrative_cut);
}

#[track_caller]
fn broken(text: &str, narrative: &str) {
    let reply = parse_text(text);
    assert!(reply.parse_error.is_some(), "no error in {text}");
    assert_eq!(reply.narrative, narrative, "in {text}");
    assert!(reply.calls.is_empty(), "calls in {text}");
}

const CALL: &str = r#"{"tool_name":"roll_dice","parameters":{"formula":"1d20"}}"#;

fn rolled() -> Vec<(String, Value)> {
    one("roll_dice", json!({"formula": "1d20"}))
}

#[test]
fn the_documented_form() {
    sound(&format!("<response><narrative>Hello.</narrative><tools>[{CALL}]</tools></response>"), "Hello.", rolled());
    sound("<response><narrative>Hello.</narrative></response>", "Hello.", vec![]);
    for tools in
        ["<tools/>", "<tools />", "<tools></tools>", "<tools> \n </tools>", "<tools>[]</tools>", "<tools>null</tools>"]
    {
        sound(&format!("<response><narrative>Hi</narrative>{tools}</response>"), "Hi", vec![]);
    }
}

#[test]
fn what_models_put_around_it() {
    let body = format!("<response>\n<narrative>Hi</narrative>\n<tools>[{CALL}]</tools>\n</response>");
    for text in [
        format!("Sure, here it is:\n{body}\nAnything else?"),
        format!("```xml\n{body}\n```"),
        format!("````\n```xml\n{body}\n```\n````"),
        format!("\u{feff}{body}"),
        format!("<?xml version=\"1.0\"?>\n{body}"),
        format!("<!DOCTYPE response [<!ENTITY a \"b\">]>{body}"),
        format!("<response>{body}</response>"),
        format!("{body}<response><narrative>Two</narrative><tools>[{CALL},{CALL}]</tools></response>"),
        body.replace("response", "Response").replace("tools", "TOOLS"),
        body.replace("<tools>", "<tools type=\"json\" >").replace("<narrative>", "<narrative lang='en'>"),
        body.replace("</response>", ""),
    ] {
        sound(&text, "Hi", rolled());
    }
}

#[test]
fn what_models_put_into_the_list() {
    for list in [
        CALL.to_owned(),
        format!("[{CALL}]"),
        format!("```json\n[{CALL}]\n```"),
        format!("```\n```json\n[{CALL}]\n```\n```"),
        format!("<![CDATA[[{CALL}]]]>"),
        format!("<![CDATA[\n```json\n{CALL}\n```\n]]>"),
        format!("[{CALL}]").replace('"', "&quot;"),
        format!("{{\"tools\":[{CALL}]}}"),
        r#"[{"name":"roll_dice","arguments":{"formula":"1d20"}}]"#.to_owned(),
        r#"[{"name":"roll_dice","args":"{\"formula\":\"1d20\"}"}]"#.to_owned(),
        r#"[{"tool":"roll_dice","input":{"formula":"1d20"},"cost":5,"reason":"x"}]"#.to_owned(),
        r#"[{"type":"function","id":"a","function":{"name":"roll_dice","arguments":"{\"formula\":\"1d20\"}"}}]"#
            .to_owned(),
        r#""[{\"tool_name\":\"roll_dice\",\"parameters\":{\"formula\":\"1d20\"}}]""#.to_owned(),
    ] {
        sound(&format!("<response><narrative>Hi</narrative><tools>{list}</tools></response>"), "Hi", rolled());
    }
    let two = [rolled(), rolled()].concat();
    sound(&format!("<response><narrative>Hi</narrative><tools>[{CALL},{CALL}]</tools></response>"), "Hi", two.clone());
    sound(&format!("<response><narrative>Hi</narrative><tools>{CALL}\n{CALL}</tools></response>"), "Hi", two.clone());
    sound(
        &format!("<response><tools>{CALL}</tools><narrative>Hi</narrative><tools>{CALL}</tools></response>"),
        "Hi",
        two,
    );
}

#[test]
fn text_survives_raw_and_escaped() {
    for (inside, narrative) in [
        ("Fish & chips < 3 > 2 &c. <b>bold</b>", "Fish & chips < 3 > 2 &c. <b>bold</b>"),
        ("&lt;i&gt; &amp;amp; &quot;q&quot; &apos;a&apos;", "<i> &amp; \"q\" 'a'"),
        (
            "&#65;&#x42;&#X1F600; &#0;&#xD800;&#x110000; &bomb; &;&#;&#x;",
            "AB\u{1f600} &#0;&#xD800;&#x110000; &bomb; &;&#;&#x;",
        ),
        ("<![CDATA[a < b && </narrative> &amp;]]> and &amp;", "a < b && </narrative> &amp; and &"),
        ("A sign: <tools>[]</tools> and <response> too", "A sign: <tools>[]</tools> and <response> too"),
        ("one\r\ntwo\u{0}\u{7}\tthree", "one\ntwo\tthree"),
        ("", ""),
    ] {
        sound(
            &format!("<response><narrative>{inside}</narrative><tools>[{CALL}]</tools></response>"),
            narrative,
            rolled(),
        );
    }
    let quoting = r#"[{"tool_name":"say","parameters":{"text":"Tom &amp; Jerry &lt;3 </tools> <x>\u0000"}}]"#;
    sound(
        &format!("<response><narrative>Hi</narrative><tools>{quoting}</tools></response>"),
        "Hi",
        one("say", json!({"text": "Tom & Jerry <3 </tools> <x>"})),
    );
    let literal = r#"<![CDATA[{"tool_name":"say","parameters":{"text":"Tom &amp; Jerry"}}]]>"#;
    sound(
        &format!("<response><tools>{literal}</tools></response>"),
        "",
        one("say", json!({"text": "Tom &amp; Jerry"})),
    );
    let raw_break = "{\"tool_name\":\"say\",\"parameters\":{\"text\":\"one\ntwo\"}}";
    sound(&format!("<response><tools>{raw_break}</tools></response>"), "", one("say", json!({"text": "one\ntwo"})));
}

#[test]
fn elements_left_out() {
    sound(&format!("<response>The door opens.<tools>{CALL}</tools></response>"), "The door opens.", rolled());
    sound(&format!("<narrative>The door opens.</narrative><tools>{CALL}</tools>"), "The door opens.", rolled());
    sound(&format!("The door opens.\n<tools>[{CALL}]</tools>"), "The door opens.", rolled());
    sound("The word <tools> is on the sign.", "The word <tools> is on the sign.", vec![]);
    sound("<response/>", "", vec![]);
    sound("  The door opens.  ", "The door opens.", vec![]);
    sound("```\nThe door opens.\n```", "The door opens.", vec![]);
    sound("{grins} Hello & <welcome>", "{grins} Hello & <welcome>", vec![]);
    sound("[The door opens]", "[The door opens]", vec![]);
    sound("", "", vec![]);
}

#[test]
fn cut_replies_deliver_their_narrative_and_do_nothing() {
    let whole = format!("<response><narrative>The door opens.</narrative><tools>[{CALL}]</tools></response>");
    broken("<response><narrative>The door opens", "The door opens");
    broken("<response><narrative>The door opens.</narr", "The door opens.");
    broken("<response>The door opens.</resp", "The door opens.");
    broken("<response><narrative>The door opens.</narrative><too", "The door opens.");
    broken("<response><narrative>The door opens.</narrative><tools>[{\"tool_name\":\"a\"", "The door opens.");
    broken(&format!("<response><narrative>The door opens.</narrative><tools>[{CALL}]"), "The door opens.");
    broken(&format!("<response><narrative>The door opens.</narrative><tools>[{CALL}]</response>"), "The door opens.");
    broken(&format!("<response><narrative>The door opens.<tools>[{CALL}]</tools></response>"), "The door opens.");
    broken("<response><narrative><![CDATA[The door opens.</narrative><tools>[]</tools>", "The door opens.");
    for end in 0..whole.len() {
        let reply = parse_text(&whole[..end]);
        assert!("The door opens.".starts_with(&reply.narrative), "{:?}", reply.narrative);
        assert!(reply.calls.is_empty() || whole[..end].contains("</tools>"));
    }
}

#[test]
fn a_broken_list_does_nothing() {
    let many = vec![CALL; CALLS_PER_REPLY_MAX + 1].join(",");
    let long = format!("[{{\"name\":\"a\",\"args\":{{\"x\":\"{}\"}}}}]", "y".repeat(300_000));
    let deep = format!("[{{\"name\":\"a\",\"args\":{}1{}}}]", "[".repeat(5_000), "]".repeat(5_000));
    for list in [
        "[",
        "nonsense",
        "[1]",
        "[[]]",
        "{}",
        "[{}]",
        r#"[{"name":""}]"#,
        r#"[{"name":7}]"#,
        r#"[{"name":"a"},]"#,
        r#"[{"name":"a"}, 3]"#,
        "\"x\"",
        "&quot;",
        &format!("[{CALL}] trailing"),
        &format!("[{many}]"),
        &many.replace(',', "\n"),
        &long,
        &deep,
    ] {
        broken(&format!("<response><narrative>Hi</narrative><tools>{list}</tools></response>"), "Hi");
    }
    broken(&format!("<response><tools>[</tools><narrative>Hi</narrative><tools>[{CALL}]</tools></response>"), "Hi");
    let full = vec![CALL; CALLS_PER_REPLY_MAX].join(",");
    assert_eq!(parse_text(&format!("<response><tools>[{full}]</tools></response>")).calls.len(), CALLS_PER_REPLY_MAX);
}

#[test]
fn arguments_that_are_wrong_concern_their_call_alone() {
    let list = format!(r#"[{{"name":"a","args":"{{broken"}},{{"name":"b","args":[1]}},{{"name":"c"}},{CALL}]"#);
    let reply = parse_text(&format!("<response><narrative>Hi</narrative><tools>{list}</tools></response>"));
    assert_eq!(reply.parse_error, None);
    let sound: Vec<bool> = reply.calls.iter().map(|call| call.arguments.is_ok()).collect();
    assert_eq!(sound, [false, false, true, true]);
    assert_eq!(reply.calls[2].arguments, Ok(json!({})));
}

#[test]
fn json_replies() {
    let calls = format!("[{CALL}]");
    for text in [
        format!(r#"{{"narrative":"Hi","tool_calls":{calls}}}"#),
        format!("```json\n{{\"narrative\":\"Hi\",\"tool_calls\":{calls}}}\n```"),
        format!("```json\n{{\"narrative\":\"Hi\",\"tool_calls\":{calls}}}\n```\nHope this helps!"),
        format!("Here you are: {{ \"narrative\":\"Hi\",\"tool_calls\":{calls}}} Enjoy {{it}}."),
        format!(r#"<response>{{"narrative":"Hi","tool_calls":{calls}}}</response>"#),
        format!(r#"{{"response":{{"narrative":"Hi","tools":{calls}}}}}"#),
        format!(r#"{{"owner_id":"o","narrative":"Hi","proposed_actions":{calls},"mood":3}}"#),
        format!(r#"{{"narrative":["Hi"],"tool_calls":{CALL},"tool_calls":{calls},"x":[[[]]]}}"#)
            .replace(&format!("\"tool_calls\":{CALL},"), ""),
        format!(r#"{{"content":"Hi","tool_calls":{calls}}}"#),
    ] {
        sound(&text, "Hi", rolled());
    }
    sound(&format!(r#"{{"proposed_actions":{calls}}}"#), "", rolled());
    sound(CALL, "", rolled());
    sound(&calls, "", rolled());
    sound(
        r#"{"narrative":"a <response> & </narrative> \ud83d\ude00 \ud83d","tool_calls":null}"#,
        "a <response> & </narrative> \u{1f600} \u{fffd}",
        vec![],
    );
    sound("{\"narrative\":\"one\ntwo\",\"tool_calls\":[]}", "one\ntwo", vec![]);
}

#[test]
fn damaged_json_delivers_its_narrative() {
    broken(r#"{"narrative":"The door \"opens"#, "The door \"opens");
    broken(r#"{"narrative":"The door opens\"#, "The door opens");
    broken(r#"{"narrative":"The door opens\u00"#, "The door opens");
    broken("{\"narrative\":\"The door\nopens", "The door\nopens");
    broken(r#"{"narrative":"Hi","tool_calls":[{"tool_name":"#, "Hi");
    broken(r#"{"narrative":"Hi","tool_calls":[7]}"#, "Hi");
    broken(r#"{"narrative":7,"tool_calls":[]}"#, "");
    broken(r#"{"tool_calls":[{"tool_name""#, "");
    broken(r#"Well: {"narrative":"Hi"#, "Hi");
}

#[test]
fn a_long_narrative_is_cut_at_a_character() {
    let reply = parse_text(&format!(
        "<response><narrative>{}</narrative><tools>[{CALL}]</tools></response>",
        "é".repeat(NARRATIVE_BYTES_MAX)
    ));
    assert!(reply.narrative_cut);
    assert_eq!(reply.narrative.len(), NARRATIVE_BYTES_MAX);
    assert_eq!(calls(&reply), rolled());
}

#[test]
fn native_replies() {
    let call = |arguments: &str| WireToolCall {
        id: format!("c{}", arguments.len()),
        name: "a".into(),
        arguments: arguments.into(),
        ..WireToolCall::default()
    };
    let completion = Completion {
        text: " Hello <tools>[1]</tools>".into(),
        tool_calls: vec![
            call(r#"{"x":1}"#),
            call("{\"x\""),
            call(""),
            call("null"),
            call("[]"),
            call(r#"{"x":"a\u0000b\ud800"}"#),
        ],
        ..Completion::default()
    };
    let reply = parse_native(&completion);
    assert_eq!(reply.narrative, "Hello <tools>[1]</tools>");
    assert_eq!(reply.parse_error, None);
    let sound: Vec<bool> = reply.calls.iter().map(|call| call.arguments.is_ok()).collect();
    assert_eq!(sound, [true, false, true, true, false, false]);
    assert_eq!(reply.calls[0].id.as_deref(), Some("c7"));
    let nul =
        parse_native(&Completion { tool_calls: vec![call(r#"{"x\u0000":"a\u0000b"}"#)], ..Completion::default() });
    assert_eq!(nul.calls[0].arguments, Ok(json!({"x": "ab"})));
    let many = Completion {
        text: "Hi".into(),
        tool_calls: vec![call("{}"); CALLS_PER_REPLY_MAX + 1],
        ..Completion::default()
    };
    let reply = parse_native(&many);
    assert!(reply.parse_error.is_some() && reply.calls.is_empty() && reply.narrative == "Hi");
}

/// Ten megabytes of each of these once took other parsers minutes. Four times the length takes about four times as long; sixteen times
/// as long would be quadratic.
#[test]
fn hostile_lengths_take_linear_time() {
    let long = if cfg!(debug_assertions) { 2_000_000 } else { 10_000_000 };
    for (head, unit) in [
        ("<response><narrative>", "<"),
        ("<response><narrative>", "<tools>"),
        ("<response><narrative>", "</narrative"),
        ("<response><narrative>", "</narrative <"),
        ("<response><narrative>", "<![CDATA["),
        ("<response><narrative>", "&"),
        ("<response><narrative>", "&#x"),
        ("<response><narrative>", "a"),
        ("", "<response>"),
        ("", "<response "),
        ("", "<tools>"),
        ("", "<tools>[\""),
        ("", "<tools>[</tools>"),
        ("", "<tools>[]</tools>"),
        ("<response>", "<tools>[\"</tools>"),
        ("<response>", "<tools>["),
        ("<response><tools>[", "[\"</tools>\","),
        ("<response><tools>", "{\"name\":\"a\"}"),
        ("<response>", "<narrative>a</narrative>"),
        ("", "{\"narrative\":"),
        ("", "{\"narrative\":\""),
        ("x", "{\"narrative\":\"a"),
        ("{\"narrative\":\"", "\\u0041"),
        ("{\"narrative\":\"", "\\"),
        ("{\"narrative\":\"a\",\"tool_calls\":[", "[0],"),
        ("{\"narrative\":\"a\",\"tool_calls\":", "["),
        ("{", "{"),
        ("[", "["),
        ("", "```"),
        ("", "<think>"),
        ("", " "),
        ("\u{feff}", "\u{feff}"),
    ] {
        let take = |bytes: usize| {
            let text = [head, &unit.repeat(bytes / unit.len())].concat();
            let before = processor_time();
            let reply = parse_text(&text);
            let took = processor_time().saturating_sub(before);
            assert!(reply.narrative.len() <= NARRATIVE_BYTES_MAX && reply.calls.len() <= CALLS_PER_REPLY_MAX);
            took
        };
        let (short, took) = (take(long / 4), take(long));
        let limit = 10 * short + Duration::from_millis(500);
        assert!(took < limit, "{head}{unit}… took {took:?}, and a quarter of it {short:?}");
    }
}

/// The same for what is taken out of a text before it is parsed, also if it comes in small pieces.
#[test]
fn hostile_lengths_of_thoughts_and_calls_take_linear_time() {
    let long = if cfg!(debug_assertions) { 400_000 } else { 4_000_000 };
    for (head, unit) in [
        ("", "<think>"),
        ("", "</think>"),
        ("<think>", "</thin"),
        ("a", "<tool_call>"),
        ("<tool_call>", "</tool_cal"),
        ("", "<|"),
        ("", "◁"),
        ("", "<"),
    ] {
        let take = |bytes: usize| {
            let text = [head, &unit.repeat(bytes / unit.len())].concat();
            let before = processor_time();
            let mut aside = Aside::new(true, false);
            for piece in text.split_inclusive(|c: char| "nl|".contains(c)) {
                aside.push(piece);
            }
            aside.finish();
            processor_time().saturating_sub(before)
        };
        let (short, took) = (take(long / 4), take(long));
        let limit = 10 * short + Duration::from_millis(500);
        assert!(took < limit, "{head}{unit}… took {took:?}, and a quarter of it {short:?}");
    }
}

/// Pieces that matter to the parser, in any order.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "<response>",
            "</response>",
            "<narrative>",
            "</narrative>",
            "<tools>",
            "</tools>",
            "<tools/>",
            "<",
            ">",
            "/",
            "&",
            "&amp;",
            "&#65;",
            "&#x",
            ";",
            "<![CDATA[",
            "]]>",
            "```",
            "```json\n",
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            ":",
            ",",
            "\"narrative\"",
            "\"tool_calls\"",
            "\"tool_name\"",
            "\"a\"",
            "{\"tool_name\":\"a\",\"parameters\":{}}",
            "\\u",
            "\\ud800",
            "null",
            "1e999",
            "-",
            "\n",
            "\u{0}",
            "\u{feff}",
            "é",
            "𝕏",
            "<think>",
            "</think>",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_text_gives_a_bounded_reply(text in soup()) {
        let reply = parse_text(&text);
        prop_assert!(reply.calls.is_empty() || reply.parse_error.is_none());
        prop_assert!(!reply.narrative.contains('\0'));
        prop_assert!(reply.calls.iter().all(|call| !call.name.is_empty() && call.id.is_none()));
    }

    #[test]
    fn prose_is_kept_as_it_is(text in "[a-zA-Z ,.!?'é-]{0,200}") {
        prop_assert_eq!(parse_text(&text).narrative, text.trim());
    }

    #[test]
    fn an_escaped_narrative_comes_back(text in "[^\\pC]{0,200}") {
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let reply = parse_text(&format!("<response><narrative>{escaped}</narrative><tools>[{CALL}]</tools></response>"));
        prop_assert_eq!(reply.narrative, text.trim());
        prop_assert_eq!(reply.calls.len(), 1);
    }

    #[test]
    fn any_native_arguments_are_an_object_or_an_error(arguments in soup()) {
        let call = WireToolCall { id: "a".into(), name: "b".into(), arguments, ..WireToolCall::default() };
        let reply = parse_native(&Completion { tool_calls: vec![call], ..Completion::default() });
        prop_assert!(reply.calls[0].arguments.as_ref().map_or(true, Value::is_object));
    }
}
