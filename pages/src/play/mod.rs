//! The table in a browser: a small page where a person with a player link plays one character.
//!
//! - [`visit`]: a player link is `/play/{campaign}#secret`. The server exchanges the secret, or a player's access token, for a cookie, which is
//!   renewed while the table is open. The part after the `#` never reaches a server's log. A visit ends with its link or token.
//! - [`table`]: what a player sees: the messages, the character sheet, and fights. [`around`]: whom the player can write to, and [`location`]:
//!   where the character is. [`live`] updates all of it with server-sent events. [`seat`]: what they read it with.
//! - [`act`]: what a player says. [`again`]: what a player does with an answer. [`roll`]: dice, and checks of the sheet. [`fight`]: what a
//!   player does in a fight by buttons.
//! - [`story`]: everything that the player may read of what was said, and files of it.
//! - [`answer`]: what all of them answer, and how they read a form.
//!
//! The page shows only what the API shows to a player's token. It uses htmx and one script of our own. Without
//! JavaScript, players reload the page to see news. Everything that a model or a player wrote is escaped.

mod act;
mod again;
mod answer;
mod around;
mod fight;
mod live;
mod location;
mod roll;
mod seat;
mod story;
mod table;
mod visit;

use actix_web::{Route, web};

use edge::patterns::Row;

/// The most bytes of a form: 4,000 characters, each written in at most twelve bytes.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// How forms of the table are read.
#[must_use]
pub fn forms() -> web::FormConfig {
    web::FormConfig::default().limit(FORM_BYTES_MAX)
}

/// Every page and every form of the table.
#[must_use]
pub fn routes() -> Vec<Row<Route>> {
    let row = |method, path: &'static str, value: Route| Row { method, pattern: path.into(), value };
    vec![
        row("GET", "/play/{campaign}", web::get().to(table::page)),
        row("POST", "/play/{campaign}/enter", web::post().to(visit::enter)),
        row("GET", "/play/{campaign}/leave", web::get().to(visit::ask)),
        row("POST", "/play/{campaign}/leave", web::post().to(visit::leave)),
        row("GET", "/play/{campaign}/lines", web::get().to(table::older)),
        row("GET", "/play/{campaign}/live", web::get().to(live::follow)),
        row("POST", "/play/{campaign}/say", web::post().to(act::say)),
        row("POST", "/play/{campaign}/roll", web::post().to(roll::roll)),
        row("POST", "/play/{campaign}/check", web::post().to(roll::check)),
        row("GET", "/play/{campaign}/story", web::get().to(story::page)),
        row("GET", "/play/{campaign}/story.html", web::get().to(story::html)),
        row("GET", "/play/{campaign}/story.md", web::get().to(story::markdown)),
        row("POST", "/play/{campaign}/meet", web::post().to(act::meet)),
        row("POST", "/play/{campaign}/fights/{fight}/act", web::post().to(fight::act)),
        row("GET", "/play/{campaign}/turns/{turn}", web::get().to(live::turn)),
        row("POST", "/play/{campaign}/turns/{turn}/again", web::post().to(again::again)),
        row("POST", "/play/{campaign}/turns/{turn}/choose", web::post().to(again::choose)),
        row("POST", "/play/{campaign}/turns/{turn}/continue", web::post().to(again::go_on)),
        row("POST", "/play/{campaign}/turns/{turn}/stop", web::post().to(again::stop)),
    ]
}
