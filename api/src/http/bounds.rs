//! How large anything may be that a client sends: the limits that the schemas of inputs say, which `openapi.yaml` shows and
//! [`check`] holds every body to.
//!
//! A schema that says no limit gets one here: [`CHARS`] for a text, [`ITEMS`] for a list, [`MEMBERS`] for a map, [`BYTES`] of JSON for what
//! has no shape, so that nobody can forget one. What is to be larger, or smaller, says so where it is declared (`#[schema(max_length = …)]`) or, if
//! that is no place for it, by a line in [`OTHERWISE`]. Nothing here looks at what is stored: a row that is larger than today's
//! limits is read as ever.

use std::{
    any::TypeId,
    collections::{BTreeMap, BTreeSet, HashMap},
    io,
    sync::{Arc, PoisonError, RwLock},
};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use utoipa::{
    ToSchema,
    openapi::{
        KnownFormat, OpenApi, RefOr, Schema, SchemaFormat,
        extensions::{Extensions, ExtensionsBuilder},
        schema::{AdditionalProperties, ArrayItems, Object, SchemaType, Type},
    },
};

use super::{body, misfit};
use crate::{
    error::{Error, FieldError, Result},
    openapi,
};

/// Characters of a text: a name, an id, a word.
pub const CHARS: usize = 200;
/// Entries of a list.
pub const ITEMS: usize = 200;
/// Members of a map.
pub const MEMBERS: usize = 200;
/// Bytes of JSON of what has no shape: a client's own members, settings, a grid.
pub const BYTES: usize = 64 * 1024;
/// Bytes of JSON of a whole row, however many patches it took.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// How a schema says how many bytes of JSON a value may have; JSON Schema has no word for it.
pub const BYTES_WORD: &str = "x-max-bytes";
/// Broken limits that one answer names.
const ERRORS_MAX: usize = 20;

/// A limit that is not the usual one.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Chars(usize),
    Items(usize),
    Members(usize),
    Bytes(usize),
}
use Limit::{Bytes, Chars, Items, Members};

