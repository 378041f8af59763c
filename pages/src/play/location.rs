//! Where a player's character is: with this the table begins. Its name, what is told about it, who is there, and what one could do.

use askama::Template;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::seat::Seat;
use base::error::{Error, Result};
use edge::http::resource::{self, Ref};
use entity::CampaignId;
use world::{
    campaigns::Campaigns,
    interchange::text::{choices, fill, same_for_all, within},
    lore::MARKDOWN,
    npcs::place::location_name,
    table::{Company, Person, about},
};

/// The recipient that stands for the game, when a player says what the character does. No slug looks like this.
pub(super) const GAME: &str = "*";

/// The most names that are shown.
const NAMES_SHOWN: usize = 5;
/// The most characters of what is told.
const TOLD_CHARS_MAX: usize = 600;
/// The most characters of a text with its macros filled in.
const FILLED_CHARS_MAX: usize = 10_000;
/// How many things to do are offered, and how many of them are about people.
const WAYS: usize = 3;
const WAYS_TO_PEOPLE: usize = 2;

/// The location, as a piece of the page.
#[derive(Template)]
#[template(path = "play/location.html")]
pub(super) struct LocationView<'a> {
    /// The path of the table.
    table: String,
    /// The location as it is written; the campaign's name if the character has none.
    name: String,
    told: String,
    /// The first of those who are there, and how many more there are. None if the character has no location.
    there: Option<(Vec<&'a str>, usize)>,
    ways: Vec<Way>,
    /// Whether the character is in a fight. Then the description is closed.
    fights: bool,
}

/// Something that one could do: a text for somebody, which is not sent before the player sends it.
struct Way {
    label: String,
    to: String,
    text: &'static str,
}

impl Way {
    /// The query that writes it into the page's fields.
    fn query(&self) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("to", &self.to).append_pair("text", self.text).finish()
    }
}

impl<'a> LocationView<'a> {
    /// Reads what is told about the location. `others` are the other players' characters; `plans` says whether the game can be written to. One
    /// statement.
    ///
    /// # Errors
    /// Database errors.
    pub(super) async fn read(
        seat: &Seat,
        link: &str,
        company: &'a Company,
        others: &'a [Person],
        plans: bool,
    ) -> Result<Self> {
        let (name, told) = match &company.location {
            Some(location) => {
                let told = about(&seat.tx, CampaignId(seat.campaign), location).await?;
                (location_name(location), told.unwrap_or_default())
            }
            None => {
                let campaign = Ref::Id(seat.campaign);
                let campaign = resource::find::<Campaigns>(&seat.tx, &seat.caller, None, &campaign).await?;
                (campaign.name, campaign.description)
            }
        };
        let there = company.location.as_ref().map(|_| {
            let all = || company.npcs.iter().chain(others).filter(|person| person.is_here);
            (all().take(NAMES_SHOWN).map(|person| person.name.as_str()).collect(), all().skip(NAMES_SHOWN).count())
        });
        let told = beginning(&first_paragraph(&filled_for(&company.who, &told)));
        let ways = if company.fights || company.has_fallen { Vec::new() } else { ways(company, plans) };
        Ok(Self { table: format!("/play/{link}"), name, told, there, ways, fights: company.fights })
    }

    /// The piece.
    ///
    /// # Errors
    /// `internal` if it cannot be rendered.
    pub(super) fn piece(&self) -> Result<String> {
        self.render().map_err(Error::internal)
    }
}

