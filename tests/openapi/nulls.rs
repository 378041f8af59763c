//! A member that is null never makes the server fail, and is accepted only where the document allows null.

use std::collections::BTreeMap;

use reqwest::Method;
use serde_json::Value;
use tavernkeep::routes;

use super::examples::{OTHERWISE, filled, operations};
use crate::support::Server;

fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    schema["$ref"].as_str().and_then(|place| document.pointer(place.trim_start_matches('#'))).unwrap_or(schema)
}

/// Whether a schema allows null: by its type, by an alternative, or because it allows anything.
fn allows_null(document: &Value, schema: &Value) -> bool {
    let schema = resolved(document, schema);
    let alternatives = ["oneOf", "anyOf"].iter().filter_map(|word| schema[word].as_array()).flatten();
    match &schema["type"] {
        Value::String(one) => one == "null",
        Value::Array(types) => types.iter().any(|one| one == "null"),
        _ => {
            let mut alternatives = alternatives.peekable();
            alternatives.peek().is_none() || alternatives.any(|one| allows_null(document, one))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_is_taken_where_the_document_allows_it_and_nowhere_else() {
    let document = routes::published().unwrap();
    let server = Server::start().await;
    server.model.set_script(rehearsal::Script::always(rehearsal::Reply::persona()));
    let tenant = server.tenant("acme").await;
    tenant.world().await;
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for operation in operations(&document) {
        let Some((kind, example)) = &operation.body else { continue };
        if operation.method == Method::DELETE || OTHERWISE.iter().any(|(id, _)| *id == operation.id) {
            continue;
        }
        let method = operation.method.as_str().to_lowercase();
        let content = &document["paths"][&operation.path][method]["requestBody"]["content"][kind]["schema"];
        let Some(properties) = resolved(&document, content)["properties"].as_object() else { continue };
        for (name, schema) in properties {
            tried += 1;
            let mut body = example.clone();
            body[name] = Value::Null;
            let request = tenant.request(operation.method.clone(), &filled(&operation, &BTreeMap::new()));
            let answer = request.header("Content-Type", kind).body(body.to_string()).send().await.unwrap();
            let status = answer.status();
            if status.is_server_error() || (status.is_success() && !allows_null(&document, schema)) {
                wrong.push(format!("{}: {name}: {status} {:.200}", operation.id, answer.text().await.unwrap()));
            }
        }
    }
    assert!(tried > 200, "{tried} members");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
