//! The table in a browser: a small page where a person with a player link plays one character.
//!
//! - [`visit`]: a player link, which `edge::auth::player_link` makes, is `/play/{campaign}#token`. The server exchanges the token (a player's access
//!   token) for a cookie. The part after the `#` never reaches a server's log. A visit ends with its key, like its
//!   token.
//! - [`table`]: what a player sees: the messages, the character sheet, and fights. [`live`] updates it with
//!   server-sent events.
//! - [`act`]: what a player says; [`whisper`] handles `/w NAME …`. [`roll`]: dice, and checks of the sheet. [`fight`]: what a
//!   player does in a fight by buttons.
//! - [`answer`]: what all of them answer, and how they read a form.
//!
//! The page shows only what the API shows to a player's token. It uses htmx and one script of our own. Without
//! JavaScript, players reload the page to see news. Everything that a model or a player wrote is escaped.

mod act;
mod answer;
mod fight;
mod live;
mod roll;
mod table;
mod visit;
mod whisper;

use actix_web::web;

/// The most bytes of a form: 4,000 characters, each written in at most twelve bytes.
const FORM_BYTES_MAX: usize = 64 * 1024;

/// Registers the pages.
pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::scope("/play")
            .app_data(web::FormConfig::default().limit(FORM_BYTES_MAX))
            .service(visit::enter)
            .service(visit::leave)
            .service(table::page)
            .service(act::say)
            .service(roll::roll)
            .service(roll::check)
            .service(fight::act)
            .service(act::try_again)
            .service(act::choose)
            .service(act::meet)
            .service(live::follow)
            .service(live::turn),
    );
}
