//! Converts an entry of SillyTavern's world info to lore. Reading reports what happens to each field. Writing compares
//! with the same reading, so the two always agree.

use serde_json::{Value, json};

use super::{
    entry::{BookEntry, Members, id_of, short},
    formats::Format,
};
use crate::interchange::{
    report::Losses,
    text::{self, list, string},
};

/// The largest number of characters in an entry.
const CONTENT_CHARS_MAX: usize = 100_000;
/// The largest size in bytes of the source that an entry keeps. Clients' own keys are stored next to it.
const KEPT_BYTES_MAX: usize = 56 * 1024;
/// The highest priority; its negative is the lowest.
const PRIORITY_MAX: i64 = 1_000_000;
/// The reason that is reported for an unknown macro.
pub const UNKNOWN_MACRO: &str = "this macro is unknown here; it stays in the text as it is";
/// The largest number of messages that are searched for keywords.
pub const SCAN_DEPTH_MAX: i64 = 100;

/// How the entries of a book are read.
#[derive(Clone)]
pub struct Reading<'a> {
    /// The path of the entries, for reports.
    pub at: String,
    pub format: Format,
    /// The name for `{{char}}`; empty in a book that belongs to no card.
    pub character: &'a str,
    /// The book's own depth.
    pub scan_depth: Option<i64>,
}

/// The values that absent fields have. A field with this value is not worth a line in the report.
#[must_use]
pub fn defaults() -> Members {
    let all = json!({
        "key": [], "keysecondary": [], "comment": "", "content": "", "constant": false, "vectorized": false, "selective": true,
        "selectiveLogic": 0, "addMemo": true, "order": 100, "position": 0, "disable": false, "ignoreBudget": false,
        "excludeRecursion": false, "preventRecursion": false, "matchPersonaDescription": false,
        "matchCharacterDescription": false, "matchCharacterPersonality": false, "matchCharacterDepthPrompt": false,
        "matchScenario": false, "matchCreatorNotes": false, "delayUntilRecursion": 0, "probability": 100,
        "useProbability": true, "depth": 4, "outletName": "", "group": "", "groupOverride": false, "groupWeight": 100,
        "scanDepth": null, "caseSensitive": null, "matchWholeWords": null, "useGroupScoring": null, "automationId": "",
        "role": null, "sticky": null, "cooldown": null, "delay": null, "triggers": [],
    });
    match all {
        Value::Object(members) => members,
        _ => Members::new(),
    }
}

/// Fields that are handled below. All others are only kept.
const READ: &[&str] = &[
    "uid",
    "key",
    "keysecondary",
    "comment",
    "content",
    "constant",
    "selective",
    "selectiveLogic",
    "order",
    "disable",
    "scanDepth",
    "probability",
    "useProbability",
    "extensions",
    "displayIndex",
    "addMemo",
    "priority",
];

/// Fields that change when or where an entry enters a prompt, in ways that we do not support, and the reasons for the
/// report.
const BEHAVIOUR: &[(&str, &str)] = &[
    ("position", "an entry appears with the others of its scope, not at a position of its own"),
    ("depth", "an entry appears with the others of its scope, not at a position of its own"),
    ("role", "lore is always data, never a message from somebody"),
    ("outletName", "outlets are not supported"),
    ("vectorized", "entries are found by keywords, not by similarity"),
    ("caseSensitive", "keywords match in upper and lower case"),
    ("matchWholeWords", "keywords match whole words only"),
    ("group", "all entries of a group can be active together"),
    ("groupOverride", "all entries of a group can be active together"),
    ("groupWeight", "all entries of a group can be active together"),
    ("sticky", "an activated entry stays in the conversation at the place where it appeared"),
    ("cooldown", "an entry is activated whenever its keywords occur"),
    ("delay", "an entry is activated whenever its keywords occur"),
    (
        "delayUntilRecursion",
        "entries do not activate other entries; this one is activated whenever its keywords occur in the messages",
    ),
    ("triggers", "an entry is activated in every kind of turn"),
    ("ignoreBudget", "no entry can exceed the budget"),
    ("matchPersonaDescription", "only messages are searched for keywords"),
    ("matchCharacterDescription", "only messages are searched for keywords"),
    ("matchCharacterPersonality", "only messages are searched for keywords"),
    ("matchCharacterDepthPrompt", "only messages are searched for keywords"),
    ("matchScenario", "only messages are searched for keywords"),
    ("matchCreatorNotes", "only messages are searched for keywords"),
    ("characterFilter", "limit the entry with a scope, or make it secret and set who knows it"),
];