/// What is deliberately wider or narrower than usual: `Schema/member`, `*/member` for a member of any schema, `Schema/*` for all that a
/// schema has; `[]` is an entry of a list. The most particular line counts, one for each sort of limit.
pub const OTHERWISE: &[(&str, Limit)] = &[
    // Texts that people and models write.
    ("*/description", Chars(20_000)),
    ("*/personality_prompt", Chars(20_000)),
    ("*/notes", Chars(10_000)),
    ("LoreInput/content", Chars(100_000)),
    ("MessageInput/content", Chars(20_000)),
    ("PromptInput/action", Chars(4000)),
    ("GmPromptInput/action", Chars(4000)),
    ("GmPromptInput/instruction", Chars(4000)),
    ("DescribedTool/description", Chars(2000)),
    // A sheet is bounded as a whole, and says so itself.
    ("Feature/*", Chars(20_000)),
    // Addresses and secrets.
    ("LlmInput/endpoint", Chars(2000)),
    ("LlmInput/api_key", Chars(500)),
    ("*/origins[]", Chars(2000)),
    ("UserInput/email", Chars(254)),
    ("VerifyInput/client_seed", Chars(1000)),
    // A formula that is too long is a roll that failed, or `invalid_formula`, and says so itself.
    ("*/formula", Chars(100_000)),
    // A frontend's world.
    ("SessionInfo/*", Chars(300)),
    ("SessionInfo/players", Items(100)),
    ("SessionInfo/players[]", Chars(300)),
    ("WorldScene/*", Chars(300)),
    ("WorldScene/tokens", Items(1000)),
    ("WorldScene/notes", Items(1000)),
    ("WorldScene/light_sources", Items(1000)),
    ("Light/*", Chars(300)),
    ("Note/*", Chars(300)),
    ("Token/*", Chars(300)),
    ("Pack/*", Chars(300)),
    ("PartyMember/*", Chars(300)),
    ("WorldState/compendium_index", Items(1000)),
    ("WorldState/active_encounter", Bytes(256 * 1024)),
    ("EventInput/data", Bytes(320 * 1024)),
    // Words.
    ("*/tags", Items(100)),
    ("*/keys", Items(100)),
    ("*/secondary_keys", Items(100)),
    ("CharacterInput/skill_proficiencies", Items(100)),
    ("CharacterInput/saving_throw_proficiencies", Items(100)),
    ("CharacterInput/weapon_proficiencies", Items(100)),
    ("CharacterInput/resistances", Items(100)),
    ("CharacterInput/immunities", Items(100)),
    ("CharacterInput/vulnerabilities", Items(100)),
    // Who is named.
    ("*/whisper_to", Items(50)),
    ("NpcInput/owner_ids", Items(50)),
    ("NpcInput/conditions", Items(50)),
    ("NpcInput/effects", Items(50)),
    // Things of the world.
    ("NpcInput/inventory", Items(500)),
    ("*/available_tools", Items(100)),
    ("*/available_tools", Bytes(256 * 1024)),
    ("DescribedTool/parameters", Bytes(16 * 1024)),
    ("SceneInput/tokens", Items(1000)),
    ("SceneInput/notes", Items(1000)),
    ("SceneInput/notes", Bytes(256 * 1024)),
    ("SceneInput/light_sources", Items(1000)),
    ("SceneInput/light_sources", Bytes(256 * 1024)),
    // Dice, and a fight's squares. Too many dice are `invalid_dice`.
    ("*/dice", Items(10_000)),
    ("*/variables", Bytes(512 * 1024)),
    ("VerifyInput/rolls", Items(1000)),
    ("TerrainInput/obstacles", Items(10_000)),
    ("TerrainInput/difficult_terrain", Items(10_000)),
    ("TerrainInput/water", Items(10_000)),
    // Arguments have schemas of their own, which `GET …/tools` and `…/commands` tell.
    ("*/arguments", Bytes(256 * 1024)),
    // Files.
    ("import", Bytes(32 * 1024 * 1024)),
    ("import", Items(32 * 1024 * 1024)),
];

/// The limit of one sort that a place has; `name` is the schema and the way from it.
fn otherwise(name: &str, of: impl Fn(Limit) -> Option<usize>) -> Option<usize> {
    let (schema, way) = name.split_once('/').unwrap_or((name, ""));
    let last = way.rsplit('/').next().unwrap_or_default();
    let names = if name.contains(" /v1/") {
        // A body that is described where it is taken: `post /v1/campaigns/import`.
        [if name.contains("/import") { "import".to_owned() } else { name.to_owned() }, String::new(), String::new()]
    } else {
        [name.to_owned(), format!("*/{last}"), format!("{schema}/*")]
    };
    names.iter().find_map(|name| OTHERWISE.iter().filter(|(at, _)| at == name).find_map(|(_, limit)| of(*limit)))
}

fn chars(name: &str) -> usize {
    otherwise(name, |limit| if let Chars(n) = limit { Some(n) } else { None }).unwrap_or(CHARS)
}

fn items(name: &str) -> usize {
    otherwise(name, |limit| if let Items(n) = limit { Some(n) } else { None }).unwrap_or(ITEMS)
}

fn members(name: &str) -> usize {
    otherwise(name, |limit| if let Members(n) = limit { Some(n) } else { None }).unwrap_or(MEMBERS)
}

fn bytes(name: &str) -> Option<usize> {
    otherwise(name, |limit| if let Bytes(n) = limit { Some(n) } else { None })
}

/// Writes its limits into each schema that a request is read by.
pub fn declare(api: &mut OpenApi) {
    for name in taken(api) {
        if let Some(schema) = api.components.get_or_insert_default().schemas.get_mut(&name) {
            limit(&name, schema);
        }
    }
    for (path, item) in &mut api.paths.paths {
        let operations = [
            ("post", &mut item.post),
            ("put", &mut item.put),
            ("patch", &mut item.patch),
            ("delete", &mut item.delete),
        ];
        for (method, operation) in operations.into_iter().filter_map(|(method, o)| Some((method, o.as_mut()?))) {
            let Some(RefOr::T(body)) = &mut operation.request_body else { continue };
            for content in body.content.values_mut() {
                if let RefOr::T(content) = content
                    && let Some(schema) = &mut content.schema
                {
                    limit(&format!("{method} {path}"), schema);
                }
            }
        }
    }
}

