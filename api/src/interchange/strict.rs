//! JSON of strangers: UTF-8, no key twice in one object, not too deep, not too many values, no NUL.
//!
//! A parser that takes the last of two equal keys lets a file say one thing to one reader and another to the next.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{
    error::{Code, Error, Result},
    http::body,
};

/// Values of one file, all together.
const VALUES_MAX: usize = 1_000_000;

/// Reads a file as JSON; a byte order mark before it is passed over.
///
/// # Errors
/// `bad_request` saying where it stops being JSON, or which key stands twice; `validation_failed` for NUL characters.
pub fn parse(bytes: &[u8]) -> Result<Value> {
    let text = text(bytes)?;
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_str(text);
    let value =
        Strict(&left).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value)).map_err(refused)?;
    body::refuse_nul(&value, &mut String::new())?;
    Ok(value)
}

/// The file as text.
///
/// # Errors
/// `bad_request` if it is not UTF-8.
pub fn text(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let detail = format!("The file is not UTF-8: see the byte at position {}.", e.valid_up_to());
        Error::new(Code::BadRequest, detail)
    })?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

/// What is wrong with the JSON, for who sent it.
pub fn refused(error: serde_json::Error) -> Error {
    Error::new(Code::BadRequest, format!("The file is not JSON that can be read: {error}."))
}

#[derive(Clone, Copy)]
struct Strict<'a>(&'a Cell<usize>);

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self.0.get().checked_sub(1) {
            Some(left) => self.0.set(left),
            None => return Err(D::Error::custom(format!("it holds more than {VALUES_MAX} values"))),
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
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                let shown: String = key.chars().take(60).collect();
                return Err(A::Error::custom(format!("the key `{shown}` stands twice in one object")));
            }
            let value = map.next_value_seed(self)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}
