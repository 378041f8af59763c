//! Errors of the database are told apart by their codes and names: PostgreSQL says them in whatever language it was told to.

use serde_json::json;
use sqlx::Executor;

use crate::support::Server;

/// PostgreSQL's own words, as a server says them that speaks German, under the same code and name.
const GERMAN: &[&str] = &[
    "CREATE FUNCTION fehlt() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'Einfügen oder Aktualisieren in Tabelle »%« verletzt Fremdschlüssel-Constraint »npc_owner_owner_id_fkey«', TG_TABLE_NAME
        USING ERRCODE = '23503', CONSTRAINT = 'npc_owner_owner_id_fkey'; END $$",
    "CREATE FUNCTION verwiesen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'Aktualisieren oder Löschen in Tabelle »owner« verletzt Fremdschlüssel-Constraint »npc_owner_owner_id_fkey« von Tabelle »npc_owner«'
        USING ERRCODE = '23503', CONSTRAINT = 'npc_owner_owner_id_fkey'; END $$",
    "CREATE FUNCTION vergeben() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'doppelter Schlüsselwert verletzt Unique-Constraint »scene_slug_key«'
        USING ERRCODE = '23505', CONSTRAINT = 'scene_slug_key'; END $$",
    "CREATE TRIGGER a_fehlt BEFORE INSERT ON npc FOR EACH ROW WHEN (NEW.name = 'Niemand') EXECUTE FUNCTION fehlt()",
    "CREATE TRIGGER a_verwiesen BEFORE DELETE ON owner FOR EACH ROW EXECUTE FUNCTION verwiesen()",
    "CREATE TRIGGER a_vergeben BEFORE INSERT ON scene FOR EACH ROW WHEN (NEW.name = 'Keller') EXECUTE FUNCTION vergeben()",
];

#[tokio::test(flavor = "multi_thread")]
async fn in_another_language_they_say_the_same() {
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    // First as this server says them itself.
    world.delete("/owners/town_council_owner").await.problem(409, "referenced");
    for statement in GERMAN {
        server.owner().await.execute(*statement).await.unwrap();
    }
    let missing = world.post("/npcs", json!({ "name": "Niemand" })).await.problem(422, "validation_failed");
    assert_eq!(missing.pointers(), ["/owner_id"]);
    assert_eq!(missing.body["errors"][0]["code"], "unknown_reference");
    world.delete("/owners/town_council_owner").await.problem(409, "referenced");
    world.post("/scenes", json!({ "name": "Keller", "slug": "keller" })).await.problem(409, "slug_taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_had_to_be_there_is_our_fault() {
    use base::error::{Code, Error};
    let missing = [Error::from(sqlx::Error::RowNotFound), Error::from(sea_orm::DbErr::RecordNotUpdated)];
    for error in missing {
        assert_eq!(error.code, Code::Internal, "{error}");
        assert!(error.cause().is_some(), "the log says what it was");
    }
    // What a client may name and nobody has is still told so.
    let server = Server::start().await;
    let tenant = server.tenant("acme").await;
    let world = tenant.world().await;
    for path in ["/npcs/nobody", "/lore/nothing", "/turns/0193b1a0-0000-7000-8000-000000000000"] {
        world.get(path).await.problem(404, "not_found");
    }
}