impl Reading<'_> {
    fn path(&self, field: &'static str) -> String {
        format!("{}/{}", self.at, self.format.name_of(field))
    }

    /// Reads one entry; none if it has no content.
    pub fn entry(&self, source: Members, number: usize, losses: &mut Losses) -> Option<BookEntry> {
        let (mut info, unused) = self.format.read(&source);
        let ours = match info.get_mut("extensions").and_then(Value::as_object_mut).and_then(|e| e.remove("tavernkeep"))
        {
            Some(Value::Object(ours)) => ours,
            _ => Members::new(),
        };
        // An entry that we exported got its depth from the book in which it was first imported.
        let scan_depth = ours.get("scan_depth").and_then(Value::as_i64).or(self.scan_depth);
        let mut lore = Self { scan_depth, ..self.clone() }.lore(&info, losses)?;
        for (name, why) in unused {
            losses.approximated(&self.path(name), "", why);
        }
        for name in self.format.strangers(&source) {
            losses.carried(&format!("{}/{name}", self.at));
        }
        for name in self.format.context_beside(&source) {
            let path = format!("{}/contextConfig/{name}", self.at);
            losses.approximated(
                &path,
                "extensions",
                "an entry appears in full with the others of its scope, within their budget",
            );
        }
        let title = string(&lore, "title").to_owned();
        let own_uid = match ours.get("uid").or_else(|| info.get("uid")) {
            Some(Value::String(uid)) => Some(text::line(text::within(uid, 40))),
            Some(Value::Number(uid)) => Some(uid.to_string()),
            _ => None,
        };
        let uid = own_uid.clone().unwrap_or_else(|| number.to_string());
        let (format, origin) =
            match ours.get("source").and_then(|s| Some((s.get("format")?.as_str()?, s.get("entry")?.as_object()?))) {
                Some((format, entry)) => (Format::parse(format).unwrap_or(self.format), entry.clone()),
                None => (self.format, as_it_was(source, &ours)),
            };
        let mut at_first: Members = unsaid(&info, scan_depth)
            .filter(|name| !ours.contains_key(*name))
            .filter_map(|name| lore.remove_entry(name))
            .collect();
        // An entry that was created here has nothing else to keep.
        if ours.get("own") != Some(&Value::Bool(true)) {
            let mut kept = Members::new();
            kept.insert("format".to_owned(), format.as_str().into());
            kept.insert("entry".to_owned(), self.keep(format, origin, &lore, losses).into());
            if let Some(depth) = scan_depth {
                kept.insert("scan_depth".to_owned(), depth.into());
            }
            lore.insert("extensions".to_owned(), json!({ "lorebook": kept }));
        }
        apply_ours(&ours, &mut lore);
        at_first.retain(|name, _| !lore.contains_key(name));
        let slug = ours.get("slug").and_then(Value::as_str).map(ToOwned::to_owned);
        let known_by = ours.contains_key("known_by");
        let known_by = known_by.then(|| list(&ours, "known_by").into_iter().take(200).map(ToOwned::to_owned).collect());
        Some(BookEntry {
            key: format!("{uid}:{}", short(&title)),
            uid: own_uid,
            lore,
            at_first,
            slug,
            id: id_of(&ours),
            known_by,
        })
    }

    /// The members of lore for an entry, with defaults where it says nothing; none if it has no content.
    pub fn lore(&self, info: &Members, losses: &mut Losses) -> Option<Members> {
        let mut lore = Members::new();
        let (decorators, body) = text::decorators(string(info, "content"), is_known);
        let character = if self.character.is_empty() { "the character" } else { self.character };
        // One more character than the limit, to notice longer texts.
        let content = text::plain(body.trim_end(), character, CONTENT_CHARS_MAX + 1);
        if content.trim().is_empty() {
            losses.dropped(&self.at, "an entry without content has no effect");
            return None;
        }
        for name in text::unknown_macros(body) {
            let path = format!("{} {{{{{name}}}}}", self.path("content"));
            losses.approximated(&path, "content", UNKNOWN_MACRO);
        }
        if content.chars().count() > CONTENT_CHARS_MAX {
            losses.approximated(&self.path("content"), "content", "cut off after 100000 characters");
        } else if content.trim_end() != body.trim_end() {
            losses.approximated(
                &self.path("content"),
                "content",
                "macros were filled in: {{user}} is the player, and a choice becomes its first option",
            );
        } else {
            losses.kept(&self.path("content"), "content");
        }
        lore.insert("content".to_owned(), text::within(&content, CONTENT_CHARS_MAX).into());
        let is_woken = decorators.iter().any(|(name, _)| *name == "activate");
        self.activation(info, is_woken, &mut lore, losses);
        self.title(info, &mut lore, losses);
        self.order(info, &mut lore, losses);
        // Several lines of additional keys form one list.
        let added: Vec<&str> =
            decorators.iter().filter(|(name, _)| *name == "additional_keys").map(|(_, v)| *v).collect();
        let added = added.join(",");
        let mut is_added = false;
        for (name, value) in decorators {
            if name == "additional_keys" && std::mem::replace(&mut is_added, true) {
                continue;
            }
            self.decorator(name, if name == "additional_keys" { &added } else { value }, &mut lore, losses);
        }
        if lore.get("scan_depth") == Some(&json!(0)) && lore.get("activation") == Some(&json!("keyword")) {
            losses.approximated(
                &self.path("scanDepth"),
                "enabled",
                "with a depth of 0 no message is searched and no keyword can activate it, so it is switched off",
            );
            lore.insert("enabled".to_owned(), false.into());
        }
        self.behaviour(info, losses);
        lore.insert("scope".to_owned(), "global".into());
        Some(lore)
    }

    fn activation(&self, info: &Members, is_woken: bool, lore: &mut Members, losses: &mut Losses) {
        let keys = text::keys(list(info, "key").into_iter());
        let is_constant = info.get("constant") == Some(&Value::Bool(true));
        let mut enabled = info.get("disable") != Some(&Value::Bool(true));
        self.tell_keys("key", "keys", &keys, losses);
        let activation = match (is_constant, keys.words.is_empty()) {
            // The decorator itself reports this.
            (false, _) if is_woken => "always",
            (true, _) => {
                losses.mapped(&self.path("constant"), "activation", "`always`");
                "always"
            }
            (false, false) => "keyword",
            (false, true) => {
                losses.approximated(
                    &self.path("key"),
                    "enabled",
                    "no keyword is left that could activate it, so it is switched off",
                );
                enabled = false;
                "always"
            }
        };
        let selective = info.get("selective") != Some(&Value::Bool(false));
        let secondary =
            if selective { text::keys(list(info, "keysecondary").into_iter()) } else { text::Keys::default() };
        self.tell_keys("keysecondary", "secondary_keys", &secondary, losses);
        if !selective && !list(info, "keysecondary").is_empty() {
            losses.approximated(
                &self.path("keysecondary"),
                "extensions",
                "the entry says that its secondary keywords do not count",
            );
        }
        let logic = match info.get("selectiveLogic").and_then(|logic| text::whole(logic, 0, 3)) {
            Some(1) => "not_all",
            Some(2) => "not_any",
            Some(3) => "and_all",
            _ => "and_any",
        };
        if !secondary.words.is_empty() {
            losses.mapped(&self.path("selectiveLogic"), "logic", "");
            let given = info.get("selectiveLogic");
            tell_number(
                &self.path("selectiveLogic"),
                "logic",
                given,
                given.and_then(|logic| text::whole(logic, 0, 3)),
                losses,
            );
        }
        if !enabled && info.get("disable") == Some(&Value::Bool(true)) {
            losses.mapped(&self.path("disable"), "enabled", "");
        }
        let members = [
            ("keys", json!(keys.words)),
            ("secondary_keys", json!(secondary.words)),
            ("logic", json!(logic)),
            ("activation", json!(activation)),
            ("enabled", json!(enabled)),
        ];
        lore.extend(members.map(|(name, value)| (name.to_owned(), value)));
    }

    fn tell_keys(&self, from: &'static str, to: &str, keys: &text::Keys, losses: &mut Losses) {
        if keys.spelled_out > 0 {
            losses.approximated(&self.path(from), to, "regular expressions were replaced by the words that they match");
        } else if !keys.words.is_empty() {
            losses.mapped(&self.path(from), to, "");
        }
        if keys.unknown > 0 {
            losses.approximated(
                &self.path(from),
                "extensions",
                "a regular expression has no effect here unless it matches a short list of words; it is exported again",
            );
        }
        if keys.cut > 0 {
            losses.approximated(&self.path(from), to, "a keyword was cut off after 200 characters");
        }
        if keys.too_many > 0 {
            losses.approximated(&self.path(from), to, "only the first 100 keywords are used");
        }
    }

    fn title(&self, info: &Members, lore: &mut Members, losses: &mut Losses) {
        let given = text::line(string(info, "comment"));
        let title = if !given.is_empty() {
            match text::is_cut(string(info, "comment")) {
                true => losses.approximated(&self.path("comment"), "title", "cut off after 200 characters"),
                false => losses.mapped(&self.path("comment"), "title", ""),
            }
            given
        } else {
            let key = lore.get("keys").and_then(|k| k.get(0)).and_then(Value::as_str);
            let content = string(lore, "content").trim_start().lines().next().unwrap_or_default();
            losses.approximated(
                &self.path("comment"),
                "title",
                "it has no title, so the first keyword or line is used",
            );
            text::line(key.unwrap_or_else(|| text::within(content, 60)))
        };
        lore.insert("title".to_owned(), title.into());
    }

    fn order(&self, info: &Members, lore: &mut Members, losses: &mut Losses) {
        let of = |name: &str| info.get(name).and_then(|v| text::whole(v, -PRIORITY_MAX, PRIORITY_MAX));
        let (order, priority) = (of("order"), of("priority"));
        let mut tell = |name: &'static str, number: Option<i64>| {
            losses.mapped(&self.path(name), "priority", "entries with a higher priority go into a full prompt first");
            tell_number(&self.path(name), "priority", info.get(name), number, losses);
        };
        match (priority, order) {
            (Some(_), _) => {
                tell("priority", priority);
                losses.carried(&self.path("order"));
            }
            (None, Some(number)) if number != 100 => tell("order", order),
            _ => {}
        }
        lore.insert("priority".to_owned(), priority.or(order).unwrap_or(100).into());
        let own = info.get("scanDepth").and_then(|v| text::whole(v, 0, SCAN_DEPTH_MAX));
        if own.is_some() {
            losses.mapped(&self.path("scanDepth"), "scan_depth", "");
            tell_number(&self.path("scanDepth"), "scan_depth", info.get("scanDepth"), own, losses);
        }
        lore.insert("scan_depth".to_owned(), own.or(self.scan_depth).unwrap_or(2).into());
    }

    fn decorator(&self, name: &str, value: &str, lore: &mut Members, losses: &mut Losses) {
        let path = format!("{} @@{}", self.path("content"), text::within(name, 40));
        let words = || text::keys(text::split(value).into_iter()).words;
        let is_free = lore.get("secondary_keys").and_then(Value::as_array).is_none_or(Vec::is_empty);
        let (to, member) = match name {
            "activate" => ("activation", json!("always")),
            "dont_activate" if lore.get("activation") == Some(&json!("always")) => {
                // `@@activate` wins, and a constant entry stays active too.
                losses.approximated(&path, "extensions", "the entry is always active nevertheless");
                return;
            }
            "dont_activate" => ("enabled", json!(false)),
            "scan_depth" if value.parse::<i64>().is_ok_and(|depth| (0..=SCAN_DEPTH_MAX).contains(&depth)) => {
                ("scan_depth", json!(value.parse::<i64>().unwrap_or(2)))
            }
            "additional_keys" if is_free => {
                lore.insert("logic".to_owned(), json!("and_any"));
                ("secondary_keys", json!(words()))
            }
            "exclude_keys" if is_free => {
                lore.insert("logic".to_owned(), json!("not_any"));
                ("secondary_keys", json!(words()))
            }
            _ => {
                losses.approximated(&path, "extensions", "has no effect here; it is kept and exported again");
                return;
            }
        };
        lore.insert(to.to_owned(), member);
        losses.mapped(&path, to, "");
    }

    /// The source that an entry keeps, without content that equals the lore's own, without defaults and, if it is too
    /// large, without the largest members.
    fn keep(&self, format: Format, mut source: Members, lore: &Members, losses: &mut Losses) -> Members {
        let content = format.name_of("content");
        if source.get(content) == lore.get("content") {
            source.remove(content);
        }
        if format == Format::SillyTavern {
            let defaults = defaults();
            source.retain(|name, value| defaults.get(name) != Some(value) && *value != json!({}));
        }
        for name in text::lighten(&mut source, KEPT_BYTES_MAX) {
            losses.dropped(&format!("{}/{name}", self.at), "too large to be kept with the entry");
        }
        source
    }

    fn behaviour(&self, info: &Members, losses: &mut Losses) {
        let defaults = defaults();
        let differs = |name: &str| {
            let default = defaults.get(name).unwrap_or(&Value::Null);
            info.get(name).is_some_and(|v| v != default && !(is_nothing(name, v) && is_nothing(name, default)))
        };
        for (name, reason) in BEHAVIOUR.iter().filter(|(name, _)| differs(name)) {
            // We do not distinguish before and after the character. Depth counts only for one position.
            let is_moot = match *name {
                "position" => info.get("position") == Some(&json!(1)),
                "depth" => info.get("position") != Some(&json!(4)),
                // These values are what we always do.
                "caseSensitive" => info.get("caseSensitive") == Some(&Value::Bool(false)),
                "matchWholeWords" => info.get("matchWholeWords") == Some(&Value::Bool(true)),
                _ => false,
            };
            if !is_moot {
                losses.approximated(&self.path(name), "extensions", reason);
            }
        }
        if differs("probability") && info.get("useProbability") != Some(&Value::Bool(false)) {
            losses.approximated(
                &self.path("probability"),
                "extensions",
                "an entry whose keywords occur is always activated",
            );
        }
        let is_handled = |name: &str| READ.contains(&name) || BEHAVIOUR.iter().any(|(n, _)| *n == name);
        for name in info.keys().filter(|name| !is_handled(name) && differs(name)) {
            losses.carried(&format!("{}/{name}", self.at));
        }
        for name in info.get("extensions").and_then(Value::as_object).into_iter().flat_map(|e| e.keys()) {
            losses.carried(&format!("{}/extensions/{name}", self.at));
        }
    }
}

