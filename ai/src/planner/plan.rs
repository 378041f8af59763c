//! Reads a model's reply as a plan: the proposed command and its arguments.
//!
//! Pure, total and linear in the length of the reply: it never panics and reads no part of the text more than twice. The result is
//! still untrusted: neither the name nor the arguments have been checked. This module only knows JSON, so that it can be fuzzed
//! alone.

use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Number, Value};

/// The most characters of a reply that are read.
pub const REPLY_CHARS_MAX: usize = 50_000;
/// The most characters of a command's name.
pub const COMMAND_CHARS_MAX: usize = 64;

/// A plan as a model wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// With `.` between its parts. May not be a command.
    pub command: String,
    /// May be invalid.
    pub args: Map<String, Value>,
    /// 0 to 1.
    pub confidence: Option<f64>,
    /// Only for the log.
    pub rationale: Option<String>,
}

/// Why a reply has no plan. Never quotes the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The reply has no `{`.
    NoObject,
    /// The first object does not end.
    Cut,
    /// The first object is not a plan.
    NoPlan,
}

impl Unreadable {
    /// The name for logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoObject => "no object",
            Self::Cut => "cut",
            Self::NoPlan => "no plan",
        }
    }
}

/// Reads the first object of a reply as a plan, with or without an envelope `{"plan": …}`. Text around it, such as a code fence,
/// does not matter. Unknown members are errors.
///
/// # Errors
/// [`Unreadable`].
pub fn parse(reply: &str) -> Result<Plan, Unreadable> {
    let object = first_object(reply)?;
    let read = serde_json::from_str::<Envelope>(object).map(|envelope| envelope.plan);
    let flat = read.or_else(|_| serde_json::from_str::<Flat>(object)).map_err(|_| Unreadable::NoPlan)?;
    let command = match flat.subcommand.as_deref().map(str::trim).filter(|sub| !sub.is_empty()) {
        Some(sub) => format!("{}.{sub}", flat.command.trim()),
        None => flat.command.trim().to_owned(),
    };
    let command = command.replace(':', ".");
    let fits = !command.is_empty()
        && command.chars().count() <= COMMAND_CHARS_MAX
        && flat.confidence.is_none_or(|confidence| (0.0..=1.0).contains(&confidence));
    if !fits {
        return Err(Unreadable::NoPlan);
    }
    Ok(Plan { command, args: flat.args, confidence: flat.confidence, rationale: flat.rationale })
}

/// The text from the first `{` to its closing `}`.
fn first_object(reply: &str) -> Result<&str, Unreadable> {
    let end = reply.char_indices().nth(REPLY_CHARS_MAX).map_or(reply.len(), |(at, _)| at);
    let text = reply.get(..end).unwrap_or(reply);
    let text = text.find('{').and_then(|at| text.get(at..)).ok_or(Unreadable::NoObject)?;
    let (mut depth, mut in_string, mut escaped) = (0_u32, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return text.get(..=at).ok_or(Unreadable::Cut);
                }
            }
            _ => {}
        }
    }
    Err(Unreadable::Cut)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    #[serde(deserialize_with = "object")]
    plan: Flat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flat {
    command: String,
    #[serde(default)]
    subcommand: Option<String>,
    #[serde(default, deserialize_with = "members")]
    args: Map<String, Value>,
    #[serde(default)]
    confidence: Option<f64>,
    #[serde(default)]
    rationale: Option<String>,
}

/// Reads only an object. Otherwise serde would accept a list as a plan's members in their order.
fn object<'de, D: Deserializer<'de>>(from: D) -> Result<Flat, D::Error> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Flat;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Flat, A::Error> {
            Flat::deserialize(MapAccessDeserializer::new(map))
        }
    }
    from.deserialize_map(Members)
}

/// Reads an object in which no name occurs twice, at any depth. Otherwise a reader could use one of two values and the log show the
/// other.
fn members<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    match Strict::deserialize(from)?.0 {
        Value::Object(members) => Ok(members),
        _ => Err(D::Error::custom("expected an object")),
    }
}

/// JSON in which no name occurs twice.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some((name, Strict(value))) = map.next_entry::<String, _>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("a name occurs twice"));
            }
        }
        Ok(Value::Object(members))
    }
}
