//! What people and models write, as HTML: `*words*` and `_words_` are emphasised, `**words**` are strong, what is in quotation marks stands
//! out, blank lines begin paragraphs. Everything else is shown as it was written: there are no links, pictures, headings or lists, and no
//! markup of theirs survives.
//!
//! A mark counts if it has its other half in the same paragraph. While a text still comes ([`Coming`]) nobody knows that, so there each mark
//! counts that could begin something; the whole text ([`Marked`]) takes its place in the end. Both take linear time.

use std::{
    fmt::{self, Display, Formatter, Write},
    mem,
};

use askama::filters::{Html, HtmlSafe, escape};
use base::text::on_one_line;

/// The most bytes that are held back of a text that comes.
const HELD_BYTES_MAX: usize = 300;

/// A whole text, as paragraphs.
pub(crate) struct Marked<'a> {
    text: &'a str,
    /// A name before the first paragraph.
    name: Option<&'a str>,
}

impl<'a> Marked<'a> {
    /// What is said.
    pub(crate) fn of(text: &'a str) -> Self {
        Self { text, name: None }
    }

    /// What somebody does, told behind their name.
    pub(crate) fn deed_of(name: &'a str, text: &'a str) -> Self {
        Self { text, name: Some(name) }
    }

    /// A text as Markdown, in which nothing but its marks is markup. Some readers of Markdown make links of bare addresses all the same.
    pub(crate) fn markdown(&self) -> String {
        let mut out = Markdown::default();
        for (n, paragraph) in self.paragraphs().into_iter().enumerate() {
            if n > 0 {
                out.text.push_str("\n\n");
                out.line = Beginning::Fresh;
            }
            for piece in paragraph.pieces {
                match piece {
                    Piece::Text(text) => out.put(text),
                    Piece::Begin(kind, shown) | Piece::End(kind, shown) => out.mark(kind, shown),
                }
            }
        }
        out.text
    }

    /// A text on one line as Markdown, in which nothing is markup.
    pub(crate) fn plain(text: &str) -> String {
        let mut out = Markdown { line: Beginning::Past, ..Markdown::default() };
        out.put(&on_one_line(text));
        out.text
    }

    fn paragraphs(&self) -> Vec<Paragraph<'a>> {
        let mut all = vec![Paragraph { name: self.name, ..Paragraph::default() }];
        let mut tokens = Tokens { rest: self.text.trim(), before: None, is_whole: true };
        while let Some(token) = tokens.next() {
            let Some(paragraph) = all.last_mut() else { break };
            match token {
                Token::Break(_) => all.push(Paragraph::default()),
                Token::Text(text) => paragraph.pieces.push(Piece::Text(text)),
                Token::Mark(mark) => {
                    let parts = mark.parts(|kind| paragraph.open.iter().rposition(|(open, _)| *open == kind));
                    parts.into_iter().flatten().for_each(|mark| paragraph.mark(mark));
                }
            }
        }
        all
    }
}

impl HtmlSafe for Marked<'_> {}

impl Display for Marked<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.paragraphs().into_iter().try_for_each(|paragraph| paragraph.write(out))
    }
}

/// Text as Markdown.
#[derive(Default)]
struct Markdown {
    text: String,
    line: Beginning,
}

/// What a line has so far.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Beginning {
    #[default]
    Fresh,
    /// Only digits.
    Number,
    Past,
}

impl Markdown {
    /// Adds text in which nothing is markup.
    fn put(&mut self, text: &str) {
        for c in text.chars() {
            let is_markup = match c {
                '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '$' => true,
                '-' | '+' | '=' => self.line == Beginning::Fresh,
                '.' | ')' => self.line == Beginning::Number,
                _ => false,
            };
            self.line = match c {
                '\n' => Beginning::Fresh,
                c if c.is_whitespace() && self.line == Beginning::Fresh => Beginning::Fresh,
                c if c.is_ascii_digit() && self.line != Beginning::Past => Beginning::Number,
                _ => Beginning::Past,
            };
            match c {
                // Otherwise Markdown would join the lines.
                '\n' => self.text.push_str("\\\n"),
                // Four of them would make code.
                c if c.is_whitespace() && self.line == Beginning::Fresh => {}
                c => {
                    self.text.extend(is_markup.then_some('\\'));
                    self.text.push(c);
                }
            }
        }
    }

    fn mark(&mut self, kind: Kind, shown: &str) {
        match kind {
            Kind::Emphasis(mark) => self.text.push(mark),
            Kind::Strong => self.text.push_str("**"),
            Kind::Quote(_) => self.text.push_str(shown),
        }
        self.line = Beginning::Past;
    }
}