/// The schemas that some request's body is made of, by name.
fn taken(api: &OpenApi) -> BTreeSet<String> {
    let Ok(document) = serde_json::to_value(api) else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let operations = document["paths"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
    for operation in operations.flat_map(Map::values) {
        named(&operation["requestBody"], &document["components"]["schemas"], &mut names);
    }
    names
}

/// The schemas that `value` refers to, and those that they refer to.
fn named(value: &Value, schemas: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            if let Some(name) = referred(members)
                && names.insert(name.to_owned())
            {
                named(&schemas[name], schemas, names);
            }
            members.values().for_each(|member| named(member, schemas, names));
        }
        Value::Array(items) => items.iter().for_each(|item| named(item, schemas, names)),
        _ => {}
    }
}

fn referred(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/components/schemas/")
}

/// Writes into a schema the limits that it does not say itself.
fn limit(name: &str, schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => limit_object(name, object),
        Schema::Array(list) => {
            list.max_items.get_or_insert_with(|| items(name));
            let shapeless = match &mut list.items {
                ArrayItems::RefOrSchema(item) if is_shapeless(item) => true,
                ArrayItems::RefOrSchema(item) => {
                    limit(&format!("{name}[]"), item);
                    false
                }
                ArrayItems::False => false,
            };
            if let Some(bytes) = bytes(name).or(shapeless.then_some(BYTES)) {
                say_bytes(&mut list.extensions, bytes);
            }
        }
        Schema::OneOf(any) => any.items.iter_mut().for_each(|one| limit(name, one)),
        Schema::AnyOf(any) => any.items.iter_mut().for_each(|one| limit(name, one)),
        Schema::AllOf(all) => all.items.iter_mut().for_each(|one| limit(name, one)),
        _ => {}
    }
}

fn limit_object(name: &str, object: &mut Object) {
    if object.enum_values.is_some() {
        return;
    }
    let is = |kind: &Type| match &object.schema_type {
        SchemaType::Type(one) => one == kind,
        SchemaType::Array(several) => several.contains(kind),
        SchemaType::AnyValue => false,
    };
    let is_short = matches!(
        &object.format,
        Some(SchemaFormat::KnownFormat(KnownFormat::Uuid | KnownFormat::DateTime | KnownFormat::Date))
    );
    let (is_text, is_map) = (is(&Type::String), is(&Type::Object));
    if is_text && !is_short {
        object.max_length.get_or_insert_with(|| chars(name));
    }
    let mut is_free = matches!(object.schema_type, SchemaType::AnyValue);
    if is_map {
        object.properties.iter_mut().for_each(|(member, schema)| limit(&format!("{name}/{member}"), schema));
        match object.additional_properties.as_deref_mut() {
            Some(AdditionalProperties::FreeForm(open)) => is_free = *open,
            Some(AdditionalProperties::RefOr(value)) => {
                object.max_properties.get_or_insert_with(|| members(name));
                is_free = is_shapeless(value);
                limit(&format!("{name}{{}}"), value);
            }
            None => is_free = object.properties.is_empty(),
        }
    }
    if let Some(bytes) = bytes(name).or(is_free.then_some(BYTES)) {
        say_bytes(&mut object.extensions, bytes);
    }
}

/// Whether a value of this schema may be anything, so that only what holds it has a size.
fn is_shapeless(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if matches!(object.schema_type, SchemaType::AnyValue))
}

fn say_bytes(extensions: &mut Option<Extensions>, bytes: usize) {
    let said = ExtensionsBuilder::new().add(BYTES_WORD, bytes).build();
    extensions.get_or_insert_default().merge(said);
}