/// Whether a decorator with this value has an effect here.
fn is_known(name: &str, value: &str) -> bool {
    match name {
        "activate" | "dont_activate" | "additional_keys" | "exclude_keys" => true,
        "scan_depth" => value.parse::<i64>().is_ok_and(|depth| (0..=SCAN_DEPTH_MAX).contains(&depth)),
        _ => false,
    }
}

/// Whether a value means "none". Where null leaves a choice open, false does not mean "none".
fn is_nothing(name: &str, value: &Value) -> bool {
    let is_choice = matches!(name, "caseSensitive" | "matchWholeWords");
    value.is_null() || (!is_choice && (*value == Value::Bool(false) || value.as_f64() == Some(0.0)))
}

/// The entry as it was before we exported it: without our members, and with its own number.
fn as_it_was(mut source: Members, ours: &Members) -> Members {
    if let Some(extensions) = source.get_mut("extensions").and_then(Value::as_object_mut) {
        extensions.remove("tavernkeep");
    }
    if let Some(uid) = ours.get("uid") {
        let name = if source.contains_key("uid") { "uid" } else { "id" };
        source.insert(name.to_owned(), uid.clone());
    }
    source
}

/// The members of lore that an entry does not set. An import does not change them in existing rows.
fn unsaid(info: &Members, scan_depth: Option<i64>) -> impl Iterator<Item = &'static str> {
    let has = |name: &str| info.get(name).is_some_and(|value| text::whole(value, 0, 1).is_some());
    let (decorators, _) = text::decorators(string(info, "content"), is_known);
    let has_depth =
        has("scanDepth") || scan_depth.is_some() || decorators.iter().any(|(name, _)| *name == "scan_depth");
    [
        ("scope", true),
        ("title", text::line(string(info, "comment")).is_empty()),
        ("priority", !has("order") && !has("priority")),
        ("scan_depth", !has_depth),
    ]
    .into_iter()
    .filter_map(|(name, is_unsaid)| is_unsaid.then_some(name))
}

/// Reports a number that had to be changed.
pub fn tell_number(path: &str, to: &str, given: Option<&Value>, number: Option<i64>, losses: &mut Losses) {
    if given.and_then(text::number).and_then(|given| given.as_f64()) != number.map(|n| n as f64) {
        losses.approximated(path, to, "the nearest allowed whole number is used");
    }
}

/// Members of lore that only books written by us have.
pub const OURS: &[&str] = &["scope", "associated_id", "tags", "secret", "ai_lock"];

fn apply_ours(ours: &Members, lore: &mut Members) {
    for name in OURS {
        if let Some(value) = ours.get(*name) {
            lore.insert((*name).to_owned(), value.clone());
        }
    }
    // A scope without an `associated_id` means that the entry is about nothing in particular.
    if ours.contains_key("scope") {
        lore.entry("associated_id").or_insert(Value::Null);
    }
}
