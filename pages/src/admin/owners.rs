//! Owners in the editor.

use entity::owner::{self, Aspect};
use serde_json::{Value, json};

use super::{
    Tab,
    form::{Field, GUIDANCE, Group, Kind, OTHER_PROGRAMS},
    world_row::World,
};
use ai::tools;
use entity::kind::EntityKind;
use world::{actors, owners::Owners};

impl World for Owners {
    const TAB: Tab = Tab::Owners;
    const ONE: &'static str = "owner";
    const MANY: &'static str = "Owners";
    const PATH: &'static str = "owners";
    const ABOUT: &'static str = "Guardians of a location, a race, a profession or a faction. They react by themselves when the actions of characters matter to them.";
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
                    "The owner reacts by itself when its score for a character reaches this number. 0 means after every action that concerns it.",
                ),
                Field::new("/model", "Model profile", Kind::Line)
                    .hint("Slug of the model profile that this owner uses. Leave empty for the campaign's choice."),
                Field::new("/influence/current", "Influence", Kind::Number)
                    .moving()
                    .hint("Grows by itself up to the maximum. Reactions and answers to prayers do not spend it."),
                Field::new("/influence/max", "Maximum influence", Kind::Number),
                Field::new("/influence/regen_per_hour", "Regained per hour", Kind::Number),
                Field::new("/resources", "Resources", Kind::Json { rows: 3 })
                    .hint("A list of {name, amount, max}. The prompts of the owner and of its NPCs show it."),
                Field::new("/description", "Description", Kind::Text { rows: 5 }),
                Field::new("/personality_prompt", "Personality", Kind::Text { rows: 8 })
                    .hint("How the model should play this owner. The owner's prompt begins with this text."),
            ],
        },
        GUIDANCE,
        Group {
            title: "Tools",
            is_folded: true,
            fields: &[Field::new("/available_tools", "Tools", Kind::Tools(EntityKind::Owner))
                .hint("For tools with your own descriptions or limits: a JSON list of {name, description, parameters, exclusive}.")],
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
            owner.reaction_threshold.to_string(),
        ]
    }

    fn blank() -> Value {
        json!({
            "monitored_aspect": "location",
            "available_tools": [tools::OWNER_MEMORY],
            "reaction_threshold": actors::threshold(),
        })
    }
}