/// What one could do: first what those can be asked who are there, then what one can do alone. Whoever is nowhere can ask who is nowhere, too.
fn ways(company: &Company, plans: bool) -> Vec<Way> {
    let is_near = |npc: &&Person| npc.is_here || company.location.is_none() && npc.is_nowhere;
    let near = company.npcs.iter().filter(is_near).filter(|npc| !npc.is_silent);
    let asked = near.take(WAYS_TO_PEOPLE).map(|npc| {
        let (does, text) = if npc.greets {
            (format!("Get to know {}", npc.name), "Good day. Who are you?")
        } else {
            (format!("Ask {} for news", npc.name), "What is new?")
        };
        Way { label: does, to: npc.slug.clone(), text }
    });
    let alone = [
        ("Look around", "I look around.", "/me looks around"),
        ("Listen", "I stop and listen.", "/me stops and listens"),
        ("Find a way out", "I look for a way out.", "/me looks for a way out"),
    ];
    let alone = alone.into_iter().map(|(does, asked, shown)| {
        let (to, text) = if plans { (GAME, asked) } else { ("", shown) };
        Way { label: does.to_owned(), to: to.to_owned(), text }
    });
    asked.chain(alone).take(WAYS).collect()
}

/// A text with its macros filled in for a player. A macro without an end may be a comment that was cut off.
fn filled_for(player: &str, text: &str) -> String {
    let whole = match text.rfind("{{") {
        Some(at) if !text[at..].contains("}}") => &text[..at],
        _ => text,
    };
    fill(whole, FILLED_CHARS_MAX, |name, value| match name {
        "user" => Some(player.to_owned().into()),
        "random" | "pick" => choices(value).next().map(Into::into),
        _ => same_for_all(name, value),
    })
}

/// The beginning of a text that may be too long.
fn beginning(text: &str) -> String {
    if text.chars().count() <= TOLD_CHARS_MAX {
        return text.to_owned();
    }
    let cut = within(text, TOLD_CHARS_MAX);
    let words = cut.rsplit_once(char::is_whitespace).map_or(cut, |(words, _)| words);
    format!("{}…", words.trim_end())
}

/// The words of the first paragraph of a Markdown text.
fn first_paragraph(text: &str) -> String {
    let (mut words, mut is_paragraph, mut pictures) = (String::new(), false, 0_u32);
    for event in Parser::new_ext(text, MARKDOWN) {
        match event {
            Event::Start(Tag::Paragraph) => is_paragraph = true,
            Event::End(TagEnd::Paragraph) if !words.trim().is_empty() => break,
            Event::End(TagEnd::Paragraph) => is_paragraph = false,
            Event::Start(Tag::Image { .. }) => pictures += 1,
            Event::End(TagEnd::Image) => pictures = pictures.saturating_sub(1),
            Event::Text(part) | Event::Code(part) if is_paragraph && pictures == 0 => words.push_str(&part),
            Event::SoftBreak | Event::HardBreak if is_paragraph => words.push(' '),
            _ => {}
        }
    }
    words.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{TOLD_CHARS_MAX, beginning, filled_for, first_paragraph};

    #[test]
    fn the_first_paragraph_is_told_in_plain_words() {
        for (text, told) in [
            ("# The Gull\n\nSmoked *eel* and\ndark **beer**.\n\nMore.", "Smoked eel and dark beer."),
            (
                "![map](http://e.test/x.png)\n\nSee [[The Reach|the sea]] & [here](http://e.test).",
                "See the sea & here.",
            ),
            ("<script>alert(1)</script>\n\nHere.", "Here."),
            ("- a list\n- of things", ""),
            ("", ""),
        ] {
            assert_eq!(first_paragraph(text), told, "{text}");
        }
        let long = beginning(&"wörd ".repeat(400));
        assert!(long.ends_with("wörd…") && long.chars().count() <= TOLD_CHARS_MAX + 1, "{long}");
    }

    #[test]
    fn macros_are_filled_in_and_comments_stay_hidden() {
        for (text, told) in [
            ("{{user}} is cold, says <user>.{{// no}}", "Alice is cold, says Alice."),
            ("{{// He is the murderer.\n\nDo not tell.}}\n\nA quiet square.", "A quiet square."),
            ("A quiet square. {{// cut off", "A quiet square."),
            ("{{random:red,blue}} lamps.", "red lamps."),
        ] {
            assert_eq!(first_paragraph(&filled_for("Alice", text)), told, "{text}");
        }
    }
}
