//! Fields that several kinds have.

use super::{Field, Group, Kind};

/// How large a creature is.
pub const SIZES: Kind = Kind::Choice(&[
    ("tiny", "Tiny"),
    ("small", "Small"),
    ("medium", "Medium"),
    ("large", "Large"),
    ("huge", "Huge"),
    ("gargantuan", "Gargantuan"),
]);

/// What a row is called elsewhere.
pub const EXTERNAL_REF: Field = Field::new("/external_ref", "External reference", Kind::Line);

/// Keys of clients' own.
pub const EXTENSIONS: Field = Field::new("/extensions", "Extensions", Kind::Json { rows: 3 });

/// What only programs look at.
pub const OTHER_PROGRAMS: Group =
    Group { title: "For other programs", is_folded: true, fields: &[EXTERNAL_REF, EXTENSIONS] };
