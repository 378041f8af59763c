//! Scenes in the editor.

use entity::scene;

use super::{
    Tab,
    form::{Cell, Column, Field, Group, Kind, OTHER_PROGRAMS, Rows, Shape},
    world_row::World,
};
use world::scenes::Scenes;

const TOKENS: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("id", "Id"),
        Column::text("name", "Name"),
        Column::text("actor_id", "Whose"),
        Column::number("x", "x"),
        Column::number("y", "y"),
        Column::of("is_player", "Player", Cell::YesNo),
    ],
});

impl World for Scenes {
    const TAB: Tab = Tab::Scenes;
    const ONE: &'static str = "scene";
    const MANY: &'static str = "Scenes";
    const PATH: &'static str = "scenes";
    const ABOUT: &'static str = "Where the game takes place: who stands where, and the game master's notes.";
    const EXAMPLE: &'static str = "The tavern at night, at the location gilded_gull: what is said there belongs to it.";
    const COLUMNS: &'static [&'static str] = &["State", "Location", "Channel", "Tokens"];
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/name", "Name", Kind::Line).needed(),
                Field::new("/slug", "Slug", Kind::Line)
                    .hint("Its name in URLs. Leave empty to derive it from the name."),
                Field::new("/location", "Location", Kind::Line)
                    .hint("The location in the words of lore about it. Leave empty to use the scene's name."),
                Field::new("/channel", "Channel", Kind::Line)
                    .hint("The channel of the frontend in which the scene is played."),
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
                Field::new("/tokens", "Tokens", TOKENS),
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