/// A type's schema with its limits, and those that it refers to.
struct Limits {
    root: Value,
    named: BTreeMap<String, Value>,
}

impl Limits {
    fn of<T: ToSchema + 'static>() -> Arc<Self> {
        static KNOWN: RwLock<Option<HashMap<TypeId, Arc<Limits>>>> = RwLock::new(None);
        let id = TypeId::of::<T>();
        if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|k| k.get(&id)) {
            return known.clone();
        }
        let made = Arc::new(Self::make::<T>());
        let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
        known.get_or_insert_default().entry(id).or_insert(made).clone()
    }

    fn make<T: ToSchema>() -> Self {
        let limited = |name: &str, mut schema: RefOr<Schema>| {
            openapi::mend(&mut schema);
            limit(name, &mut schema);
            serde_json::to_value(schema).unwrap_or_default()
        };
        let mut parts = Vec::new();
        T::schemas(&mut parts);
        let named = parts.into_iter().map(|(name, schema)| (name.clone(), limited(&name, schema))).collect();
        Self { root: limited(&T::name(), T::schema()), named }
    }
}

/// Holds a value to the limits of its type, which say so also in `openapi.yaml`.
///
/// # Errors
/// `validation_failed` with a pointer to each value that is too large.
pub fn check<T: ToSchema + 'static>(value: &Value) -> Result<()> {
    check_only::<T>(value, |_| true)
}

/// The same for a document that a merge patch led to: what the patch does not name may be larger, having been written before there was
/// a limit.
///
/// # Errors
/// Those of [`check`]; `validation_failed` also if the whole became larger than [`ROW_BYTES_MAX`], or larger still: `bytes_before` are those
/// of what is patched.
pub fn check_patched<T: ToSchema + 'static>(document: &Value, patch: &Value, bytes_before: usize) -> Result<()> {
    check_only::<T>(document, |member| patch.get(member).is_some())?;
    match size(document) {
        n if n <= ROW_BYTES_MAX.max(bytes_before) => Ok(()),
        n => {
            let message = format!("The whole may have {ROW_BYTES_MAX} bytes of JSON; with this change it has {n}.");
            Err(Error::invalid("", "invalid_value", message))
        }
    }
}

/// Reads a value as its type, held to its limits.
///
/// # Errors
/// `validation_failed`.
pub fn read<T: DeserializeOwned + ToSchema + 'static>(value: Value) -> Result<T> {
    check::<T>(&value)?;
    typed(value)
}

/// Reads a value as its type.
///
/// # Errors
/// `validation_failed` with a pointer to each value that does not fit its schema.
pub fn typed<T: DeserializeOwned + ToSchema + 'static>(value: Value) -> Result<T> {
    let limits = Limits::of::<T>();
    // Reading takes the value; nothing is noted of one that fits.
    let found = misfit::found(&limits.root, &limits.named, &value);
    body::typed(value)
        .map_err(|mut error| Error::validation(misfit::together(std::mem::take(&mut error.errors), found)))
}

fn check_only<T: ToSchema + 'static>(value: &Value, looked_at: impl Fn(&str) -> bool) -> Result<()> {
    let limits = Limits::of::<T>();
    let mut walk = Walk { limits: &limits, pointer: String::new(), errors: Vec::new() };
    match value {
        Value::Object(members) => {
            let looked_at = members.iter().filter(|(name, _)| looked_at(name));
            looked_at.for_each(|(name, member)| walk.member(&limits.root, name, member));
        }
        value => walk.value(&limits.root, value),
    }
    if walk.errors.is_empty() {
        return Ok(());
    }
    Err(Error::validation(misfit::beside(walk.errors, misfit::found(&limits.root, &limits.named, value))))
}

/// A value on the way through its schema.
struct Walk<'a> {
    limits: &'a Limits,
    pointer: String,
    errors: Vec<FieldError>,
}

