//! Fields that several kinds of rows have.

use super::{Field, Group, Kind};

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
