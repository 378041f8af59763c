//! What was said, as the tables of players and game masters show it.

use askama::Template;
use serde::Deserialize;
use uuid::Uuid;

use super::{again::Attempts, when};
use crate::emblem::Emblem;
use base::error::{Error, Result};
use entity::{MessageId, Seq};
use world::{
    messages::{
        asked::Asked,
        visible::{Missed, VisibleMessage, Which},
    },
    table::Changes,
};

/// A message.
#[derive(Template)]
#[template(path = "table/message.html")]
pub(crate) struct MessageView<'a> {
    pub(crate) message: &'a VisibleMessage,
    pub(crate) foot: Foot<'a>,
    /// Whether it takes the place of what it was before.
    pub(crate) is_changed: bool,
    /// Whether it says when it was said.
    pub(crate) has_time: bool,
}

/// What its reader can do with a message.
pub(crate) struct Foot<'a> {
    /// The path of the reader's table.
    pub(crate) table: &'a str,
    /// The hidden fields of its forms.
    pub(crate) fields: &'a str,
    /// An answer is tried again, goes on, or gives its place to another attempt.
    pub(crate) attempts: Option<&'a Attempts>,
    /// A roll is asked for.
    pub(crate) asked: Option<&'a Asked>,
    /// A game master corrects it or strikes it.
    pub(crate) may_mend: bool,
}

impl MessageView<'_> {
    fn emblem(&self) -> Emblem {
        Emblem::of(self.message.name())
    }

    /// When it was said, for programs and for people.
    fn when(&self) -> Option<(String, String)> {
        let at = self.message.created_at;
        self.has_time.then(|| (when::for_programs(at), when::day_and_time(at)))
    }
}

/// Messages in the order in which people read them: a further attempt at an answer stands where the first one stood, as it does for those
/// whose page was open.
pub(crate) fn in_order(said: &[VisibleMessage]) -> Vec<&VisibleMessage> {
    let when = |message: &VisibleMessage| message.first_attempt_at.unwrap_or(message.created_at);
    let (again, mut ordered): (Vec<_>, Vec<_>) = said.iter().partition(|message| message.first_attempt_at.is_some());
    for message in again {
        let place = ordered.iter().position(|other| when(other) > when(message));
        ordered.insert(place.unwrap_or(ordered.len()), message);
    }
    ordered
}

/// Messages as a page begins with them. `missed` is what its reader has not seen of them.
///
/// # Errors
/// `internal` if they cannot be rendered.
fn all<'a>(
    said: &'a [VisibleMessage],
    missed: Option<&Missed>,
    foot: impl Fn(&'a VisibleMessage) -> Foot<'a>,
) -> Result<String> {
    let mut html = String::new();
    for message in in_order(said) {
        if missed.is_some_and(|missed| missed.first.0 == message.id) {
            html.push_str("<p class=\"session\">Since you were here</p>");
        }
        MessageView { message, foot: foot(message), is_changed: false, has_time: true }
            .render_into(&mut html)
            .map_err(Error::internal)?;
    }
    Ok(html)
}

/// How many messages a table begins with, and how many older ones come at a time.
pub(crate) const MESSAGES_SHOWN: i64 = 50;

/// The messages before those that a page shows.
#[derive(Deserialize)]
pub(crate) struct Before {
    pub(crate) before: Seq,
}

impl Before {
    /// Which these are.
    pub(crate) fn which(self) -> Which<'static> {
        Which::StoryBefore(Some(self.before), MESSAGES_SHOWN)
    }
}

/// Where the lines before a page's first message are. `root` is the path of the story without its last part, and `table` that of the table.
#[derive(Template)]
#[template(path = "table/older.html")]
struct Older<'a> {
    root: &'a str,
    table: &'a str,
    before: Seq,
}

/// Messages and the way to the older ones, if there may be some.
///
/// # Errors
/// `internal` if they cannot be rendered.
pub(crate) fn with_older<'a>(
    said: &'a [VisibleMessage],
    missed: Option<&Missed>,
    (root, table): (&str, &str),
    foot: impl Fn(&'a VisibleMessage) -> Foot<'a>,
) -> Result<String> {
    let is_full = i64::try_from(said.len()).is_ok_and(|count| count >= MESSAGES_SHOWN);
    let older = match said.first().filter(|_| is_full) {
        Some(first) => Older { root, table, before: first.seq }.render().map_err(Error::internal)?,
        None => String::new(),
    };
    Ok(older + &all(said, missed, foot)?)
}

/// The messages that a page shows and that changed: new ones, corrected ones, and those that are gone, for good or set aside for another attempt.
pub(crate) struct ChangedMessages {
    new: Vec<Uuid>,
    reworded: Vec<Uuid>,
    gone: Vec<(Uuid, bool)>,
    /// The first two.
    to_read: Vec<Uuid>,
}

impl ChangedMessages {
    pub(crate) fn of(changes: &Changes) -> Self {
        let of = |op| changes.of("message", Some(op)).map(|change| change.row).collect::<Vec<_>>();
        let (new, reworded) = (of("insert"), of("update"));
        let gone = changes.of("message", Some("delete")).map(|change| (change.row, change.is_set_aside)).collect();
        Self { to_read: [new.as_slice(), &reworded].concat(), new, reworded, gone }
    }

    /// Shows other messages again.
    pub(crate) fn also(&mut self, again: impl IntoIterator<Item = MessageId>) {
        self.reworded.extend(again.into_iter().map(|id| id.0));
    }

    /// Those to read.
    pub(crate) fn to_read(&self) -> Which<'_> {
        Which::These(&self.to_read)
    }

    /// The pieces that show the changes, from the messages that were read.
    ///
    /// # Errors
    /// `internal` if they cannot be rendered.
    pub(crate) fn pieces<'a>(
        &self,
        said: &'a [VisibleMessage],
        foot: impl Fn(&'a VisibleMessage) -> Foot<'a>,
    ) -> Result<Vec<(&'static str, String)>> {
        let mut pieces = Vec::new();
        // Before the new ones, which may take their place. What was there again in the end is not gone.
        for (id, is_set_aside) in self.gone.iter().filter(|(id, _)| said.iter().all(|message| message.id != *id)) {
            pieces.push(if *is_set_aside {
                ("message", format!("<i data-aside=\"m-{id}\"></i>"))
            } else {
                gone(MessageId(*id))
            });
        }
        for message in said {
            // A page may have a new message already, from before it was reworded. Then it ignores the first piece, and swaps the second.
            for (is_so, is_changed) in [(&self.new, false), (&self.reworded, true)] {
                if is_so.contains(&message.id) {
                    let view = MessageView { message, foot: foot(message), is_changed, has_time: true };
                    pieces.push(("message", view.render().map_err(Error::internal)?));
                }
            }
        }
        Ok(pieces)
    }
}

/// The piece that takes a message out of the page.
pub(crate) fn gone(message: MessageId) -> (&'static str, String) {
    ("message", format!("<p id=\"m-{message}\" hx-swap-oob=\"delete\"></p>"))
}
