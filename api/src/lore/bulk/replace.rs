//! Find and replace in texts that others wrote, with patterns that others wrote: bounded in the size of the pattern, the
//! length of what comes out, and time.

use std::time::Instant;

use garde::Validate;
use regex::{Captures, Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::{Error, Result};

/// Bytes of a compiled pattern; what repeats itself thousands of times does not fit.
const PROGRAM_BYTES_MAX: usize = 256 * 1024;
/// Bytes of memory a search may use to go fast.
const CACHE_BYTES_MAX: usize = 1024 * 1024;

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Title,
    Content,
    /// Keys and secondary keys.
    Keys,
}

/// What to find and what to put there.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Replace {
    /// The text, or a regular expression (in the syntax of the Rust crate `regex`).
    #[garde(length(chars, min = 1, max = 500))]
    #[schema(min_length = 1, max_length = 500)]
    pub find: String,
    /// What takes its place. In a regular expression `$1` and `${name}` are what its groups found.
    #[garde(length(chars, max = 10_000))]
    #[schema(max_length = 10000)]
    pub with: String,
    /// Content unless given.
    #[garde(length(min = 1, max = 3))]
    #[serde(default = "content", rename = "in")]
    pub parts: Vec<Part>,
    #[serde(default)]
    pub regex: bool,
    #[serde(default)]
    pub whole_word: bool,
    #[serde(default)]
    pub ignore_case: bool,
}

fn content() -> Vec<Part> {
    vec![Part::Content]
}

/// A [`Replace`] ready to run until some moment.
pub struct Replacer {
    pattern: Regex,
    with: String,
    expands: bool,
    until: Instant,
}

/// Why a text was not replaced in.
#[derive(Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The time is over.
    TooSlow,
    /// The result would have more bytes than are allowed.
    TooLong,
}

impl Replacer {
    /// Compiles the pattern.
    ///
    /// # Errors
    /// `validation_failed` for a pattern that is none or is too large.
    pub fn new(replace: &Replace, until: Instant) -> Result<Self> {
        let source = if replace.regex { replace.find.clone() } else { regex::escape(&replace.find) };
        let source = if replace.whole_word { format!(r"\b{{start-half}}(?:{source})\b{{end-half}}") } else { source };
        let pattern = RegexBuilder::new(&source)
            .case_insensitive(replace.ignore_case)
            .multi_line(true)
            .size_limit(PROGRAM_BYTES_MAX)
            .dfa_size_limit(CACHE_BYTES_MAX)
            .nest_limit(50)
            .build()
            .map_err(|e| refused(&e))?;
        Ok(Self { pattern, with: replace.with.clone(), expands: replace.regex, until })
    }

    /// The text with every match replaced; none if there is no match.
    ///
    /// # Errors
    /// [`Stopped`] when a bound is met.
    pub fn run(&self, text: &str, bytes_max: usize) -> Result<Option<String>, Stopped> {
        let mut out = String::new();
        let mut after = 0;
        let mut found = false;
        let put = |out: &mut String, captures: &Captures<'_>| {
            if self.expands {
                captures.expand(&self.with, out);
            } else {
                out.push_str(&self.with);
            }
        };
        // Each search is linear in the text; all of them together need not be, so the clock is asked between them.
        for captures in self.pattern.captures_iter(text) {
            let Some(whole) = captures.get(0) else { break };
            found = true;
            out.push_str(text.get(after..whole.start()).unwrap_or_default());
            put(&mut out, &captures);
            after = whole.end();
            if out.len() > bytes_max {
                return Err(Stopped::TooLong);
            }
            self.in_time()?;
        }
        self.in_time()?;
        if !found {
            return Ok(None);
        }
        out.push_str(text.get(after..).unwrap_or_default());
        if out.len() > bytes_max { Err(Stopped::TooLong) } else { Ok(Some(out)) }
    }

    fn in_time(&self) -> Result<(), Stopped> {
        if Instant::now() > self.until { Err(Stopped::TooSlow) } else { Ok(()) }
    }
}

fn refused(error: &regex::Error) -> Error {
    let message = match error {
        regex::Error::CompiledTooBig(_) => "The pattern is too large: it repeats too much.".to_owned(),
        regex::Error::Syntax(text) => {
            let last = text.lines().last().unwrap_or_default();
            format!("This is no regular expression: {}", last.trim_start_matches("error: "))
        }
        _ => "This is no regular expression.".to_owned(),
    };
    Error::invalid("/changes/replace/find", "invalid_value", message)
}
