//! What a model writes into its text that is no speech: thoughts, calls in its own notation, and tokens of its template.
//!
//! Each model family has markers of its own, and servers that do not know them pass them on as text. [`Aside`] takes them out of
//! a text that comes in pieces, however they are cut. It looks at each byte a fixed number of times.

/// Where something begins that is no speech, and what ends it.
struct Opening {
    marker: &'static str,
    kind: Kind,
    ends: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Thought,
    Call,
}

const fn thought(marker: &'static str, ends: &'static [&'static str]) -> Opening {
    Opening { marker, kind: Kind::Thought, ends }
}

const fn call(marker: &'static str, ends: &'static [&'static str]) -> Opening {
    Opening { marker, kind: Kind::Call, ends }
}

/// Markers in all letter cases. A longer one stands before those that it begins with.
const OPENINGS: [Opening; 21] = [
    thought("<think>", &["</think>"]),
    thought("<thinking>", &["</thinking>"]),
    thought("<thought>", &["</thought>"]),
    thought("<thoughts>", &["</thoughts>"]),
    thought("<reasoning>", &["</reasoning>"]),
    thought("<seed:think>", &["</seed:think>"]),
    thought("[think]", &["[/think]"]),
    thought("◁think▷", &["◁/think▷"]),
    thought("<|begin_of_thought|>", &["<|end_of_thought|>"]),
    thought("<|start_thinking|>", &["<|end_thinking|>"]),
    // gpt-oss and Gemma write into channels.
    thought("<|channel|>analysis", &["<|end|>", "<|return|>", FINAL]),
    thought("<|channel|>commentary<|message|>", &["<|end|>", "<|return|>", FINAL]),
    thought("<|channel>thought", &["<channel|>"]),
    call("<|channel|>commentary", &["<|call|>", "<|end|>", FINAL]),
    call("<tool_call>", &["</tool_call>"]),
    call("<function_calls>", &["</function_calls>"]),
    call("<function=", &["</function>"]),
    call("[tool_calls]", &[]),
    call("<|python_tag|>", &["<|eom_id|>", "<|eot_id|>"]),
    call("<｜tool▁calls▁begin｜>", &["<｜tool▁calls▁end｜>"]),
    call("<|tool_calls_section_begin|>", &["<|tool_calls_section_end|>"]),
];
const FINAL: &str = "<|channel|>final<|message|>";

/// Endings that also stand alone, if the template of the server has written the opening. What stands before them is a thought.
const ENDINGS: [&str; 8] = [
    "</think>",
    "</thinking>",
    "</thought>",
    "</thoughts>",
    "</seed:think>",
    "[/think]",
    "◁/think▷",
    "<|end_of_thought|>",
];

/// Tokens around the channel that is speech.
const TOKENS: [&str; 5] = [FINAL, "<|start|>assistant", "<|message|>", "<|end|>", "<|return|>"];

/// The first characters of all markers.
const STARTS: [char; 3] = ['<', '[', '◁'];

/// A text in progress.
#[derive(Debug, Default)]
pub struct Aside {
    /// Whether calls in a model's own notation are taken out. If not, they are text.
    takes_calls: bool,
    /// Whether nothing is speech before an ending.
    begins_in_thought: bool,
    /// What may be the beginning of a marker.
    held: String,
    within: Option<usize>,
    spoken: String,
    thoughts: String,
    calls: Vec<String>,
    has_lone_ending: bool,
}

/// What stands at a place of a text.
enum Found {
    /// A marker of this many bytes, and what it is.
    Marker(usize, Marker),
    /// The beginning of one, perhaps.
    Perhaps,
    Nothing,
}

#[derive(Clone, Copy)]
enum Marker {
    /// The number of its opening.
    Opens(usize),
    Ends,
    Token,
}

impl Aside {
    /// An empty text. `takes_calls` says whether tools were offered, `begins_in_thought` that the endpoint is known to leave out the
    /// opening of its thoughts, so that nothing may be told before they end.
    #[must_use]
    pub fn new(takes_calls: bool, begins_in_thought: bool) -> Self {
        Self { takes_calls, begins_in_thought, ..Self::default() }
    }

    /// Adds a piece. Returns the speech in it, which may be told.
    pub fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let text = std::mem::take(&mut self.held);
        let mut told = String::new();
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let Some(at) = rest.find(STARTS) else {
                self.add(rest, &mut told);
                return told;
            };
            self.add(&rest[..at], &mut told);
            rest = &rest[at..];
            match self.at(rest) {
                Found::Marker(length, marker) => {
                    self.turn(marker, &mut told);
                    rest = &rest[length..];
                }
                Found::Perhaps => {
                    rest.clone_into(&mut self.held);
                    return told;
                }
                Found::Nothing => {
                    let length = rest.chars().next().map_or(0, char::len_utf8);
                    self.add(&rest[..length], &mut told);
                    rest = &rest[length..];
                }
            }
        }
        told
    }

    /// Ends the text. Returns what could not be told before.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.held);
        let mut told = String::new();
        self.add(&rest, &mut told);
        if self.begins_in_thought && !self.has_lone_ending {
            // This time there were no thoughts.
            told.insert_str(0, &self.spoken);
        }
        told
    }

    /// The speech: what was told, unless it turned out to be a thought.
    #[must_use]
    pub fn spoken(&self) -> &str {
        &self.spoken
    }

    /// The thoughts.
    #[must_use]
    pub fn thoughts(&self) -> &str {
        &self.thoughts
    }

    /// The calls, each with what stood between its markers.
    #[must_use]
    pub fn calls(&self) -> &[String] {
        &self.calls
    }

    /// Whether the text ends within a thought.
    #[must_use]
    pub fn ends_in_thought(&self) -> bool {
        self.within.is_some_and(|n| OPENINGS[n].kind == Kind::Thought)
    }

    /// Whether thoughts ended that had not begun.
    #[must_use]
    pub fn has_lone_ending(&self) -> bool {
        self.has_lone_ending
    }

    fn at(&self, rest: &str) -> Found {
        if let Some(within) = self.within {
            return find(rest, OPENINGS[within].ends.iter().map(|end| (*end, Marker::Ends)));
        }
        let openings =
            OPENINGS.iter().enumerate().filter(|(_, opening)| self.takes_calls || opening.kind != Kind::Call);
        let openings = openings.map(|(n, opening)| (opening.marker, Marker::Opens(n)));
        let endings = ENDINGS.iter().map(|ending| (*ending, Marker::Ends));
        find(rest, openings.chain(endings).chain(TOKENS.iter().map(|token| (*token, Marker::Token))))
    }

    fn turn(&mut self, marker: Marker, told: &mut String) {
        match marker {
            Marker::Opens(n) => {
                self.within = Some(n);
                if OPENINGS[n].kind == Kind::Call {
                    self.calls.push(OPENINGS[n].marker.to_owned());
                }
            }
            Marker::Ends if self.within.is_some() => self.within = None,
            Marker::Ends => {
                self.thoughts.push_str(&std::mem::take(&mut self.spoken));
                told.clear();
                self.has_lone_ending = true;
            }
            Marker::Token => {}
        }
    }

    fn add(&mut self, text: &str, told: &mut String) {
        match self.within.map(|n| OPENINGS[n].kind) {
            Some(Kind::Thought) => self.thoughts.push_str(text),
            Some(Kind::Call) => self.calls.last_mut().into_iter().for_each(|call| call.push_str(text)),
            None => {
                self.spoken.push_str(text);
                if !self.begins_in_thought || self.has_lone_ending {
                    told.push_str(text);
                }
            }
        }
    }
}

/// The first of these markers that the text begins with. If the text is too short to tell, it may be one.
fn find(text: &str, markers: impl Iterator<Item = (&'static str, Marker)>) -> Found {
    let mut found = Found::Nothing;
    for (marker, meaning) in markers {
        let (given, wanted) = (text.as_bytes(), marker.as_bytes());
        // Most markers differ in their second byte, so this is quick.
        if given.get(1).is_some_and(|byte| !byte.eq_ignore_ascii_case(&wanted[1])) {
            continue;
        }
        let length = given.len().min(wanted.len());
        if !given[..length].eq_ignore_ascii_case(&wanted[..length]) {
            continue;
        }
        match found {
            _ if given.len() < wanted.len() => return Found::Perhaps,
            Found::Nothing => found = Found::Marker(wanted.len(), meaning),
            _ => {}
        }
    }
    found
}
