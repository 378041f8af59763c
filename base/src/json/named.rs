//! Reads a value as a type, by the names of its members.
//!
//! A struct with derived serde code can also be read from a list, its items in the order of the fields. That is never
//! meant in a request: a new field in the struct would change the meaning of the list. [`Named`] reads a value as
//! serde_json does, but without this.

use serde::{
    Deserializer,
    de::{
        DeserializeSeed, EnumAccess, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
        VariantAccess, Visitor,
    },
    forward_to_deserialize_any,
};
use serde_json::{Error, Value};

/// A value whose structs must be objects.
pub struct Named(pub Value);

type Result<T> = std::result::Result<T, Error>;

impl Named {
    /// The error for a value that is not an object.
    fn no_object(&self, expected: &dyn Expected) -> Error {
        match &self.0 {
            Value::Array(_) => Error::custom("must be an object with named members, not a list"),
            Value::String(text) => Error::invalid_type(Unexpected::Str(text), expected),
            Value::Bool(value) => Error::invalid_type(Unexpected::Bool(*value), expected),
            Value::Number(_) => Error::invalid_type(Unexpected::Other("number"), expected),
            Value::Null => Error::invalid_type(Unexpected::Unit, expected),
            Value::Object(_) => Error::invalid_type(Unexpected::Map, expected),
        }
    }
}

impl<'de> IntoDeserializer<'de, Error> for Named {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Named {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => number.deserialize_any(visitor),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => {
                let length = items.len();
                let mut items = Items(items.into_iter());
                let value = visitor.visit_seq(&mut items)?;
                if items.0.len() == 0 { Ok(value) } else { Err(Error::invalid_length(length, &"fewer items")) }
            }
            Value::Object(members) => visitor.visit_map(Members { rest: members.into_iter(), value: None }),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if self.0.is_object() { self.deserialize_any(visitor) } else { Err(self.no_object(&visitor)) }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let (name, value) = match self.0 {
            Value::String(name) => (name, None),
            Value::Object(members) if members.len() == 1 => {
                let one = members.into_iter().next();
                one.map(|(name, value)| (name, Some(value))).ok_or_else(|| Error::custom("a variant has a name"))?
            }
            _ => return Err(self.no_object(&visitor)),
        };
        visitor.visit_enum(Variant { name, value })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items(std::vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Items {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        self.0.next().map(|item| seed.deserialize(Named(item))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Members {
    rest: serde_json::map::IntoIter,
    value: Option<Value>,
}

impl<'de> MapAccess<'de> for Members {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((name, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(value);
        seed.deserialize(Key(name)).map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        match self.value.take() {
            Some(value) => seed.deserialize(Named(value)),
            None => Err(Error::custom("a value has a key")),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// A member's name. In a map with numeric keys, the keys are the numbers as text.
struct Key(String);

macro_rules! numeric_keys {
    ($($deserialize:ident $visit:ident)+) => {
        $(fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            match self.0.parse() {
                Ok(number) => visitor.$visit(number),
                Err(_) => visitor.visit_string(self.0),
            }
        })+
    };
}

impl<'de> Deserializer<'de> for Key {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_string(self.0)
    }

    numeric_keys! {
        deserialize_i8 visit_i8
        deserialize_i16 visit_i16
        deserialize_i32 visit_i32
        deserialize_i64 visit_i64
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        Named(Value::String(self.0)).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

struct Variant {
    name: String,
    value: Option<Value>,
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Error;
    type Variant = Content;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Content)> {
        Ok((seed.deserialize(Key(self.name))?, Content(self.value)))
    }
}

struct Content(Option<Value>);

impl<'de> VariantAccess<'de> for Content {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        match self.0 {
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(Error::custom("this option takes no value")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        seed.deserialize(Named(self.0.unwrap_or_default()))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        Named(self.0.unwrap_or_default()).deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value> {
        Named(self.0.unwrap_or_default()).deserialize_struct("", fields, visitor)
    }
}
