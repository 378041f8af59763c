//! The table of contents of the editor: every page, and its handler.

use actix_web::{HttpResponse, middleware::from_fn, web};

use super::{
    account,
    answer::see,
    audit, broadcasts, campaigns, encounters, entity, erase,
    errors::errors_as_pages,
    exchange, history, home, invite, keys, lab, links, lore, memories, models,
    page::{Page, Pages, get, open, post},
    reactions, second_factor, settings, sign_in, story, table, turn, turns, usage, users, world_form,
};
use edge::{
    caller::Scope::{Admin, Gm, Play, Read, Write},
    http::router::Router,
    patterns::Row,
};
use world::{characters::Characters, lore::LoreEntries, npcs::Npcs, owners::Owners, scenes::Scenes};

/// Every page and every form of the editor.
#[rustfmt::skip]
pub const PAGES: &[Page] = &[
    // Signing in and out.
    open("GET",  "", || web::get().to(campaigns::index)),
    open("GET",  "/", || web::get().to(campaigns::index)),
    open("GET",  "/sign-in", || web::get().to(sign_in::page)),
    open("POST", "/sign-in", || web::post().to(sign_in::enter)),
    open("POST", "/sign-in/code", || web::post().to(sign_in::enter_code)),
    open("POST", "/sign-out", || web::post().to(sign_in::leave)),
    open("GET",  "/invitation/{x}", || web::get().to(links::invitation)),
    open("POST", "/invitation/{x}", || web::post().to(links::accept)),
    open("GET",  "/reset/{x}", || web::get().to(links::reset)),
    open("POST", "/reset/{x}", || web::post().to(links::set_password)),

    // The user's own account.
    open("GET",  "/account", || web::get().to(account::page)),
    open("POST", "/account/password", || web::post().to(account::set_password)),
    open("POST", "/account/sessions/end", || web::post().to(account::end_session)),
    open("POST", "/account/second-factor", || web::post().to(second_factor::begin)),
    open("POST", "/account/second-factor/confirm", || web::post().to(second_factor::confirm)),
    open("POST", "/account/second-factor/remove", || web::post().to(second_factor::remove)),
    open("GET",  "/tenants", || web::get().to(account::tenants)),
    open("POST", "/tenants", || web::post().to(account::choose)),

    // The tenant.
    get ("/keys", Admin, || web::get().to(keys::list)),
    post("/keys", Admin, || web::post().to(keys::create)),
    get ("/keys/{x}/revoke", Admin, || web::get().to(keys::ask)),
    post("/keys/{x}/revoke", Admin, || web::post().to(keys::revoke)),
    get ("/users", Admin, || web::get().to(users::list)),
    post("/users", Admin, || web::post().to(users::create)),
    get ("/users/{x}", Admin, || web::get().to(users::page)),
    post("/users/{x}", Admin, || web::post().to(users::save)),
    post("/users/{x}/link", Admin, || web::post().to(users::link)),
    get ("/users/{x}/remove", Admin, || web::get().to(users::ask)),
    post("/users/{x}/remove", Admin, || web::post().to(users::remove)),
    get ("/users/{x}/erase", Admin, || web::get().to(erase::ask_user)).and(Gm),
    post("/users/{x}/erase", Admin, || web::post().to(erase::erase_user)).and(Gm),
    get ("/models", Admin, || web::get().to(models::list)),
    get ("/models/new", Admin, || web::get().to(models::new)),
    post("/models/new", Admin, || web::post().to(models::create)),
    get ("/models/{x}", Admin, || web::get().to(models::page)),
    post("/models/{x}", Admin, || web::post().to(models::save)),
    post("/models/{x}/test", Admin, || web::post().to(models::test)).and(Gm),
    get ("/models/{x}/delete", Admin, || web::get().to(models::ask)),
    post("/models/{x}/delete", Admin, || web::post().to(models::delete)),
    get ("/usage", Admin, || web::get().to(usage::page)),
    get ("/settings", Admin, || web::get().to(settings::page)),
    post("/settings", Admin, || web::post().to(settings::save)),

    // Campaigns.
    get ("/campaigns", Read, || web::get().to(campaigns::list)),
    post("/campaigns", Write, || web::post().to(campaigns::create)),
    get ("/campaigns/new", Write, || web::get().to(campaigns::new)),
    post("/campaigns/sample", Write, || web::post().to(campaigns::sample)),
    get ("/c/{c}", Read, || web::get().to(home::page)),
    get ("/c/{c}/edit", Write, || web::get().to(campaigns::edit)),
    post("/c/{c}/edit", Write, || web::post().to(campaigns::save)),
    post("/c/{c}/instructions", Write, || web::post().to(campaigns::decide)),
    get ("/c/{c}/delete", Write, || web::get().to(campaigns::ask)),
    post("/c/{c}/delete", Write, || web::post().to(campaigns::delete)),
    get ("/c/{c}/invite", Play, || web::get().to(invite::page)).and(Read),
    post("/c/{c}/invite", Play, || web::post().to(invite::make)).and(Read),
    get ("/c/{c}/invite/{x}/qr.svg", Play, || web::get().to(invite::qr)).and(Read),
    get ("/c/{c}/invite/{x}/revoke", Play, || web::get().to(invite::ask)).and(Read),
    post("/c/{c}/invite/{x}/revoke", Play, || web::post().to(invite::revoke)).and(Read),
    get ("/c/{c}/table", Gm, || web::get().to(table::page)).and(Play),
    get ("/c/{c}/table/live", Gm, || web::get().to(table::follow)).and(Play),
    get ("/c/{c}/table/lines", Gm, || web::get().to(table::older)).and(Play),
    post("/c/{c}/table/say", Gm, || web::post().to(table::say)).and(Play),
    post("/c/{c}/table/roll", Gm, || web::post().to(table::roll)).and(Play),
    post("/c/{c}/table/answer", Gm, || web::post().to(table::answer_now)).and(Play),
    get ("/c/{c}/table/turns/{x}", Gm, || web::get().to(table::turn)).and(Play),
    post("/c/{c}/table/turns/{x}/again", Gm, || web::post().to(table::again)).and(Play),
    post("/c/{c}/table/turns/{x}/choose", Gm, || web::post().to(table::choose)).and(Play),
    post("/c/{c}/table/turns/{x}/continue", Gm, || web::post().to(table::go_on)).and(Play),
    post("/c/{c}/table/turns/{x}/stop", Gm, || web::post().to(table::stop)).and(Play),
    post("/c/{c}/table/ask", Gm, || web::post().to(table::ask)).and(Play),
    post("/c/{c}/table/pause", Gm, || web::post().to(table::pause)).and(Write),
    get ("/c/{c}/table/change", Gm, || web::get().to(table::form)).and(Play),
    post("/c/{c}/table/change", Gm, || web::post().to(table::change)).and(Play),
    get ("/c/{c}/table/messages/{x}", Gm, || web::get().to(table::line)).and(Play),
    post("/c/{c}/table/messages/{x}/correct", Gm, || web::post().to(table::correct)).and(Write),
    post("/c/{c}/table/messages/{x}/strike", Gm, || web::post().to(table::strike)).and(Write),
    get ("/c/{c}/story", Read, || web::get().to(story::page)),
    get ("/c/{c}/story.html", Read, || web::get().to(story::html)),
    get ("/c/{c}/story.md", Read, || web::get().to(story::markdown)),
    get ("/c/{c}/audit", Admin, || web::get().to(audit::page)),

    // Lore.
    get ("/c/{c}/lore", Read, || web::get().to(lore::list::page)),
    post("/c/{c}/lore", Write, || web::post().to(lore::edit::create)),
    get ("/c/{c}/lore/new", Write, || web::get().to(lore::edit::new)),
    post("/c/{c}/lore/preview", Write, || web::post().to(lore::edit::preview)),
    get ("/c/{c}/lore/tags", Read, || web::get().to(lore::list::tags)),
    get ("/c/{c}/lore/names", Read, || web::get().to(lore::list::names)),
    get ("/c/{c}/lore/tidy", Read, || web::get().to(lore::list::tidy)),
    get ("/c/{c}/lore/bulk", Write, || web::get().to(lore::bulk::page)),
    post("/c/{c}/lore/bulk", Write, || web::post().to(lore::bulk::run)),
    get ("/c/{c}/lore/bulk/{x}", Write, || web::get().to(lore::bulk::step)),
    post("/c/{c}/lore/bulk/{x}/undo", Write, || web::post().to(lore::bulk::undo)),
    get ("/c/{c}/lore/{x}", Read, || web::get().to(lore::edit::page)),
    post("/c/{c}/lore/{x}", Write, || web::post().to(lore::edit::save)),
    get ("/c/{c}/lore/{x}/history", Gm, || web::get().to(history::page::<LoreEntries>)),
    post("/c/{c}/lore/{x}/history/{seq}", Write, || web::post().to(history::restore::<LoreEntries>)).and(Gm),
    post("/c/{c}/lore/{x}/duplicate", Write, || web::post().to(lore::edit::duplicate)),
    post("/c/{c}/lore/{x}/mend", Write, || web::post().to(lore::edit::mend)),
    get ("/c/{c}/lore/{x}/delete", Write, || web::get().to(world_form::ask::<LoreEntries>)),
    post("/c/{c}/lore/{x}/delete", Write, || web::post().to(world_form::delete::<LoreEntries>)),

    // Memories.
    get ("/c/{c}/memories", Read, || web::get().to(memories::list)),
    post("/c/{c}/memories", Write, || web::post().to(memories::create)),
    get ("/c/{c}/memories/new", Write, || web::get().to(memories::new)),
    get ("/c/{c}/memories/actors", Read, || web::get().to(memories::actors)),
    get ("/c/{c}/memories/broadcasts", Read, || web::get().to(broadcasts::list)),
    get ("/c/{c}/memories/broadcasts/{x}/retract", Write, || web::get().to(broadcasts::ask)),
    post("/c/{c}/memories/broadcasts/{x}/retract", Write, || web::post().to(broadcasts::retract)),
    get ("/c/{c}/memories/deleted", Gm, || web::get().to(memories::deleted)),
    get ("/c/{c}/memories/{x}/history", Gm, || web::get().to(memories::history)),
    post("/c/{c}/memories/{x}/history/{seq}", Write, || web::post().to(memories::restore)).and(Gm),
    get ("/c/{c}/memories/{x}", Read, || web::get().to(memories::page)),
    post("/c/{c}/memories/{x}", Write, || web::post().to(memories::save)),
    post("/c/{c}/memories/{x}/move", Write, || web::post().to(memories::relocate)),
    get ("/c/{c}/memories/{x}/delete", Write, || web::get().to(memories::ask)),
    post("/c/{c}/memories/{x}/delete", Write, || web::post().to(memories::delete)),

    // NPCs.
    get ("/c/{c}/npcs", Read, || web::get().to(world_form::list::<Npcs>)),
    post("/c/{c}/npcs", Write, || web::post().to(world_form::create::<Npcs>)),
    get ("/c/{c}/npcs/new", Write, || web::get().to(world_form::new::<Npcs>)),
    get ("/c/{c}/npcs/deleted", Gm, || web::get().to(history::deleted::<Npcs>)),
    get ("/c/{c}/npcs/{x}", Read, || web::get().to(entity::page::<Npcs>)),
    get ("/c/{c}/npcs/{x}/edit", Write, || web::get().to(world_form::edit::<Npcs>)),
    post("/c/{c}/npcs/{x}", Write, || web::post().to(world_form::save::<Npcs>)),
    get ("/c/{c}/npcs/{x}/delete", Write, || web::get().to(world_form::ask::<Npcs>)),
    post("/c/{c}/npcs/{x}/delete", Write, || web::post().to(world_form::delete::<Npcs>)),
    post("/c/{c}/npcs/{x}/instructions", Write, || web::post().to(world_form::decide::<Npcs>)),
    get ("/c/{c}/npcs/{x}/reactions", Gm, || web::get().to(reactions::of::page::<Npcs>)),
    get ("/c/{c}/npcs/{x}/history", Gm, || web::get().to(history::page::<Npcs>)),
    post("/c/{c}/npcs/{x}/history/{seq}", Write, || web::post().to(history::restore::<Npcs>)).and(Gm),

    // Owners.
    get ("/c/{c}/owners", Read, || web::get().to(world_form::list::<Owners>)),
    post("/c/{c}/owners", Write, || web::post().to(world_form::create::<Owners>)),
    get ("/c/{c}/owners/new", Write, || web::get().to(world_form::new::<Owners>)),
    get ("/c/{c}/owners/deleted", Gm, || web::get().to(history::deleted::<Owners>)),
    get ("/c/{c}/owners/{x}", Read, || web::get().to(entity::page::<Owners>)),
    get ("/c/{c}/owners/{x}/edit", Write, || web::get().to(world_form::edit::<Owners>)),
    post("/c/{c}/owners/{x}", Write, || web::post().to(world_form::save::<Owners>)),
    get ("/c/{c}/owners/{x}/delete", Write, || web::get().to(world_form::ask::<Owners>)),
    post("/c/{c}/owners/{x}/delete", Write, || web::post().to(world_form::delete::<Owners>)),
    post("/c/{c}/owners/{x}/instructions", Write, || web::post().to(world_form::decide::<Owners>)),
    get ("/c/{c}/owners/{x}/reactions", Gm, || web::get().to(reactions::of::page::<Owners>)),
    get ("/c/{c}/owners/{x}/history", Gm, || web::get().to(history::page::<Owners>)),
    post("/c/{c}/owners/{x}/history/{seq}", Write, || web::post().to(history::restore::<Owners>)).and(Gm),

    // Characters.
    get ("/c/{c}/characters", Read, || web::get().to(world_form::list::<Characters>)),
    post("/c/{c}/characters", Write, || web::post().to(world_form::create::<Characters>)),
    get ("/c/{c}/characters/new", Write, || web::get().to(world_form::new::<Characters>)),
    get ("/c/{c}/characters/deleted", Gm, || web::get().to(history::deleted::<Characters>)),
    get ("/c/{c}/characters/{x}", Read, || web::get().to(entity::page::<Characters>)),
    get ("/c/{c}/characters/{x}/edit", Write, || web::get().to(world_form::edit::<Characters>)),
    post("/c/{c}/characters/{x}", Write, || web::post().to(world_form::save::<Characters>)),
    get ("/c/{c}/characters/{x}/delete", Write, || web::get().to(world_form::ask::<Characters>)),
    post("/c/{c}/characters/{x}/delete", Write, || web::post().to(world_form::delete::<Characters>)),
    get ("/c/{c}/characters/{x}/erase", Admin, || web::get().to(erase::ask_character)).and(Gm),
    post("/c/{c}/characters/{x}/erase", Admin, || web::post().to(erase::erase_character)).and(Gm),
    get ("/c/{c}/characters/{x}/history", Gm, || web::get().to(history::page::<Characters>)),
    post("/c/{c}/characters/{x}/history/{seq}", Write, || web::post().to(history::restore::<Characters>)).and(Gm),

    // Scenes.
    get ("/c/{c}/scenes", Read, || web::get().to(world_form::list::<Scenes>)),
    post("/c/{c}/scenes", Write, || web::post().to(world_form::create::<Scenes>)),
    get ("/c/{c}/scenes/new", Write, || web::get().to(world_form::new::<Scenes>)),
    get ("/c/{c}/scenes/deleted", Gm, || web::get().to(history::deleted::<Scenes>)),
    get ("/c/{c}/scenes/{x}", Read, || web::get().to(entity::page::<Scenes>)),
    get ("/c/{c}/scenes/{x}/edit", Write, || web::get().to(world_form::edit::<Scenes>)),
    post("/c/{c}/scenes/{x}", Write, || web::post().to(world_form::save::<Scenes>)),
    get ("/c/{c}/scenes/{x}/delete", Write, || web::get().to(world_form::ask::<Scenes>)),
    post("/c/{c}/scenes/{x}/delete", Write, || web::post().to(world_form::delete::<Scenes>)),
    get ("/c/{c}/scenes/{x}/history", Gm, || web::get().to(history::page::<Scenes>)),
    post("/c/{c}/scenes/{x}/history/{seq}", Write, || web::post().to(history::restore::<Scenes>)).and(Gm),

    // Locations.
    get ("/c/{c}/locations/{x}", Read, || web::get().to(entity::location::page)),

    // Encounters and turns.
    get ("/c/{c}/encounters", Read, || web::get().to(encounters::list)),
    get ("/c/{c}/encounters/new", Play, || web::get().to(encounters::new)).and(Gm),
    post("/c/{c}/encounters/new", Play, || web::post().to(encounters::begin)).and(Gm),
    get ("/c/{c}/encounters/{x}", Read, || web::get().to(encounters::page)),
    post("/c/{c}/encounters/{x}/act", Play, || web::post().to(encounters::act)),
    post("/c/{c}/encounters/{x}/join", Play, || web::post().to(encounters::join)).and(Gm),
    post("/c/{c}/encounters/{x}/remove", Play, || web::post().to(encounters::remove)).and(Gm),
    post("/c/{c}/encounters/{x}/undo", Gm, || web::post().to(encounters::undo)).and(Play),
    post("/c/{c}/encounters/{x}/end", Play, || web::post().to(encounters::end)).and(Gm),
    post("/c/{c}/encounters/{x}/commit", Play, || web::post().to(encounters::commit)).and(Gm),
    get ("/c/{c}/turns", Read, || web::get().to(turns::list)),

    // Reactions, and the rehearsal of actions.
    get ("/c/{c}/reactions", Gm, || web::get().to(reactions::list)),
    post("/c/{c}/reactions/{x}/end", Gm, || web::post().to(reactions::end)),
    post("/c/{c}/reactions/{x}/retry", Gm, || web::post().to(reactions::retry)),
    get ("/c/{c}/scores", Gm, || web::get().to(reactions::scores::page)),
    get ("/c/{c}/rehearsal", Gm, || web::get().to(reactions::rehearsal::page)),
    post("/c/{c}/rehearsal", Gm, || web::post().to(reactions::rehearsal::play)),

    // Import and export.
    get ("/c/{c}/exchange", Read, || web::get().to(exchange::page)),
    post("/c/{c}/exchange/look", Write, || web::post().to(exchange::look)).with_a_file(),
    post("/c/{c}/exchange/confirm", Write, || web::post().to(exchange::confirm)),
    get ("/c/{c}/exchange/campaign.json", Read, || web::get().to(exchange::campaign)).and(Gm),
    get ("/c/{c}/exchange/lorebook.json", Read, || web::get().to(exchange::lorebook)),
    get ("/c/{c}/exchange/card", Read, || web::get().to(exchange::card)),

    // The prompt lab.
    get ("/c/{c}/lab", Gm, || web::get().to(lab::page)),
    get ("/c/{c}/lab/request.json", Gm, || web::get().to(lab::request)),
    post("/c/{c}/lab", Gm, || web::post().to(lab::compare)),
    post("/c/{c}/lab/ask", Gm, || web::post().to(lab::ask)),
    post("/c/{c}/lab/turn", Gm, || web::post().to(lab::take)).and(Play),

    // A turn.
    get ("/c/{c}/turns/{x}", Read, || web::get().to(turn::page)),
    post("/c/{c}/turns/{x}/again", Gm, || web::post().to(turn::try_again)).and(Play),
    post("/c/{c}/turns/{x}/continue", Gm, || web::post().to(turn::go_on)).and(Play),
    post("/c/{c}/turns/{x}/choose", Gm, || web::post().to(turn::choose)).and(Play),
    post("/c/{c}/turns/{x}/correct", Gm, || web::post().to(turn::correct)),
    post("/c/{c}/turns/{x}/undo", Gm, || web::post().to(turn::undo)),
    post("/c/{c}/turns/{x}/fork", Write, || web::post().to(turn::fork)).and(Gm),
];

/// Registers the pages.
pub fn configure(config: &mut web::ServiceConfig) {
    let pages = PAGES.iter().map(|page| {
        let pattern = format!("/admin{}", page.path).into();
        Row { method: page.method, pattern, value: (page.route)() }
    });
    let scope = web::scope("/admin").app_data(Pages(PAGES)).default_service(Router::new(pages));
    config.service(scope.wrap(from_fn(errors_as_pages)));
}

/// Redirects visitors of `/` to the editor.
pub async fn front_door() -> HttpResponse {
    see("/admin")
}
