//! Scenes, as the editor shows them.

use entity::scene;

use super::{
    Tab,
    form::{Field, Group, Kind, OTHER_PROGRAMS},
    world::World,
};
use crate::scenes::Scenes;

impl World for Scenes {
    const TAB: Tab = Tab::Scenes;
    const ONE: &'static str = "scene";
    const MANY: &'static str = "Scenes";
    const PATH: &'static str = "scenes";
    const ABOUT: &'static str = "Places in play: who stands where, and what the game master notes about it.";
    const COLUMNS: &'static [&'static str] = &["State", "Place", "Channel", "Tokens"];
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/name", "Name", Kind::Line).needed(),
                Field::new("/slug", "Slug", Kind::Line).hint("How paths name it; made of the name if left empty."),
                Field::new("/location", "Place", Kind::Line)
                    .hint("As lore of zones names it; the scene's name is if left empty."),
                Field::new("/channel", "Channel", Kind::Line).hint("The frontend's channel that it plays in."),
                Field::new("/width", "Width", Kind::Number),
                Field::new("/height", "Height", Kind::Number),
                Field::new("/active", "In play", Kind::Tick),
                Field::new("/description", "Description", Kind::Text { rows: 5 }),
            ],
        },
        Group {
            title: "Tokens, notes, lights",
            is_folded: true,
            fields: &[
                Field::new("/tokens", "Tokens", Kind::Json { rows: 6 })
                    .hint("A list of {id, name, actor_id, x, y, is_player}."),
                Field::new("/notes", "Notes", Kind::Json { rows: 4 }),
                Field::new("/light_sources", "Lights", Kind::Json { rows: 3 }),
                Field::new("/grid", "Grid", Kind::Json { rows: 3 }),
            ],
        },
        OTHER_PROGRAMS,
    ];

    fn cells(scene: &scene::Model) -> Vec<String> {
        vec![
            if scene.active { "in play" } else { "" }.to_owned(),
            scene.location.clone().unwrap_or_default(),
            scene.channel.clone().unwrap_or_default(),
            scene.tokens.0.len().to_string(),
        ]
    }
}
