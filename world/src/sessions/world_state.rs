//! The world as a frontend has it: the people at the table, the scene with its tokens, notes and lights, the party, the packs.

use entity::session::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use utoipa::ToSchema;

use super::{
    combat::CombatState,
    delta::{Delta, LightChange, NewToken, NoteChange, Position, SceneChange, TokenMove},
    input::Checked,
};
use base::error::Result;

/// The most bytes of a world state's JSON.
pub const BYTES_MAX: usize = 256 * 1024;
const SCENE_LIST_MAX: usize = 1000;
const PARTY_MAX: usize = 200;
const PACKS_MAX: usize = 1000;
const PLAYERS_MAX: usize = 100;

fn zero() -> Number {
    Number::from(0)
}

/// The people at the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct SessionInfo {
    pub game_system: String,
    pub gm_name: String,
    pub players: Vec<String>,
}

/// A scene's size. `grid` is the size of a square, in the units of the scene's coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Dimensions {
    #[schema(value_type = f64)]
    pub width: Number,
    #[schema(value_type = f64)]
    pub height: Number,
    #[schema(value_type = f64)]
    pub grid: Number,
}

impl Default for Dimensions {
    fn default() -> Self {
        Self { width: zero(), height: zero(), grid: zero() }
    }
}

/// A token on the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub actor_id: Option<String>,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub x: Number,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub y: Number,
    #[serde(default)]
    pub is_player: bool,
}

/// A note on the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Note {
    pub id: String,
    #[serde(default, alias = "name", alias = "title")]
    pub entry_name: String,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub x: Number,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub y: Number,
    #[serde(default)]
    pub is_journal_entry: bool,
}

/// A light on the scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Light {
    pub id: String,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub x: Number,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub y: Number,
    #[serde(default = "zero")]
    #[schema(value_type = f64)]
    pub radius: Number,
    #[serde(default)]
    pub color: Option<String>,
}

/// The present scene.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = WorldScene)]
pub struct Scene {
    pub id: String,
    pub name: String,
    /// The scene's location, by which lore is selected. Without it, the scene's name is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    pub dimensions: Dimensions,
    pub tokens: Vec<Token>,
    pub notes: Vec<Note>,
    pub light_sources: Vec<Light>,
}

impl Scene {
    /// A scene from a row of the campaign.
    #[must_use]
    pub fn of_row(row: &Value) -> Self {
        fn list<T: serde::de::DeserializeOwned>(row: &Value, name: &str) -> Vec<T> {
            let items = row.get(name).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
        }
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |value: Option<&Value>| value.and_then(Value::as_number).cloned();
        let grid = row.get("grid");
        Self {
            id: text("id"),
            name: text("name"),
            location: Some(text("location")).filter(|l| !l.trim().is_empty()),
            dimensions: Dimensions {
                width: number(row.get("width")).unwrap_or_else(zero),
                height: number(row.get("height")).unwrap_or_else(zero),
                grid: number(grid).or_else(|| number(grid.and_then(|g| g.get("size")))).unwrap_or_else(zero),
            },
            tokens: list(row, "tokens"),
            notes: list(row, "notes"),
            light_sources: list(row, "light_sources"),
        }
    }

    /// The scene as a role may see it. Only the game master sees notes.
    #[must_use]
    pub fn seen_by(mut self, role: Role) -> Self {
        if role == Role::Player {
            self.notes.clear();
        }
        self
    }

    /// What changed in this scene.
    #[must_use]
    pub fn since(&self, before: &Self) -> Delta {
        let mut delta = Delta::default();
        if self.id != before.id {
            let (new_scene_id, new_scene_name) = (self.id.clone(), self.name.clone());
            delta.scene_changed = Some(SceneChange { new_scene_id, new_scene_name });
            return delta;
        }
        for token in &self.tokens {
            let (token_id, x, y) = (token.id.clone(), token.x.clone(), token.y.clone());
            match before.tokens.iter().find(|t| t.id == token.id) {
                None => delta.token_created.push(NewToken { token_id, actor_id: token.actor_id.clone(), x, y }),
                Some(then) if then.x != token.x || then.y != token.y => {
                    delta.token_moved.push(TokenMove { token_id, x, y });
                }
                Some(_) => {}
            }
        }
        for note in self.notes.iter().filter(|note| !before.notes.contains(note)) {
            let position = Position { x: note.x.clone(), y: note.y.clone() };
            let (note_id, entry_name) = (note.id.clone(), note.entry_name.clone());
            delta.scene_note_updated.push(NoteChange { note_id, entry_name, position });
        }
        delta.scene_lighting_changed = self.lights_since(before);
        delta
    }