impl Walk<'_> {
    fn broken(&mut self, message: String) {
        let is_told = self.errors.iter().any(|error| error.pointer == self.pointer);
        if !is_told && self.errors.len() < ERRORS_MAX {
            self.errors.push(FieldError { pointer: self.pointer.clone(), code: "invalid_value".into(), message });
        }
    }

    fn value(&mut self, schema: &Value, value: &Value) {
        let Value::Object(says) = schema else { return };
        if let Some(of) = referred(says).and_then(|name| self.limits.named.get(name)) {
            self.value(of, value);
        }
        let most = |word: &str| says.get(word).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
        if let Some(max) = most(BYTES_WORD)
            && size(value) > max
        {
            return self.broken(format!("must have at most {max} bytes of JSON"));
        }
        match value {
            Value::String(text) => {
                if let Some(max) = most("maxLength")
                    && text.len() > max
                    && text.chars().count() > max
                {
                    self.broken(format!("must have at most {max} characters"));
                }
            }
            // serde reads a struct from a list as well, its members in their order.
            Value::Array(_) if !self.takes_list(says) => {
                self.broken("is an object with its members by name, not a list".to_owned());
            }
            Value::Array(list) => {
                if let Some(max) = most("maxItems")
                    && list.len() > max
                {
                    return self.broken(format!("must have at most {max} entries"));
                }
                if let Some(of) = says.get("items") {
                    list.iter().enumerate().for_each(|(i, item)| self.below(&i.to_string(), of, item));
                }
            }
            Value::Object(members) => {
                if let Some(max) = most("maxProperties")
                    && members.len() > max
                {
                    return self.broken(format!("must have at most {max} members"));
                }
                members.iter().for_each(|(name, member)| self.member_here(says, name, member));
            }
            Value::Number(number) => {
                let fits = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
                // Fractions and what no number of ours can be are refused when the value is read.
                if !fits && !number.is_f64() && says.get("format").is_some_and(|format| format == "int32") {
                    self.broken(format!("must be at least {} and at most {}", i32::MIN, i32::MAX));
                }
            }
            _ => {}
        }
        for word in ["oneOf", "anyOf", "allOf"] {
            says.get(word).and_then(Value::as_array).into_iter().flatten().for_each(|one| self.value(one, value));
        }
    }

    /// Whether a list may stand where this schema does.
    fn takes_list(&self, says: &Map<String, Value>) -> bool {
        let takes = |schema: &Value| schema.as_object().is_none_or(|says| self.takes_list(says));
        if let Some(name) = referred(says) {
            return self.limits.named.get(name).is_none_or(takes);
        }
        let of = |word: &str| says.get(word).and_then(Value::as_array);
        match says.get("type") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => {
                of("oneOf").or_else(|| of("anyOf")).is_none_or(|any| any.iter().any(takes))
                    && of("allOf").is_none_or(|all| all.iter().all(takes))
            }
        }
    }

    /// A member of an object, by whatever a schema says of it.
    fn member(&mut self, schema: &Value, name: &str, member: &Value) {
        let Value::Object(says) = schema else { return };
        if let Some(of) = referred(says).and_then(|name| self.limits.named.get(name)) {
            self.member(of, name, member);
        }
        self.member_here(says, name, member);
        for word in ["oneOf", "anyOf", "allOf"] {
            says.get(word)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .for_each(|one| self.member(one, name, member));
        }
    }

    fn member_here(&mut self, says: &Map<String, Value>, name: &str, member: &Value) {
        let own = says.get("properties").and_then(|properties| properties.get(name));
        if let Some(of) = own.or_else(|| says.get("additionalProperties")) {
            self.below(&name.replace('~', "~0").replace('/', "~1"), of, member);
        }
    }

    fn below(&mut self, segment: &str, schema: &Value, value: &Value) {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(segment);
        self.value(schema, value);
        self.pointer.truncate(length);
    }
}

/// Bytes of a value as JSON; nothing is written.
#[must_use]
pub fn size(value: &impl Serialize) -> usize {
    struct Counter(usize);
    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // What cannot be written has no size that would do.
        Err(_) => usize::MAX,
    }
}
