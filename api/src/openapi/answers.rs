//! What the document says of answers: a sentence for each, and one problem for all that went wrong.

use serde_json::{Value, json};

use super::document::{Object, operations};

/// The name of the answer that every route may give.
const PROBLEM: &str = "Problem";

/// Describes every answer, and names what is answered when something is wrong.
pub fn describe(document: &mut Value) {
    let mut problem = None;
    operations(document, |_, method, operation| {
        let Some(answers) = operation.get_mut("responses").and_then(Value::as_object_mut) else { return };
        problem = problem.take().or_else(|| answers.get("default").cloned());
        let reference = json!({ "$ref": format!("#/components/responses/{PROBLEM}") });
        answers.insert("4XX".to_owned(), reference.clone());
        answers.insert("default".to_owned(), reference);
        for (status, answer) in answers.iter_mut().filter(|(status, _)| !matches!(status.as_str(), "4XX" | "default")) {
            let Some(answer) = answer.as_object_mut() else { continue };
            let said = answer.get("description").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
            if !said {
                let text = sentence(method, status, answer);
                answer.insert("description".to_owned(), text.into());
            }
        }
    });
    if let Some(mut problem) = problem {
        problem["description"] =
            "What is wrong and what to do about it; `code` says which of `/problems/{code}` it is.".into();
        document["components"]["responses"] = json!({ PROBLEM: problem });
    }
}

fn sentence(method: &str, status: &str, answer: &Object) -> &'static str {
    let is_list = answer.get("content").is_some_and(|content| {
        content["application/json"]["schema"]["$ref"].as_str().is_some_and(|name| name.contains("/Items_"))
    });
    match (method, status) {
        ("get", "200") if is_list => "One page of the list.",
        ("get", "200") => "What was asked for, as it stands.",
        ("patch" | "put", "200") => "What was changed, as it stands now.",
        (_, "200") => "What came of it.",
        (_, "201") => "It was made; `Location` says where it is.",
        (_, "202") => "It has begun and goes on; `Location` says where to ask for it.",
        (_, "204") => "It is done; there is nothing to say.",
        (_, "101") => "The connection is a WebSocket now.",
        (_, "503") => "The server cannot take requests now.",
        _ => "Nothing has changed.",
    }
}
