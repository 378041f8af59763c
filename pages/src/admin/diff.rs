//! Differences between texts, word by word, and merging two people's changes of one text.

use std::time::{Duration, Instant};

use similar::{ChangeTag, TextDiff};

/// The most time for comparing two texts. The rest then counts as changed.
const COMPARED_FOR: Duration = Duration::from_millis(100);
/// The most time for all comparisons of a page.
const ALL_COMPARED_FOR: Duration = Duration::from_secs(1);
/// The most lines of a text that can be merged: the work grows with the product of both lengths.
const MERGED_LINES_MAX: usize = 2000;
/// The most marker characters at the beginning of a line of such a text. The conflict markers must be longer, and each
/// conflict has three of them.
const MARKS_MAX: usize = 200;
/// How many unchanged characters are shown on each side of a change.
const AROUND: usize = 120;

/// A part of a compared text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Change,
    pub text: String,
}

/// What happened to the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Same,
    Gone,
    New,
}

impl Piece {
    /// Whether the part was removed.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.kind == Change::Gone
    }

    /// Whether the part was added.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.kind == Change::New
    }
}

/// Compares the texts of one page within a time limit.
#[derive(Clone, Copy, Debug)]
pub struct Differ {
    until: Instant,
}

impl Differ {
    /// Starts the time limit.
    #[must_use]
    pub fn begun(now: Instant) -> Self {
        Self { until: now + ALL_COMPARED_FOR }
    }

    /// The difference between two texts by words. Long unchanged parts are shortened.
    #[must_use]
    pub fn words(&self, before: &str, after: &str) -> Vec<Piece> {
        words_until(before, after, self.until.min(Instant::now() + COMPARED_FOR))
    }
}

/// The difference between two texts by words. Long unchanged parts are shortened.
#[must_use]
pub fn words(before: &str, after: &str) -> Vec<Piece> {
    words_until(before, after, Instant::now() + COMPARED_FOR)
}

fn words_until(before: &str, after: &str, until: Instant) -> Vec<Piece> {
    let diff = TextDiff::configure().deadline(until).diff_words(before, after);
    let mut pieces: Vec<Piece> = Vec::new();
    for change in diff.iter_all_changes() {
        let kind = match change.tag() {
            ChangeTag::Equal => Change::Same,
            ChangeTag::Delete => Change::Gone,
            ChangeTag::Insert => Change::New,
        };
        match pieces.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(change.value()),
            _ => pieces.push(Piece { kind, text: change.value().to_owned() }),
        }
    }
    let last = pieces.len().saturating_sub(1);
    for (i, piece) in pieces.iter_mut().enumerate() {
        if piece.kind == Change::Same {
            piece.text = cut(&piece.text, i == 0, i == last);
        }
    }
    pieces
}

/// Shortens an unchanged part to its two ends. The first part keeps only its end, the last only its beginning.
fn cut(text: &str, is_first: bool, is_last: bool) -> String {
    let count = text.chars().count();
    if count <= 3 * AROUND {
        return text.to_owned();
    }
    let head: String = if is_first { String::new() } else { text.chars().take(AROUND).collect() };
    let tail: String = if is_last { String::new() } else { text.chars().skip(count - AROUND).collect() };
    format!("{head} … {tail}")
}

/// Merges the changes of both, line by line. Where they touch the same lines, mine wins. Also returns whether they do,
/// or whether the texts are too long to merge. Each line of the result comes from one of the three texts.
#[must_use]
pub fn merged(base: &str, mine: &str, theirs: &str) -> (String, bool) {
    let texts = [base, mine, theirs];
    let is_long = texts.iter().any(|text| text.lines().nth(MERGED_LINES_MAX).is_some());
    // Conflict markers that no line of the texts begins with.
    let longest = texts.iter().flat_map(|text| text.split('\n')).map(run_of_marks).max().unwrap_or(0);
    if is_long || longest > MARKS_MAX {
        return (mine.to_owned(), true);
    }
    // A marker after a last line without a line end would become part of that line.
    let [base, own, theirs] = texts.map(ended);
    let mut options = diffy::MergeOptions::new();
    options.set_conflict_style(diffy::ConflictStyle::Merge).set_conflict_marker_length(longest + 7);
    let (mut text, touch) = match options.merge(&base, &own, &theirs) {
        Ok(text) => (text, false),
        Err(marked) => (mine_of(&marked, longest + 7), true),
    };
    if !mine.ends_with('\n') && text.ends_with('\n') {
        text.pop();
    }
    (text, touch)
}

/// A text with a line end after its last line.
fn ended(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}")
}

fn run_of_marks(line: &str) -> usize {
    let first = line.chars().next();
    if !matches!(first, Some('<' | '=' | '>' | '|')) {
        return 0;
    }
    line.chars().take_while(|c| Some(*c) == first).count()
}

/// A text with conflict markers, reduced to the first side of each conflict.
fn mine_of(marked: &str, marks: usize) -> String {
    let (open, middle, close) = ("<".repeat(marks), "=".repeat(marks), ">".repeat(marks));
    let mut out = String::new();
    let mut is_theirs = false;
    for line in marked.split_inclusive('\n') {
        if line.starts_with(&open) {
            continue;
        }
        if line.starts_with(&middle) {
            is_theirs = true;
        } else if line.starts_with(&close) {
            is_theirs = false;
        } else if !is_theirs {
            out.push_str(line);
        }
    }
    out
}
