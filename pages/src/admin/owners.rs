//! Owners in the editor.

use entity::owner::{self, Aspect};
use serde_json::{Value, json};

use super::{
    Tab,
    form::{AI_LOCK, Field, GUIDANCE, Group, Kind, OTHER_PROGRAMS},
    world_row::World,
};
use ai::tools;
use entity::kind::EntityKind;
use world::owners::Owners;

impl World for Owners {
    const TAB: Tab = Tab::Owners;
    const ONE: &'static str = "owner";
    const MANY: &'static str = "Owners";
    const PATH: &'static str = "owners";
    const ABOUT: &'static str = "Guardians of a location, a race, a profession or a faction. They react by themselves when the actions of characters matter to them.";
    const EXAMPLE: &'static str =
        "The town council watches over the location town_square, and warns whoever draws a blade there.";
    const COLUMNS: &'static [&'static str] = &["Watches", "Influence", "Reaction threshold"];
    const REACTS: bool = true;
    const GROUPS: &'static [Group] = &[
        Group {
            title: "",
            is_folded: false,
            fields: &[
                Field::new("/name", "Name", Kind::Line).needed(),
                Field::new("/slug", "Slug", Kind::Line)
                    .hint("Its name in URLs and tools. Leave empty to derive it from the name."),
                Field::new(
                    "/monitored_aspect",
                    "Watches a",
                    Kind::Choice(&[
                        ("location", "location"),
                        ("race", "race"),
                        ("profession", "profession"),
                        ("faction", "faction"),
                    ]),
                ),
                Field::new("/associated_id", "Which one", Kind::Line).needed().hint(
                    "The same name as in characters and NPCs. Case and spaces do not matter. Decides which actions the \
                     owner notices.",
                ),
                Field::new("/reaction_threshold", "Reaction threshold", Kind::Number).hint(
                    "The owner reacts by itself when its score for a character reaches this number. Leave empty for never.",
                ),
                Field::new("/immediate_threshold", "Immediate threshold", Kind::Number).hint(
                    "The owner reacts at once to a single action with this score. Leave empty for never.",
                ),
                Field::new("/model", "Model profile", Kind::Line)
                    .hint("Slug of the model profile that this owner uses. Leave empty for the campaign's choice."),
                Field::new("/influence/current", "Influence", Kind::Number)
                    .moving()
                    .hint("Grows by itself up to the maximum. Reactions and answers to prayers do not spend it."),
                Field::new("/influence/max", "Maximum influence", Kind::Number),
                Field::new("/influence/regen_per_hour", "Regained per hour", Kind::Number),
                Field::new("/description", "Description", Kind::Text { rows: 5 }),
                Field::new("/personality_prompt", "Personality", Kind::Text { rows: 8 })
                    .hint("How the model should play this owner. The owner's prompt begins with this text."),
            ],
        },
        GUIDANCE,
        Group {
            title: "Tools",
            is_folded: true,
            fields: &[
                Field::new("/available_tools", "Tools", Kind::Tools(EntityKind::Owner))
                    .hint("For tools with your own descriptions or limits: a JSON list of {name, description, parameters, exclusive}."),
                AI_LOCK,
            ],
        },
        OTHER_PROGRAMS,
    ];

    fn cells(owner: &owner::Model) -> Vec<String> {
        let aspect = match owner.monitored_aspect {
            Aspect::Location => "location",
            Aspect::Race => "race",
            Aspect::Profession => "profession",
            Aspect::Faction => "faction",
        };
        vec![
            format!("{aspect} {}", owner.associated_id),
            format!("{:.0} of {:.0}", owner.influence_current, owner.influence_max),
            owner.reaction_threshold.map(|score| score.to_string()).unwrap_or_default(),
        ]
    }

    fn blank() -> Value {
        json!({
            "monitored_aspect": "location",
            "available_tools": [tools::OWNER_MEMORY],
        })
    }
}
