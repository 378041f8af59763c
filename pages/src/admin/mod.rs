//! The editor: pages for worldbuilders, rendered on the server. It uses the services of the slices and has no SQL of its own.
//!
//! - [`PAGES`] lists every page and every form: its method, its path, the scope that it requires, and its handler. A
//!   page that is not in the list does not exist. A role is a set of scopes (`users::Role`), so a page requires the
//!   scope that the API's route requires.
//! - [`Editor`] and [`InCampaign`] are proofs. A handler that takes one knows that somebody is signed in and has the
//!   page's scope. If a form was sent, it also knows that one of our pages sent it (CSRF), and finds its fields in
//!   `editor.form`. Both extractors read the body, so a handler takes exactly one of them.
//! - [`Frame`] surrounds every page: navigation, the signed-in user, and a message about the last action.
//!   [`Editor::show`] renders the whole page. For htmx it renders only the block that was asked for, at the same URL.
//! - [`form`] builds fields with their hints and errors from a list (show it with
//!   `{% include "admin/fields.html" %}`). [`world_row`] says what the editor knows about a kind of row, and
//!   [`world_form`] has the list, form, conflict and deletion of every kind, and [`entity`] the page that shows all of it. [`ask`] asks before something is deleted.
//!   [`saving`] writes a form over a row, and [`merge`] merges two concurrent edits. [`query`] and [`words`] read
//!   addresses and values. [`answer`] and [`errors`] have what the handlers return.
//!
//! Everything works without JavaScript: the browser POSTs a form, and the server answers with a redirect and a message
//! ([`Editor::redirect`]), or with the page and its errors (`422`). htmx, `static/editor.js` and `static/lists.js` only
//! save reloads; [`table`] has `static/table.js`, too. Pages contain no inline script or style.
//!
//! # How to add a page
//!
//! 1. Write a file `admin/things.rs` with a template struct and its handlers:
//!    ```text
//!    #[derive(Template)]
//!    #[template(path = "admin/things.html", blocks = ["main", "rows"])]
//!    struct ThingsPage { frame: Frame, things: Vec<Thing> }
//!    render_blocks!(ThingsPage: as_main, "rows" => as_rows);
//!
//!    pub async fn list(at: InCampaign) -> Result<HttpResponse> {
//!        let tx = at.read().await?;                      // a TenantTx for the slice's service
//!        let things = things::service::list(&tx, at.campaign.id.0).await?;
//!        at.show(&ThingsPage { frame: at.frame("Things", Tab::Lore), things })
//!    }
//!
//!    pub async fn create(at: InCampaign) -> Result<HttpResponse> {
//!        let name = at.form.text("name");                // the form is read and its token checked
//!        …                                               // call a service; `form::Errors` puts its errors at the fields
//!        Ok(at.redirect(&at.url("things"), "The thing was created."))
//!    }
//!    ```
//! 2. Write `templates/admin/things.html`: `{% extends "admin/layout.html" %}`, and `{% block main %}` with the
//!    page. To load one block, give an element the block's name as its id and use `hx-target="#rows"`: the same URL
//!    then returns only that block. Every `<form method="post">` contains `{{ frame.token()|safe }}`. `data-key="e"` on
//!    a link, button or field gives it a keyboard shortcut, which the help on `?` then lists.
//! 3. Add its lines to [`PAGES`] in `pages.rs`. An item in the navigation is a [`Tab`] with a line in `frame.rs`.
//! 4. `tests/admin/` opens every page of the list as every role, in light and dark, and finds what you forgot.

mod account;
mod answer;
mod ask;
mod audit;
mod broadcasts;
mod campaigns;
mod characters;
pub mod diff;
mod editor;
mod encounters;
mod entity;
mod erase;
mod errors;
mod exchange;
pub mod form;
mod frame;
mod history;
mod home;
mod in_the_way;
mod invite;
mod keys;
mod lab;
mod links;
pub mod list;
mod lore;
mod markdown;
mod memories;
mod merge;
mod models;
mod npcs;
mod options;
mod owners;
mod page;
mod pages;
mod pending_form;
pub mod query;
mod reactions;
mod recalled;
mod render_blocks;
mod saving;
mod scenes;
mod second_factor;
mod settings;
mod sign_in;
mod story;
mod submitted;
mod table;
mod turn;
mod turns;
mod usage;
mod users;
pub mod words;
pub mod world_form;
pub mod world_row;

pub use editor::{Editor, InCampaign};
pub use frame::{Frame, Tab};
pub use page::Page;
pub use pages::{PAGES, configure, front_door};
pub use render_blocks::RenderBlocks;
pub use submitted::Holds;