/// A text that comes in pieces, each of which becomes HTML of its own. It stands where line breaks are kept.
#[derive(Default)]
pub(crate) struct Coming {
    /// What has come and cannot be told yet, because it depends on what comes next.
    held: String,
    /// The last character that was told.
    before: Option<char>,
    open: Vec<Kind>,
}

impl Coming {
    /// The HTML of what is known after another piece.
    pub(crate) fn then(&mut self, piece: &str) -> String {
        self.told(piece, false)
    }

    /// The HTML of the rest.
    pub(crate) fn end(&mut self) -> String {
        self.told("", true)
    }

    fn told(&mut self, piece: &str, is_whole: bool) -> String {
        let mut text = mem::take(&mut self.held);
        text.push_str(piece);
        let mut tokens = Tokens { rest: &text, before: self.before, is_whole };
        let mut html = Tagged::default();
        while let Some(token) = tokens.next() {
            match token {
                Token::Text(text) => html.put(text, &self.open),
                Token::Break(text) => {
                    self.open.clear();
                    html.put(text, &self.open);
                }
                Token::Mark(mark) => {
                    let parts = mark.parts(|kind| self.open.iter().rposition(|open| *open == kind));
                    parts.into_iter().flatten().for_each(|mark| self.mark(mark, &mut html));
                }
            }
        }
        (self.before, self.held) = (tokens.before, tokens.rest.to_owned());
        html.put("", &[]);
        html.html
    }

    fn mark(&mut self, mark: Mark<'_>, html: &mut Tagged) {
        let shown = if mark.is_shown() { mark.text } else { "" };
        if let Some(at) = self.open.iter().rposition(|open| open.ends_with(&mark)) {
            html.put(shown, &self.open);
            self.open.truncate(at);
        } else if let Some(kind) = mark.begins.filter(|kind| !self.open.contains(kind)) {
            self.open.push(kind);
            html.put(shown, &self.open);
        } else {
            html.put(mark.text, &self.open);
        }
    }
}

/// HTML whose last tags are not closed yet.
#[derive(Default)]
struct Tagged {
    html: String,
    within: Vec<Kind>,
}

impl Tagged {
    /// Adds a text within what is open.
    fn put(&mut self, text: &str, open: &[Kind]) {
        let same = self.within.iter().zip(open).take_while(|(was, is)| was == is).count();
        for kind in self.within.drain(same..).rev() {
            self.html.push_str(kind.tags().1);
        }
        for kind in open.get(same..).unwrap_or_default() {
            self.html.push_str(kind.tags().0);
            self.within.push(*kind);
        }
        // Writing to a string does not fail.
        let _written = write!(self.html, "{}", escaped(text));
    }
}

/// What a mark makes of the words behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The words are in italics; the mark is this character.
    Emphasis(char),
    Strong,
    /// A quotation that begins with this character.
    Quote(char),
}

impl Kind {
    const fn tags(self) -> (&'static str, &'static str) {
        match self {
            Self::Emphasis(_) => ("<em>", "</em>"),
            Self::Strong => ("<strong>", "</strong>"),
            Self::Quote(_) => ("<span class=\"quote\">", "</span>"),
        }
    }

    /// Whether a mark is the other half of the one that began this.
    fn ends_with(self, mark: &Mark<'_>) -> bool {
        let last = mark.text.chars().next().unwrap_or_default();
        mark.may_end
            && match self {
                Self::Quote(first) => closes(first).contains(last),
                _ => mark.ends == Some(self),
            }
    }
}

/// The characters that can end a quotation which begins with this one; none if it begins none. Languages differ: “English”, „German“,
/// ”Swedish”, «French», »Danish«, 「Japanese」.
const fn closes(first: char) -> &'static str {
    match first {
        '"' => "\"",
        '“' | '”' => "”",
        '„' => "“”",
        '«' => "»",
        '»' => "«",
        '‹' => "›",
        '›' => "‹",
        '‘' => "’",
        '‚' => "‘’",
        '「' => "」",
        '『' => "』",
        '《' => "》",
        _ => "",
    }
}

/// A mark, and what it could do where it stands.
#[derive(Clone, Copy)]
struct Mark<'a> {
    text: &'a str,
    /// What it could begin, and what it could end unless it is a quotation mark.
    begins: Option<Kind>,
    ends: Option<Kind>,
    may_end: bool,
}