    fn lights_since(&self, before: &Self) -> Vec<LightChange> {
        let change = |light: &Light, status: &str| LightChange {
            light_source_id: light.id.clone(),
            new_status: status.to_owned(),
        };
        let now = self.light_sources.iter().filter_map(|light| {
            match before.light_sources.iter().find(|l| l.id == light.id) {
                None => Some(change(light, "lit")),
                Some(then) if then != light => Some(change(light, "changed")),
                Some(_) => None,
            }
        });
        let gone = before.light_sources.iter().filter(|l| !self.light_sources.iter().any(|n| n.id == l.id));
        now.chain(gone.map(|light| change(light, "extinguished"))).collect()
    }
}

/// A character of the party.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PartyMember {
    pub id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub player: Option<String>,
}

/// A pack of the frontend's compendium.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pack {
    pub pack_name: String,
    #[serde(default, rename = "type")]
    pub kind: String,
}

/// The world as a frontend has it. Missing parts are taken from the campaign. Unknown members are not kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct WorldState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_info: Option<SessionInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_scene: Option<Scene>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub party_compendium: Vec<PartyMember>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compendium_index: Vec<Pack>,
    /// The fight in progress, like a `combat_state` event.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub active_encounter: Option<CombatState>,
}

impl WorldState {
    /// Checks the sizes of texts and lists.
    ///
    /// # Errors
    /// `validation_failed` with pointers below `at`.
    pub fn check(&self, at: &str) -> Result<()> {
        let mut checked = Checked::at(at);
        if let Some(info) = &self.session_info {
            checked.text("session_info/game_system", &info.game_system);
            checked.text("session_info/gm_name", &info.gm_name);
            checked.count("session_info/players", info.players.len(), PLAYERS_MAX);
            info.players.iter().take(PLAYERS_MAX).for_each(|p| checked.text("session_info/players", p));
        }
        if let Some(scene) = &self.active_scene {
            check_scene(&mut checked, scene);
        }
        checked.count("party_compendium", self.party_compendium.len(), PARTY_MAX);
        for (i, member) in self.party_compendium.iter().enumerate().take(PARTY_MAX) {
            for text in [&member.id, &member.name, member.player.as_ref().unwrap_or(&member.name)] {
                checked.text(&format!("party_compendium/{i}"), text);
            }
        }
        checked.count("compendium_index", self.compendium_index.len(), PACKS_MAX);
        for (i, pack) in self.compendium_index.iter().enumerate().take(PACKS_MAX) {
            checked.text(&format!("compendium_index/{i}"), &pack.pack_name);
            checked.text(&format!("compendium_index/{i}"), &pack.kind);
        }
        checked.finish()?;
        self.active_encounter.as_ref().map_or(Ok(()), |e| e.check(&format!("{at}/active_encounter")))
    }

    /// What changed since the frontend's previous world state.
    #[must_use]
    pub fn since(&self, before: Option<&Self>) -> Delta {
        match (before.and_then(|b| b.active_scene.as_ref()), &self.active_scene) {
            (Some(then), Some(now)) => now.since(then),
            _ => Delta::default(),
        }
    }
}

fn check_scene(checked: &mut Checked, scene: &Scene) {
    checked.text("active_scene/id", &scene.id);
    checked.text("active_scene/name", &scene.name);
    checked.text("active_scene/location", scene.location.as_deref().unwrap_or_default());
    checked.count("active_scene/tokens", scene.tokens.len(), SCENE_LIST_MAX);
    checked.count("active_scene/notes", scene.notes.len(), SCENE_LIST_MAX);
    checked.count("active_scene/light_sources", scene.light_sources.len(), SCENE_LIST_MAX);
    for (i, token) in scene.tokens.iter().enumerate().take(SCENE_LIST_MAX) {
        for text in [&token.id, &token.name, token.actor_id.as_ref().unwrap_or(&token.id)] {
            checked.text(&format!("active_scene/tokens/{i}"), text);
        }
    }
    for (i, note) in scene.notes.iter().enumerate().take(SCENE_LIST_MAX) {
        checked.text(&format!("active_scene/notes/{i}"), &note.id);
        checked.text(&format!("active_scene/notes/{i}"), &note.entry_name);
    }
    for (i, light) in scene.light_sources.iter().enumerate().take(SCENE_LIST_MAX) {
        checked.text(&format!("active_scene/light_sources/{i}"), &light.id);
        checked.text(&format!("active_scene/light_sources/{i}"), light.color.as_deref().unwrap_or_default());
    }
}
