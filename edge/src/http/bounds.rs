//! Limits on the size of everything a client sends. The schemas of inputs declare them, `openapi.yaml` shows them, and
//! [`check`] enforces them on every body.
//!
//! A schema without a limit gets one here, so that nobody can forget one: [`CHARS`] for a string, [`ITEMS`] for a list,
//! [`MEMBERS`] for a map, and [`BYTES`] of JSON for a value without a declared shape. To allow more or less, declare it
//! on the field (`#[schema(max_length = …)]`) or, where that is not possible, add a line to [`OTHERWISE`]. Stored data
//! is never checked: a row that exceeds today's limits can still be read.

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

use super::{misfit, read};
use base::{
    error::{Error, FieldError, Result},
    text,
};

/// Characters in a string, such as a name or an id.
pub const CHARS: usize = 200;
/// Entries in a list.
pub const ITEMS: usize = 200;
/// Members of a map.
pub const MEMBERS: usize = 200;
/// Bytes of JSON of a value without a declared shape, such as a client's own members, settings or a grid.
pub const BYTES: usize = 64 * 1024;
/// Bytes of JSON of a whole row, even if it was built up by many patches.
pub const ROW_BYTES_MAX: usize = 1024 * 1024;
/// The schema keyword for the largest number of bytes of JSON. JSON Schema has no keyword for this.
pub const BYTES_WORD: &str = "x-max-bytes";
/// Members that are names, in any schema. Those of at most [`CHARS`] characters have one line. Frontends' own names may be
/// longer, and are put on one line instead.
const NAMES: [&str; 3] = ["name", "title", "alias"];
/// The pattern of a text with one line. Other characters that end a line are in no text.
const ONE_LINE: &str = r"^[^\n\r\u2028\u2029]*$";
/// The largest number of broken limits that one answer reports.
const ERRORS_MAX: usize = 20;

/// A limit that differs from the default.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Chars(usize),
    Items(usize),
    Members(usize),
    Bytes(usize),
}
use Limit::{Bytes, Chars, Items, Members};

/// Values whose limit is deliberately larger or smaller than the default. A line is named `Schema/member`, `*/member`
/// for a member of any schema, or `Schema/*` for all members of a schema; `[]` means an entry of a list. The most
/// specific line wins, separately for each type of limit.
pub const OTHERWISE: &[(&str, Limit)] = &[
    // Texts that people and models write.
    ("*/description", Chars(20_000)),
    ("*/personality_prompt", Chars(20_000)),
    ("*/instructions", Chars(20_000)),
    ("*/post_history_instructions", Chars(20_000)),
    ("AuthorsNote/text", Chars(20_000)),
    ("*/example_dialogue", Chars(20_000)),
    ("*/scenario", Chars(20_000)),
    ("*/greetings", Items(50)),
    ("*/greetings[]", Chars(20_000)),
    ("*/greetings", Bytes(256 * 1024)),
    ("*/notes", Chars(10_000)),
    ("LoreInput/content", Chars(100_000)),
    ("MessageInput/content", Chars(20_000)),
    ("PromptInput/action", Chars(4000)),
    ("GmPromptInput/action", Chars(4000)),
    ("GmPromptInput/instruction", Chars(4000)),
    ("DescribedTool/description", Chars(2000)),
    // The size of a character sheet is limited as a whole, where it is validated.
    ("Feature/*", Chars(20_000)),
    // Addresses and secrets.
    ("LlmInput/endpoint", Chars(2000)),
    ("LlmInput/api_key", Chars(500)),
    ("*/origins[]", Chars(2000)),
    ("UserInput/email", Chars(254)),
    ("VerifyInput/client_seed", Chars(1000)),
    // A formula that is too long makes a failed roll or `invalid_formula`; the dice check that themselves.
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
    // Lists of people and what is on them.
    ("*/whisper_to", Items(50)),
    ("NpcInput/owner_ids", Items(50)),
    ("NpcInput/conditions", Items(50)),
    ("NpcInput/effects", Items(50)),
    // Items, tools, and what is in a scene.
    ("NpcInput/inventory", Items(500)),
    ("*/available_tools", Items(100)),
    ("*/available_tools", Bytes(256 * 1024)),
    ("DescribedTool/parameters", Bytes(16 * 1024)),
    ("SceneInput/tokens", Items(1000)),
    ("SceneInput/notes", Items(1000)),
    ("SceneInput/notes", Bytes(256 * 1024)),
    ("SceneInput/light_sources", Items(1000)),
    ("SceneInput/light_sources", Bytes(256 * 1024)),
    // Dice, and the squares of a fight's map. Too many dice are `invalid_dice`.
    ("*/dice", Items(10_000)),
    ("*/variables", Bytes(512 * 1024)),
    ("VerifyInput/rolls", Items(1000)),
    ("TerrainInput/obstacles", Items(10_000)),
    ("TerrainInput/difficult_terrain", Items(10_000)),
    ("TerrainInput/water", Items(10_000)),
    // Arguments have their own schemas; see `GET …/tools` and `…/commands`.
    ("*/arguments", Bytes(256 * 1024)),
    // Files.
    ("import", Bytes(32 * 1024 * 1024)),
    ("import", Items(32 * 1024 * 1024)),
];

