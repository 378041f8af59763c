//! The types of resolvers' arguments: bounded numbers, short texts, the words of the rules. Each describes its values in its
//! schema, and rejects others with a sentence.

use std::borrow::Cow;

use rules::srd::{Ability, DAMAGE_TYPES, SKILLS, Skill, damage_type, skill};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::Error as _};

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within<const MIN: i32, const MAX: i32>(pub i32);

impl<'de, const MIN: i32, const MAX: i32> Deserialize<'de> for Within<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = i64::deserialize(from)?;
        match i32::try_from(number) {
            Ok(number) if (MIN..=MAX).contains(&number) => Ok(Self(number)),
            _ => Err(D::Error::custom(format!("must be a whole number from {MIN} to {MAX}"))),
        }
    }
}

impl<const MIN: i32, const MAX: i32> JsonSchema for Within<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Within_{MIN}_{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

/// A text of 1 to `MAX` characters, without whitespace around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words<const MAX: usize>(pub String);

impl<'de, const MAX: usize> Deserialize<'de> for Words<MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let text = text.trim();
        match text.chars().count() {
            0 => Err(D::Error::custom("must not be blank")),
            length if length > MAX => Err(D::Error::custom(format!("must have at most {MAX} characters"))),
            _ => Ok(Self(text.to_owned())),
        }
    }
}

impl<const MAX: usize> JsonSchema for Words<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Words_{MAX}").into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX })
    }
}

/// A list of at most `MAX` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpTo<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T, const MIN: usize, const MAX: usize> Default for UpTo<T, MIN, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MIN: usize, const MAX: usize> Deserialize<'de> for UpTo<T, MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let items = Vec::<T>::deserialize(from)?;
        if (MIN..=MAX).contains(&items.len()) {
            return Ok(Self(items));
        }
        Err(D::Error::custom(format!("must have {MIN} to {MAX} entries")))
    }
}

impl<T: JsonSchema, const MIN: usize, const MAX: usize> JsonSchema for UpTo<T, MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("UpTo_{MAX}_{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({ "type": "array", "items": items, "minItems": MIN, "maxItems": MAX })
    }
}

/// A word of the rules, in upper or lower case.
macro_rules! word {
    ($(#[$meta:meta])* $name:ident($inner:ty), $what:literal, $find:expr, $all:expr) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                let find: fn(&str) -> Option<$inner> = $find;
                find(&text).map(Self).ok_or_else(|| {
                    let shown: String = text.chars().take(60).collect();
                    D::Error::custom(format!(concat!("there is no ", $what, " \"{}\"; there are {}"), shown, $all.join(", ")))
                })
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "enum": $all })
            }
        }
    };
}

word!(
    /// One of the 18 skills.
    SkillName(&'static Skill), "skill", skill, SKILLS.map(|s| s.name)
);
word!(
    /// One of the six abilities, by its full or three-letter name.
    AbilityName(Ability), "ability", Ability::named, Ability::ALL.map(Ability::name)
);
word!(
    /// One of the 13 damage types.
    DamageType(&'static str), "damage type", damage_type, DAMAGE_TYPES
);

/// Parses null as the default.
pub fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

/// Parses a name. Models may leave it empty instead of missing.
pub fn unless_blank<'de, D: Deserializer<'de>, const MAX: usize>(from: D) -> Result<Option<Words<MAX>>, D::Error> {
    match Option::<String>::deserialize(from)? {
        Some(text) if !text.trim().is_empty() => {
            Words::deserialize(serde::de::value::StringDeserializer::new(text)).map(Some)
        }
        _ => Ok(None),
    }
}