impl<'a> Mark<'a> {
    /// Three asterisks are one and two, in the order in which they end what is open. `place` says where something began that is open.
    fn parts(self, place: impl Fn(Kind) -> Option<usize>) -> [Option<Self>; 2] {
        let Some((one, two)) = self.text.split_at_checked(1).filter(|_| self.text == "***") else {
            return [Some(self), None];
        };
        let part = |text: &'a str, kind| {
            Some(Self { text, begins: self.begins.and(Some(kind)), ends: Some(kind), may_end: self.may_end })
        };
        let (one, two) = (part(one, Kind::Emphasis('*')), part(two, Kind::Strong));
        if place(Kind::Strong) > place(Kind::Emphasis('*')) { [two, one] } else { [one, two] }
    }

    /// Whether it is shown: quotation marks are, the others are not.
    fn is_shown(&self) -> bool {
        !self.text.starts_with(['*', '_'])
    }
}

enum Token<'a> {
    Text(&'a str),
    Mark(Mark<'a>),
    /// White space with an empty line.
    Break(&'a str),
}

/// Cuts a text.
struct Tokens<'a> {
    rest: &'a str,
    /// The character before the rest.
    before: Option<char>,
    /// Whether nothing comes behind the rest.
    is_whole: bool,
}

fn is_mark(c: char) -> bool {
    matches!(c, '*' | '_' | '’' | '」' | '』' | '》') || !closes(c).is_empty()
}

impl<'a> Tokens<'a> {
    fn next(&mut self) -> Option<Token<'a>> {
        let first = self.rest.chars().next()?;
        let is_alike: fn(char, char) -> bool = match first {
            '*' | '_' => |c, first| c == first,
            c if c.is_whitespace() => |c, _| c.is_whitespace(),
            // Each quotation mark stands for itself.
            c if is_mark(c) => |_, _| false,
            _ => |c, _| !is_mark(c) && !c.is_whitespace(),
        };
        let behind = first.len_utf8();
        let length = self.rest.get(behind..)?.find(|c| !is_alike(c, first)).map(|length| behind + length);
        let is_plain = !first.is_whitespace() && !is_mark(first);
        let (text, rest) = match length {
            Some(length) => self.rest.split_at_checked(length)?,
            // More of it may come.
            None if !self.is_whole && !is_plain && self.rest.len() <= HELD_BYTES_MAX => return None,
            None => (self.rest, ""),
        };
        let before = mem::replace(&mut self.before, text.chars().next_back());
        self.rest = rest;
        Some(match first {
            c if c.is_whitespace() && text.matches('\n').count() > 1 => Token::Break(text),
            c if is_mark(c) => Token::Mark(Self::mark(text, first, (before, rest.chars().next()))),
            _ => Token::Text(text),
        })
    }

    /// What a mark can do between two characters.
    fn mark(text: &'a str, first: char, (before, after): (Option<char>, Option<char>)) -> Mark<'a> {
        let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
        // Within a word a `_` is a part of a name, and a `*` between digits or letters multiplies.
        let is_word = |c: Option<char>| match first {
            '*' => c.is_some_and(|c| c.is_ascii_alphanumeric()),
            _ => c.is_some_and(char::is_alphanumeric),
        };
        let kind = match (first, text.len()) {
            ('*' | '_', 1) => Some(Kind::Emphasis(first)),
            ('*', 2) => Some(Kind::Strong),
            // Both, see `parts`.
            ('*', 3) => Some(Kind::Strong),
            ('*' | '_', _) => None,
            _ => (!closes(first).is_empty()).then_some(Kind::Quote(first)),
        };
        // Where words have no spaces between them, quotations have none around them either.
        let is_apart = |c: Option<char>| !is_word(c) || matches!(first, '「' | '『' | '《' | '“');
        // An apostrophe ends nothing.
        let may_end =
            !is_space(before) && (first != '’' || !is_word(after)) && (first != '*' && first != '_' || !is_word(after));
        Mark { text, begins: kind.filter(|_| !is_space(after) && is_apart(before)), ends: kind, may_end }
    }
}

/// A paragraph of a whole text.
#[derive(Default)]
struct Paragraph<'a> {
    name: Option<&'a str>,
    pieces: Vec<Piece<'a>>,
    /// What has begun, and the piece with which it did.
    open: Vec<(Kind, usize)>,
}