/// The least and the largest number in a list or map, where no attribute of a field can declare them. They are checked
/// where the value is validated, as those of other numbers are.
const RANGES: &[(&str, i32, i32)] = &[
    ("CampaignSettings/prompt_budgets{}", 0, 200_000),
    ("CampaignSettings/significance_scores{}", 0, 1_000_000),
    ("CampaignSettings/tool_prices{}", 0, 1_000_000),
    ("ParticipantInput/saving_throws{}", -20, 30),
    ("RestInput/recover_slots[]", 1, 9),
];

/// The limit of one type for a value. `name` is the schema and the path within it.
fn otherwise(name: &str, of: impl Fn(Limit) -> Option<usize>) -> Option<usize> {
    let (schema, way) = name.split_once('/').unwrap_or((name, ""));
    let last = way.rsplit('/').next().unwrap_or_default();
    let names = if name.contains(" /v1/") {
        // A body whose schema is declared at the route: `post /v1/campaigns/import`.
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

/// Writes the limits into every schema that is part of a request.
pub fn declare(api: &mut OpenApi) {
    for name in request_schema_names(api) {
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

/// The names of all schemas that are part of a request body.
fn request_schema_names(api: &OpenApi) -> BTreeSet<String> {
    let Ok(document) = serde_json::to_value(api) else { return BTreeSet::new() };
    let mut names = BTreeSet::new();
    let operations = document["paths"].as_object().into_iter().flat_map(Map::values).filter_map(Value::as_object);
    for operation in operations.flat_map(Map::values) {
        named(&operation["requestBody"], &document["components"]["schemas"], &mut names);
    }
    names
}

/// Adds the schemas that `value` refers to, directly or through other schemas.
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

/// Writes limits into a schema where it declares none itself.
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
        let max_length = *object.max_length.get_or_insert_with(|| chars(name));
        if max_length <= CHARS && name.rsplit('/').next().is_some_and(|member| NAMES.contains(&member)) {
            object.pattern.get_or_insert_with(|| ONE_LINE.to_owned());
        }
    }
    if let Some((_, least, most)) = RANGES.iter().find(|(at, ..)| *at == name) {
        object.minimum = Some((*least).into());
        object.maximum = Some((*most).into());
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

/// Whether this schema allows any value, so that only the container's size can be limited.
fn is_shapeless(schema: &RefOr<Schema>) -> bool {
    matches!(schema, RefOr::T(Schema::Object(object)) if matches!(object.schema_type, SchemaType::AnyValue))
}

fn say_bytes(extensions: &mut Option<Extensions>, bytes: usize) {
    let said = ExtensionsBuilder::new().add(BYTES_WORD, bytes).build();
    extensions.get_or_insert_default().merge(said);
}

/// The schema of a type and the schemas it refers to, with their limits.
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
            super::schema::mend(&mut schema);
            limit(name, &mut schema);
            serde_json::to_value(schema).unwrap_or_default()
        };
        let mut parts = Vec::new();
        T::schemas(&mut parts);
        let named = parts.into_iter().map(|(name, schema)| (name.clone(), limited(&name, schema))).collect();
        Self { root: limited(&T::name(), T::schema()), named }
    }
}

/// Checks a value against the limits of its type, which `openapi.yaml` shows too.
///
/// # Errors
/// `validation_failed` with a pointer to each value that is too large.
pub fn check<T: ToSchema + 'static>(value: &Value) -> Result<()> {
    check_only::<T>(value, |_| true)
}

/// Like [`check`], for a document after a merge patch. Members that the patch does not change may exceed the limits:
/// they may be older than the limits.
///
/// # Errors
/// Those of [`check`]. Also `validation_failed` if the whole document exceeds [`ROW_BYTES_MAX`], or, if it did so
/// before the patch, has grown: `bytes_before` is its size before the patch.
pub fn check_patched<T: ToSchema + 'static>(document: &Value, patch: &Value, bytes_before: usize) -> Result<()> {
    check_only::<T>(document, |member| patch.get(member).is_some())?;
    match size(document) {
        n if n <= ROW_BYTES_MAX.max(bytes_before) => Ok(()),
        n => {
            let message =
                format!("The whole row may have at most {ROW_BYTES_MAX} bytes of JSON; this change would make it {n}.");
            Err(Error::invalid("", "invalid_value", message))
        }
    }
}

/// Reads a value as its type after checking its limits.
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
    // Compare with the schema first, because reading consumes the value. Nothing is recorded if the value fits.
    let found = misfit::find_errors(&limits.root, &limits.named, &value);
    read::typed(value)
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
    Err(Error::validation(misfit::beside(walk.errors, misfit::find_errors(&limits.root, &limits.named, value))))
}

/// The state while a value is compared with its schema.
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
            Value::String(value) => {
                if let Some(max) = most("maxLength")
                    && value.len() > max
                    && value.chars().count() > max
                {
                    self.broken(format!("must have at most {max} characters"));
                }
                if says.get("pattern").is_some_and(|pattern| pattern == ONE_LINE) && value.contains(text::ends_line) {
                    self.broken("must be one line".to_owned());
                }
            }
            // serde would also read a struct from a list, its items in the order of the fields.
            Value::Array(_) if !self.takes_list(says) => {
                self.broken("must be an object with named members, not a list".to_owned());
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
                // Fractions, and numbers that no type of ours can hold, are rejected when the value is read.
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

    /// Whether this schema allows a list.
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

    /// Checks a member of an object against everything the schema says about it.
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

/// The size of a value as JSON, in bytes. The JSON is counted, not kept.
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
        // A value that cannot be written as JSON exceeds every limit.
        Err(_) => usize::MAX,
    }
}
