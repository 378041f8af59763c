//! What was said, as the tables of players and game masters show it.

use askama::Template;
use uuid::Uuid;

use crate::emblem::Emblem;
use base::error::{Error, Result};
use entity::MessageId;
use world::{
    messages::{
        asked::Asked,
        service::{VisibleMessage, Which},
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
}

/// What its reader can do with a message.
pub(crate) enum Foot<'a> {
    Nothing,
    /// Try the answer again, or choose another attempt at it. `table` is the path of the player's table.
    Retry {
        table: &'a str,
        attempts: &'a Attempts,
    },
    /// Answer it with a roll, at the player's table with this path.
    Ask {
        table: &'a str,
        asked: &'a Asked,
    },
    /// Correct it or strike it, at the game master's table with this path.
    Mend {
        table: &'a str,
    },
}

/// The attempts at an answer.
pub(crate) struct Attempts {
    /// The one before and the one after the chosen attempt.
    pub(crate) before: Option<Uuid>,
    pub(crate) after: Option<Uuid>,
    /// Which one is chosen, from 1, and how many there are.
    pub(crate) number: usize,
    pub(crate) count: usize,
}

impl MessageView<'_> {
    fn emblem(&self) -> Emblem {
        Emblem::of(self.message.name())
    }
}

/// Messages as a page begins with them.
///
/// # Errors
/// `internal` if they cannot be rendered.
pub(crate) fn all<'a>(said: &'a [VisibleMessage], foot: impl Fn(&'a VisibleMessage) -> Foot<'a>) -> Result<String> {
    let mut html = String::new();
    for message in said {
        MessageView { message, foot: foot(message), is_changed: false }
            .render_into(&mut html)
            .map_err(Error::internal)?;
    }
    Ok(html)
}

/// The messages that a page shows and that changed: new ones, corrected ones, and ids of those that are gone.
pub(crate) struct ChangedMessages {
    new: Vec<Uuid>,
    reworded: Vec<Uuid>,
    gone: Vec<Uuid>,
    /// The first two.
    to_read: Vec<Uuid>,
}

impl ChangedMessages {
    pub(crate) fn of(changes: &Changes) -> Self {
        let of = |op| changes.of("message", Some(op)).map(|change| change.row).collect::<Vec<_>>();
        let (new, reworded) = (of("insert"), of("update"));
        Self { to_read: [new.as_slice(), &reworded].concat(), new, reworded, gone: of("delete") }
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
        for message in said {
            // A page may have a new message already, from before it was reworded. Then it ignores the first piece, and swaps the second.
            for (is_so, is_changed) in [(&self.new, false), (&self.reworded, true)] {
                if is_so.contains(&message.id) {
                    let view = MessageView { message, foot: foot(message), is_changed };
                    pieces.push(("message", view.render().map_err(Error::internal)?));
                }
            }
        }
        for gone in &self.gone {
            pieces.push(("message", format!("<p id=\"m-{gone}\" hx-swap-oob=\"delete\"></p>")));
        }
        Ok(pieces)
    }
}