enum Piece<'a> {
    Text(&'a str),
    Begin(Kind, &'a str),
    End(Kind, &'a str),
}

impl<'a> Paragraph<'a> {
    fn mark(&mut self, mark: Mark<'a>) {
        let shown = if mark.is_shown() { mark.text } else { "" };
        if let Some(at) = self.open.iter().rposition(|(open, _)| open.ends_with(&mark)) {
            // What began later has no other half, and stays as it is written.
            let begun = self.open.drain(at..).next();
            if let Some((kind, Some(piece))) = begun.map(|(kind, at)| (kind, self.pieces.get_mut(at))) {
                *piece = Piece::Begin(kind, if mark.is_shown() { piece.text() } else { "" });
                self.pieces.push(Piece::End(kind, shown));
            }
            return;
        }
        if let Some(kind) = mark.begins.filter(|kind| self.open.iter().all(|(open, _)| open != kind)) {
            self.open.push((kind, self.pieces.len()));
        }
        self.pieces.push(Piece::Text(mark.text));
    }

    fn write(self, out: &mut Formatter<'_>) -> fmt::Result {
        if self.pieces.is_empty() {
            return Ok(());
        }
        out.write_str("<p dir=\"auto\">")?;
        if let Some(name) = self.name {
            write!(out, "<bdi>{}</bdi> ", escaped(name))?;
        }
        for piece in self.pieces {
            match piece {
                Piece::Text(text) => write!(out, "{}", escaped(text))?,
                Piece::Begin(kind, shown) => write!(out, "{}{}", kind.tags().0, escaped(shown))?,
                Piece::End(kind, shown) => write!(out, "{}{}", escaped(shown), kind.tags().1)?,
            }
        }
        out.write_str("</p>")
    }
}

impl<'a> Piece<'a> {
    fn text(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Begin(_, text) | Self::End(_, text) => text,
        }
    }
}

/// A text with nothing that HTML reads as markup.
fn escaped(text: &str) -> impl Display {
    // It cannot fail: every text can be escaped.
    match escape(text, Html) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Coming, Marked};

    fn html(text: &str) -> String {
        Marked::of(text).to_string()
    }

    /// One paragraph, without its own tags.
    fn line(text: &str) -> String {
        let html = html(text);
        let inner = html.strip_prefix("<p dir=\"auto\">").and_then(|rest| rest.strip_suffix("</p>"));
        inner.unwrap_or_else(|| panic!("{html}")).replace("<span class=\"quote\">", "[").replace("</span>", "]")
    }

    #[test]
    fn marks_are_shown_as_cards_write_them() {
        for (text, shown) in [
            ("*He nods.* Sit.", "<em>He nods.</em> Sit."),
            ("_He nods._ **Sit!**", "<em>He nods.</em> <strong>Sit!</strong>"),
            ("***Run!***", "<em><strong>Run!</strong></em>"),
            ("***Run!** he says.*", "<em><strong>Run!</strong> he says.</em>"),
            ("*He yells **stop!***", "<em>He yells <strong>stop!</strong></em>"),
            ("**He is *gone!***", "<strong>He is <em>gone!</em></strong>"),
            ("*He says **no** softly.*", "<em>He says <strong>no</strong> softly.</em>"),
            ("*\"Ale?\" he asks.*", "<em>[&#34;Ale?&#34;] he asks.</em>"),
            ("\"*Ale*,\" he says. \"Or wine?\"", "[&#34;<em>Ale</em>,&#34;] he says. [&#34;Or wine?&#34;]"),
            ("“Ale,” „Bier“ «Vin» »Øl« ”Öl” 「酒」", "[“Ale,”] [„Bier“] [«Vin»] [»Øl«] [”Öl”] [「酒」]"),
            ("他说“来”，*坐*下。", "他说[“来”]，<em>坐</em>下。"),
            ("‘I don’t know,’ he said.", "[‘I don’t know,’] he said."),
            ("one\ntwo", "one\ntwo"),
        ] {
            assert_eq!(line(text), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_mark_stays() {
        for text in [
            "2 * 3 * 4",
            "2*3*4",
            "snake_case_name",
            "* * *",
            "****",
            "*open",
            "open*",
            "**",
            "5'10\" tall",
            "# no heading",
            "- no list",
            "[no](link)",
            "it's",
            "*one\n\ntwo*",
            "a “b",
            "_ _",
            "\\*",
        ] {
            let kept = html(text).replace("</p><p dir=\"auto\">", "\n\n").replace("&#34;", "\"").replace("&#39;", "'");
            assert_eq!(kept, format!("<p dir=\"auto\">{text}</p>"));
        }
        assert_eq!(line("*a \"b* c\""), "<em>a &#34;b</em> c&#34;", "halves that cross are no pairs");
        assert_eq!(html(" \n\n "), "");
        assert_eq!(
            Marked::deed_of("<Al>", "*bows*").to_string(),
            "<p dir=\"auto\"><bdi>&#60;Al&#62;</bdi> <em>bows</em></p>"
        );
    }

    #[test]
    fn markdown_has_the_marks_and_no_other_markup() {
        for (text, markdown) in [
            ("*He nods.* **Sit!** \"Ale?\"", "*He nods.* **Sit!** \"Ale?\""),
            ("_He_ 2*3*4 snake_case", "_He_ 2\\*3\\*4 snake\\_case"),
            ("# One\n- two\n3. three\n    four", "\\# One\\\n\\- two\\\n3\\. three\\\nfour"),
            ("a - b 3. c\n\n===", "a - b 3. c\n\n\\==="),
            (
                "<b> [x](y) ![z](w) `c` | ~d~ &amp; \\\\",
                "\\<b\\> \\[x\\](y) !\\[z\\](w) \\`c\\` \\| \\~d\\~ \\&amp; \\\\\\\\",
            ),
        ] {
            assert_eq!(Marked::of(text).markdown(), markdown, "{text}");
        }
        assert_eq!(Marked::plain("- B\n*o*b"), "- B \\*o\\*b");
    }

    #[test]
    fn no_markup_survives() {
        let hostile =
            "*<script>alert(1)</script>* ![x](http://e.test/x.png) <img src=x onerror=alert(1)> **</p>** \"<b>\"";
        let html = html(hostile);
        assert!(!html.contains("<script") && !html.contains("<img") && !html.contains("<b>"), "{html}");
        assert_eq!(html.matches("</p>").count(), 1);
    }

    #[test]
    fn what_comes_in_pieces_is_marked_at_once() {
        let mut coming = Coming::default();
        let mut told = String::new();
        for piece in ["*He", " nods", ".", "*", " \"Si", "t.\"", "\n", "\n*Then", " he\n", "\nleaves."] {
            told.push_str(&coming.then(piece));
        }
        told.push_str(&coming.end());
        let told = told
            .replace("</em><em>", "")
            .replace("</span><span class=\"quote\">", "")
            .replace("<span class=\"quote\">", "[");
        assert!(!told.contains("<em></em>"), "{told}");
        assert_eq!(told, "<em>He nods.</em> [&#34;Sit.&#34;</span>\n\n<em>Then he</em>\n\nleaves.");
    }

    /// The text of HTML whose tags are ours and closed in order; none if it has others.
    fn text_of(html: &str) -> Option<String> {
        let (mut text, mut open) = (String::new(), Vec::new());
        let mut rest = html;
        while let Some((before, tag)) = rest.split_once('<') {
            text.push_str(before);
            let (tag, behind) = tag.split_once('>')?;
            rest = behind;
            match tag.strip_prefix('/') {
                Some(name) => (open.pop()? == name).then_some(())?,
                None => open
                    .push(["p", "em", "strong", "span"].into_iter().find(|name| tag.split(' ').next() == Some(name))?),
            }
        }
        text.push_str(rest);
        (open.is_empty() && !text.contains('>'))
            .then(|| text.replace("&#34;", "\"").replace("&#60;", "<").replace("&#62;", ">"))
    }

    fn words(text: &str) -> String {
        text.chars().filter(|c| !c.is_whitespace() && !matches!(c, '*' | '_')).collect()
    }

    proptest! {
        #[test]
        fn marks_without_another_half_stay(text in "[a*]( [a\"]){0,9}|([a*_] ){0,9}|[ab*]{0,9}") {
            // Between spaces nothing begins or ends, and within a word of letters neither.
            let shown = text_of(&html(&text)).unwrap();
            let pairs = html(&text).matches("<em>").count() * 2 + html(&text).matches("<strong>").count() * 4;
            let marks = |text: &str| text.chars().filter(|c| matches!(c, '*' | '_')).count();
            prop_assert_eq!(marks(&shown) + pairs, marks(&text), "{}", text);
        }

        #[test]
        fn every_text_keeps_its_words(text in "[ab \n*_\"“”„«»’<>酒é]{0,60}", cuts in prop::collection::vec(0_usize..60, 0..6)) {
            let whole = text_of(&html(&text));
            prop_assert_eq!(whole.as_deref().map(words), Some(words(&text)));
            let chars: Vec<char> = text.chars().collect();
            let mut cuts = cuts;
            cuts.push(chars.len());
            cuts.sort_unstable();
            let (mut coming, mut at, mut told) = (Coming::default(), 0, String::new());
            for cut in cuts {
                let cut = cut.min(chars.len());
                told.push_str(&coming.then(&chars[at..cut].iter().collect::<String>()));
                at = cut;
                prop_assert!(text_of(&told).is_some(), "each piece is whole: {}", told);
            }
            told.push_str(&coming.end());
            prop_assert_eq!(text_of(&told).as_deref().map(words), Some(words(&text)));
        }
    }
}
