//! A fight as pages show it, from the encounter that the API shows to the same reader.

use serde_json::Value;

/// A fight.
pub struct Fight {
    pub name: String,
    pub round: i64,
    /// By initiative.
    pub fighters: Vec<Fighter>,
}

/// Somebody in a fight.
pub struct Fighter {
    pub name: String,
    pub initiative: Option<i64>,
    pub status: String,
    /// Hit points and their maximum, where the reader may know them.
    pub hp: Option<(i64, i64)>,
    pub conditions: Vec<String>,
    pub has_turn: bool,
    pub is_enemy: bool,
}

impl Fight {
    /// A fight from an encounter as its reader is shown it.
    #[must_use]
    pub fn of(view: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let current = &view["current_participant_id"];
        let mut fighters: Vec<Fighter> = view["participants"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|p| Fighter {
                name: text(&p["name"]),
                initiative: p["initiative"].as_f64().map(|n| n.round() as i64),
                status: text(&p["status"]),
                hp: p["hp"].as_i64().zip(p["max_hp"].as_i64()),
                conditions: p["conditions"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|c| c.as_str().or_else(|| c["name"].as_str()).unwrap_or_default().to_owned())
                    .collect(),
                has_turn: !current.is_null() && &p["id"] == current,
                is_enemy: p["is_enemy"] == Value::Bool(true),
            })
            .collect();
        fighters.sort_by_key(|fighter| std::cmp::Reverse(fighter.initiative));
        let name = view["name"].as_str().filter(|name| !name.is_empty()).unwrap_or("A fight");
        Self { name: name.to_owned(), round: view["round"].as_i64().unwrap_or(0), fighters }
    }
}
