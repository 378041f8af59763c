//! Describes the answers: a sentence for each, and one shared problem document for all errors.

use serde_json::{Value, json};

use super::document::{Object, operations};

/// The name of the shared error answer.
const PROBLEM: &str = "Problem";

/// Describes every answer, and refers to the shared problem document.
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
            "What went wrong and what to do about it. `/problems/{code}` explains the `code`.".into();
        document["components"]["responses"] = json!({ PROBLEM: problem });
    }
}

fn sentence(method: &str, status: &str, answer: &Object) -> &'static str {
    let is_list = answer.get("content").is_some_and(|content| {
        content["application/json"]["schema"]["$ref"].as_str().is_some_and(|name| name.contains("/Items_"))
    });
    match (method, status) {
        ("get", "200") if is_list => "One page of the list.",
        ("get", "200") => "The requested resource.",
        ("patch" | "put", "200") => "The resource after the change.",
        (_, "200") => "The result.",
        (_, "201") => "Created. `Location` is the URL of the new resource.",
        (_, "202") => "Started. `Location` is the URL to ask for the result.",
        (_, "204") => "Done. The answer has no body.",
        (_, "101") => "The connection is now a WebSocket.",
        (_, "503") => "The server cannot take requests now.",
        _ => "Nothing has changed.",
    }
}
