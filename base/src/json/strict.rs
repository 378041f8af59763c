//! Reads a text of JSON strictly: no key twice in one object, limited depth, limited number of values.
//!
//! If a parser takes the last of two equal keys, two readers may understand the same text differently.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// The largest depth of nested objects and lists. The journal and records wrap what was sent, and readers stop at 128.
pub const DEPTH_MAX: usize = 64;

/// The largest number of values in one text.
pub const VALUES_MAX: usize = 1_000_000;

/// Reads a text as one JSON value. A byte order mark before it means nothing.
///
/// # Errors
/// Where the JSON is invalid, which key occurs twice, or that it is too deep or has too many values.
pub fn parse(text: &str) -> serde_json::Result<Value> {
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    let value = Strict { left: &left, deeper: DEPTH_MAX }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// What is left of the limits: values for the whole text, and levels of nesting for this value.
#[derive(Clone, Copy)]
struct Strict<'a> {
    left: &'a Cell<usize>,
    deeper: usize,
}

impl<'a> Strict<'a> {
    fn inside<E: serde::de::Error>(self) -> Result<Strict<'a>, E> {
        match self.deeper.checked_sub(1) {
            Some(deeper) => Ok(Strict { deeper, ..self }),
            None => Err(E::custom(format!("objects and lists are nested more than {DEPTH_MAX} levels deep"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(format!("it contains more than {VALUES_MAX} values"))),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(Number::from_f64(v).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inside)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inside = self.inside()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                let shown: String = key.chars().take(60).collect();
                return Err(A::Error::custom(format!("the key `{shown}` occurs twice in one object")));
            }
            let value = map.next_value_seed(inside)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
