//! Fields that several kinds of rows have.

use super::{
    Field, Group, Kind,
    rows::{Cell, Column, Rows, Shape},
};

/// The sizes of creatures.
pub const SIZES: Kind = Kind::Choice(&[
    ("tiny", "Tiny"),
    ("small", "Small"),
    ("medium", "Medium"),
    ("large", "Large"),
    ("huge", "Huge"),
    ("gargantuan", "Gargantuan"),
]);

/// The row's name in another program.
pub const EXTERNAL_REF: Field = Field::new("/external_ref", "External reference", Kind::Line);

/// Data that frontends store in the row.
pub const EXTENSIONS: Field = Field::new("/extensions", "Extensions", Kind::Json { rows: 3 });

/// Fields that only other programs use.
pub const OTHER_PROGRAMS: Group =
    Group { title: "For other programs", is_folded: true, fields: &[EXTERNAL_REF, EXTENSIONS] };

/// Keeps AI tools away from a row.
pub const AI_LOCK: Field = Field::new("/ai_lock", "Locked", Kind::Tick).hint("The AI's tools cannot change it.");

/// What an author tells the model about an NPC or owner.
pub const GUIDANCE: Group = Group {
    title: "Instructions, greetings and examples",
    is_folded: true,
    fields: &[
        Field::new("/instructions", "Instructions", Kind::Text { rows: 5 })
            .hint("How the model should play this character. The campaign's instructions apply too. Write {{original}} where they should stand."),
        Field::new("/scenario", "Scenario", Kind::Text { rows: 3 }).hint("The situation in which the character talks to players."),
        Field::new("/example_dialogue", "Example dialogue", Kind::Text { rows: 5 })
            .hint("Sample lines that show how the character speaks. Write {{char}} for its name and {{user}} for the name of the player's character."),
        Field::new("/greetings", "Greetings", Kind::Parts { rows: 4 })
            .hint("First lines with which the character can begin a conversation. Put a line with --- between two greetings."),
        Field::new("/post_history_instructions", "Instructions after the conversation", Kind::Text { rows: 3 })
            .hint("The last thing that the model reads before it answers."),
        Field::new("/authors_note/text", "Author's note", Kind::Text { rows: 3 }).hint("The model reads this reminder in the middle of the conversation, in every turn."),
        Field::new("/authors_note/depth", "Depth of the note", Kind::Number)
            .hint("The number of messages between the note and the end of the conversation. 0 puts the note at the end. An empty field means 4."),
    ],
};

/// Active conditions.
pub const CONDITIONS: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("name", "Condition").offers("srd-conditions"),
        Column::number("level", "Level"),
        Column::number("rounds_remaining", "Rounds left"),
        Column::text("source", "Source"),
    ],
});

/// Active effects.
pub const EFFECTS: Kind = Kind::Rows(&Rows {
    shape: Shape::Objects,
    columns: &[
        Column::text("name", "Effect").offers("srd-effects"),
        Column::number("rounds_remaining", "Rounds left"),
        Column::text("source", "Source"),
    ],
});

/// What somebody carries.
pub const INVENTORY: Kind = Kind::Rows(&Rows {
    shape: Shape::Named,
    columns: &[Column::text("name", "Thing"), Column::number("quantity", "How many")],
});

/// What somebody wears.
pub const WORN: Kind = Kind::Rows(&Rows {
    shape: Shape::One,
    columns: &[
        Column::text("name", "Name").offers("srd-armor"),
        Column::number("bonus", "Magic bonus"),
        Column::of("proficient", "Proficient", Cell::YesNo),
    ],
});
