//! Describes which orders each list supports. All lists have the parameter `sort`, but its values differ.

use serde_json::{Value, json};

use super::document::operations;
use edge::http::{
    paging::SortKey::{self, Created, Name, Updated},
    resource::Resource,
};
use world::{
    campaigns::Campaigns, characters::Characters, encounters::Encounters, lore::LoreEntries, messages::Messages,
    npcs::Npcs, owners::Owners, scenes::Scenes, sessions::Sessions,
};

/// The orders of the list at a path. A list that does not show rows of the world is ordered by creation only.
fn orders(path: &str) -> &'static [SortKey] {
    match path.rsplit('/').next().unwrap_or_default() {
        "campaigns" => Campaigns::SORTS,
        "characters" => Characters::SORTS,
        "encounters" => Encounters::SORTS,
        "lore" => LoreEntries::SORTS,
        "messages" => Messages::SORTS,
        "npcs" => Npcs::SORTS,
        "owners" => Owners::SORTS,
        "scenes" => Scenes::SORTS,
        "sessions" => Sessions::SORTS,
        "memories" => &[Created, Updated, Name],
        _ => &[Created],
    }
}

/// Describes for each list which values `sort` accepts.
pub fn say(document: &mut Value) {
    operations(document, |path, _, operation| {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for sort in parameters.into_iter().flatten().filter(|parameter| parameter["name"] == "sort") {
            let names: Vec<&str> = orders(path).iter().map(|key| key.as_str()).collect();
            let listed: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            sort["description"] = json!(format!("{}. Put `-` in front for descending order.", listed.join(" or ")));
            sort["schema"]["pattern"] = json!(format!("^-?({})$", names.join("|")));
        }
    });
}
