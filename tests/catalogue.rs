//! The schema as PostgreSQL knows it: no table, index or key escaped the tenant, and entities are what the columns are.

use base::clock;
use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use db::tenancy::{Actor, TenantTx};
use edge::tenant_settings::service as tenants;
use entity::{campaign, character, lore, memory, message, npc, owner, scene, session};
use sea_orm::{ColumnTrait, ColumnType, EntityTrait, Iden, Iterable};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, PgConnection, Row,
    postgres::{PgConnectOptions, PgRow},
};
use uuid::Uuid;

use crate::support::Database;

/// What does not start with `tenant_id`, and why that is right. Everything else must.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("operator_switch", "what an operator switches is no tenant's; the owner writes it, and auth_key alone reads it"),
    (
        "operator_switch_pkey",
        "what an operator switches is no tenant's; the owner writes it, and auth_key alone reads it",
    ),
    ("seaql_migrations", "the list of migrations is the database's, not a tenant's"),
    ("seaql_migrations_pkey", "the list of migrations is the database's, not a tenant's"),
    ("tenant_slug_key", "the operator names tenants by their slugs; only the schema's owner looks them up"),
    ("player_link_hash_key", "a link is looked up before its tenant is known, in player_link_of"),
    ("api_key_prefix_key", "a key is looked up before its tenant is known, in auth_key"),
    (
        "bridge_connection_of_server",
        "a server says which of its connections live, whatever their tenants, in bridge_seen",
    ),
    ("bridge_mail_for_server", "a server fetches the mail for all its tenants' frontends, in bridge_take"),
    ("app_user", "users are global; the server's role has no right on it"),
    ("app_user_pkey", "users are global"),
    ("app_user_folded_key", "a user is looked up before their tenant is known, in user_for_sign_in"),
    ("password_reset", "an account's; the server's role has no right on it"),
    ("password_reset_pkey", "users are global"),
    ("password_reset_hash_key", "a link is looked up before its tenant is known, in reset_of"),
    ("password_reset_user_id_fkey", "users are global"),
    ("recovery_code", "an account's; the server's role has no right on it"),
    ("recovery_code_pkey", "users are global"),
    ("recovery_code_user_id_fkey", "users are global"),
    ("half_sign_in", "an account's; the server's role has no right on it"),
    ("half_sign_in_pkey", "it is looked up before a tenant is known, in half_of"),
    ("half_sign_in_user", "users are global"),
    ("half_sign_in_user_id_fkey", "users are global"),
    ("invitation_hash_key", "a link is looked up before its tenant is known, in invitation_of"),
    ("editor_session", "a session is its user's, wherever they are; the server's role has no right on it"),
    ("editor_session_pkey", "a session is looked up before its tenant is known, in session_of"),
    ("editor_session_user", "a user's sessions, whatever their tenants, in session_begin"),
    ("editor_session_expires", "sessions that are over are swept for all tenants at once, in session_begin"),
    ("editor_session_user_id_fkey", "users are global"),
    ("membership_user_fkey", "users are global"),
    ("membership_user", "where a user belongs is asked before their tenant is known, in session_of"),
    ("erasure_moved", "a server looks for the erasures of all its tenants, in erasures_moved"),
    ("erasure_under_way", "a server looks for the erasures of all its tenants, in erasures_moved"),
    ("significance_due", "a server looks for due scores of all its tenants, in significance_due"),
    ("reaction_due", "a server looks for due reactions of all its tenants, in reactions_wait"),
    ("reaction_leases", "a server looks for reactions of dead servers, whatever their tenants, in claim_reactions"),
    ("reply_age", "retention deletes the oldest replies of all tenants, in prune_reactions"),
    ("reply_undo", "a server undoes the turns of dropped replies of all its tenants, in replies_expired"),
    ("reply_expiry", "a server drops expired replies of all its tenants, in replies_expired"),
    ("player_action_age", "BRIN; retention prunes all tenants' old actions, in prune_reactions"),
    ("reaction_age", "BRIN; retention prunes all tenants' old reactions, in prune_reactions"),
    ("lore_search", "GIN; search_lore filters by tenant explicitly"),
    ("lore_tags", "GIN; tagged_lore filters by tenant explicitly"),
    ("memory_search", "GIN; search_memory filters by tenant explicitly"),
];

fn is_exception(name: &str) -> bool {
    EXCEPTIONS.iter().any(|(exception, _)| *exception == name)
}

async fn rows(db: &mut PgConnection, sql: &'static str) -> Vec<PgRow> {
    sqlx::query(sql).fetch_all(db).await.unwrap()
}

async fn names(db: &mut PgConnection, sql: &'static str) -> BTreeSet<String> {
    rows(db, sql).await.iter().map(|row| row.get(0)).collect()
}

/// Every table of the schema but the exceptions.
async fn tenant_tables(db: &mut PgConnection) -> BTreeSet<String> {
    let all = names(
        db,
        "SELECT relname::text FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace",
    )
    .await;
    all.into_iter().filter(|table| !is_exception(table)).collect()
}

/// Tables of the world have clients' own keys; that is how they are told from bookkeeping.
async fn world_tables(db: &mut PgConnection) -> BTreeSet<String> {
    names(db, "SELECT table_name::text FROM information_schema.columns WHERE table_schema = 'public' AND column_name = 'extensions'").await
}

async fn migrated() -> (Database, PgConnection) {
    let database = Database::create().await;
    let db = PgConnection::connect(&database.url).await.unwrap();
    (database, db)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_is_bound_to_its_tenant() {
    let (_database, mut db) = migrated().await;
    let tables = tenant_tables(&mut db).await;
    assert!(tables.len() > 10, "{tables:?}");
    let forced =
        names(&mut db, "SELECT relname::text FROM pg_class WHERE relrowsecurity AND relforcerowsecurity").await;
    assert_eq!(tables.difference(&forced).collect::<Vec<_>>(), Vec::<&String>::new(), "row security is not forced");

    let policies = rows(
        &mut db,
        "SELECT tablename::text, roles::text[], cmd::text, permissive::text, qual, with_check FROM pg_policies",
    )
    .await;
    for policy in &policies {
        let (table, roles): (String, Vec<String>) = (policy.get("tablename"), policy.get("roles"));
        assert!(!roles.contains(&"public".to_owned()), "{table} has a policy for everyone");
        if roles.contains(&"tavernkeep_app".to_owned()) {
            for rule in ["qual", "with_check"] {
                let text: Option<String> = policy.get(rule);
                let text = text.unwrap_or_else(|| panic!("the policy of {table} has no {rule}"));
                let start = text.trim_start_matches('(');
                assert!(start.starts_with("tenant_id = ") && text.contains("app.tenant_id"), "{table}: {text}");
                assert!(!text.to_lowercase().contains(" or "), "{table}: {text}");
            }
        }
    }
    for table in &tables {
        let own: Vec<_> = policies
            .iter()
            .filter(|p| {
                p.get::<String, _>("tablename") == *table && p.get::<Vec<String>, _>("roles") == ["tavernkeep_app"]
            })
            .collect();
        assert_eq!(own.len(), 1, "{table} has {} policies for tavernkeep_app", own.len());
        assert_eq!((own[0].get("cmd"), own[0].get("permissive")), ("ALL", "PERMISSIVE"), "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_and_index_starts_with_the_tenant() {
    let (_database, mut db) = migrated().await;
    let indexes = rows(
        &mut db,
        "SELECT i.relname::text AS name, c.relname::text AS of, x.indisprimary AS is_primary, a.attname::text AS first \
         FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid \
         LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = x.indkey[0] \
         WHERE c.relnamespace = 'public'::regnamespace",
    )
    .await;
    let wrong: Vec<String> = indexes
        .iter()
        .filter(|row| row.get::<Option<String>, _>("first").as_deref() != Some("tenant_id"))
        .map(|row| row.get("name"))
        .filter(|name: &String| !is_exception(name))
        .collect();
    assert!(wrong.is_empty(), "these start with another column: {wrong:?}");
    let keyed: BTreeSet<String> = indexes.iter().filter(|r| r.get("is_primary")).map(|r| r.get("of")).collect();
    assert_eq!(
        tenant_tables(&mut db).await.difference(&keyed).collect::<Vec<_>>(),
        Vec::<&String>::new(),
        "no primary key"
    );

    let references = rows(
        &mut db,
        "SELECT k.conname::text AS name, a.attname::text AS here, b.attname::text AS there FROM pg_constraint k \
         JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1] \
         JOIN pg_attribute b ON b.attrelid = k.confrelid AND b.attnum = k.confkey[1] WHERE k.contype = 'f'",
    )
    .await;
    assert!(references.len() > 15);
    for row in references.iter().filter(|row| !is_exception(&row.get::<String, _>("name"))) {
        assert_eq!((row.get("here"), row.get("there")), ("tenant_id", "tenant_id"), "{}", row.get::<String, _>("name"));
    }
    let known =
        names(&mut db, "SELECT relname::text FROM pg_class UNION SELECT conname::text FROM pg_constraint").await;
    let stale: Vec<_> = EXCEPTIONS.iter().filter(|(name, _)| !known.contains(*name)).collect();
    assert!(stale.is_empty(), "exceptions for what is no more: {stale:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_world_table_is_versioned_and_journaled_and_no_other_is_journaled() {
    let (_database, mut db) = migrated().await;
    let world = world_tables(&mut db).await;
    for table in ["campaign", "character", "npc", "owner", "lore", "memory", "scene", "message", "session"] {
        assert!(world.contains(table), "{table} is no world table");
    }
    let columns = rows(
        &mut db,
        "SELECT table_name::text, column_name::text || ' ' || udt_name || ' ' || is_nullable AS shape \
         FROM information_schema.columns WHERE table_schema = 'public'",
    )
    .await;
    for table in &world {
        let has: BTreeSet<String> =
            columns.iter().filter(|r| r.get::<String, _>(0) == *table).map(|r| r.get("shape")).collect();
        for column in [
            "version int8 NO",
            "created_at timestamptz NO",
            "updated_at timestamptz NO",
            "extensions jsonb NO",
            "external_ref text YES",
        ] {
            assert!(has.contains(column), "{table} lacks {column}: {has:?}");
        }
    }
    // tgtype: 1 row, 2 before, 4 insert, 8 delete, 16 update.
    let triggers = "SELECT c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid \
         WHERE t.tgenabled = 'O' AND p.proname = ";
    let journaled =
        sqlx::query(AssertSqlSafe(format!("{triggers} 'journal_row' AND t.tgtype = 29 AND t.tgqual IS NULL")));
    let journaled: BTreeSet<String> = journaled.fetch_all(&mut db).await.unwrap().iter().map(|r| r.get(0)).collect();
    assert_eq!(journaled, world);
    let touched = sqlx::query(AssertSqlSafe(format!("{triggers} 'touch_row' AND t.tgtype = 19 AND t.tgqual IS NULL")));
    let touched: BTreeSet<String> = touched.fetch_all(&mut db).await.unwrap().iter().map(|r| r.get(0)).collect();
    assert_eq!(world.difference(&touched).collect::<Vec<_>>(), Vec::<&String>::new(), "versions do not rise");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_role_is_bound_and_owns_nothing() {
    let (database, mut db) = migrated().await;
    let role = &rows(&mut db, "SELECT rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication, rolcanlogin FROM pg_roles WHERE rolname = 'tavernkeep_app'").await[0];
    for attribute in ["rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "rolreplication", "rolcanlogin"] {
        assert!(!role.get::<bool, _>(attribute), "{attribute}");
    }
    let owned = names(
        &mut db,
        "SELECT relname::text FROM pg_class WHERE relowner = 'tavernkeep_app'::regrole \
         UNION ALL SELECT proname::text FROM pg_proc WHERE proowner = 'tavernkeep_app'::regrole \
         UNION ALL SELECT nspname::text FROM pg_namespace WHERE nspowner = 'tavernkeep_app'::regrole \
         UNION ALL SELECT datname::text FROM pg_database WHERE datdba = 'tavernkeep_app'::regrole",
    )
    .await;
    assert_eq!(owned, BTreeSet::new());
    let memberships = rows(&mut db, "SELECT 1 FROM pg_auth_members WHERE member = 'tavernkeep_app'::regrole").await;
    assert!(memberships.is_empty(), "the role can become another");
    let create: bool =
        rows(&mut db, "SELECT has_schema_privilege('tavernkeep_app', 'public', 'CREATE')").await[0].get(0);
    assert!(!create);
    let truncate = names(
        &mut db,
        "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace \
         AND has_table_privilege('tavernkeep_app', oid, 'TRUNCATE, REFERENCES, TRIGGER')",
    )
    .await;
    assert_eq!(truncate, BTreeSet::new());

    let pool = tavernkeep::database::connect(&database.url, 1).await.unwrap();
    let tenant = tenants::create(&mut db, "acme", "acme", &Default::default()).await.unwrap();
    for (table, write) in [
        (
            "journal",
            "INSERT INTO journal (tenant_id, campaign_id, table_name, row_id, op, origin) VALUES ($1, $1, 'npc', $1, 'insert', 'api')",
        ),
        ("journal", "UPDATE journal SET before = NULL WHERE tenant_id = $1"),
        ("journal", "DELETE FROM journal WHERE tenant_id = $1"),
        ("feed_head", "INSERT INTO feed_head (tenant_id, campaign_id, seq) VALUES ($1, $1, 7)"),
        ("feed_head", "UPDATE feed_head SET seq = 0 WHERE tenant_id = $1"),
        ("feed_head", "DELETE FROM feed_head WHERE tenant_id = $1"),
        ("version_head", "INSERT INTO version_head (tenant_id, campaign_id, key, version) VALUES ($1, $1, 'x', 7)"),
        ("version_head", "UPDATE version_head SET version = 0 WHERE tenant_id = $1"),
        ("version_head", "DELETE FROM version_head WHERE tenant_id = $1"),
        ("version_head", "SELECT bump_head($1, $1, 'x')"),
        ("seaql_migrations", "DELETE FROM seaql_migrations WHERE version = $1::text"),
    ] {
        let tx = TenantTx::write(&pool, &Actor::system(tenant)).await.unwrap();
        let error = sqlx::query(write).bind(tenant).execute(&mut *tx.connection().await).await.unwrap_err();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "42501", "{table}: {write}: {error}");
    }
}

/// Trigger functions of every write: they name the schema of each table instead, which costs nothing.
const HOT_TRIGGERS: &[&str] = &["journal_row", "journal_close", "bump_memory", "bump_talk"];

/// Definer functions see every tenant's rows, so what they name must not depend on the caller's search path.
#[tokio::test(flavor = "multi_thread")]
async fn definer_functions_fix_their_search_path_and_are_not_for_everyone() {
    let (_database, mut db) = migrated().await;
    let functions = rows(
        &mut db,
        "SELECT proname::text, coalesce(array_to_string(proconfig, ';'), '') AS config, prosecdef, \
                has_function_privilege('public', oid, 'EXECUTE') AS for_all, prosrc \
         FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
    )
    .await;
    assert!(functions.len() > 10);
    for row in functions {
        let name: String = row.get("proname");
        assert!(!row.get::<bool, _>("for_all"), "{name} may be called by everyone");
        let fixed = row.get::<String, _>("config").contains("search_path=pg_catalog");
        if HOT_TRIGGERS.contains(&name.as_str()) {
            let body: String = row.get("prosrc");
            for table in ["journal", "feed_head", "version_head", "message "] {
                let bare = [" INTO ", " FROM ", " UPDATE "].iter().any(|verb| body.contains(&format!("{verb}{table}")));
                assert!(!bare, "{name} names {table} without its schema");
            }
            continue;
        }
        assert!(fixed || !row.get::<bool, _>("prosecdef"), "{name} does not fix its search path");
    }
}

/// Columns a model leaves out on purpose: what only the database works with.
const NOT_IN_MODELS: &[(&str, &str)] = &[
    ("lore", "search"),
    ("memory", "search"),
    ("campaign", "removed_at"),
    ("npc", "location_key"),
    ("message", "event"),
    ("memory", "folded_text"),
    ("lore", "folded_title"),
    ("lore", "folded_content"),
    ("lore", "folded_tags"),
    ("lore", "folded_keys"),
    ("lore", "folded_secondary_keys"),
];

async fn compare<E: EntityTrait>(db: &mut PgConnection, entity: E) {
    let table = entity.table_name().to_owned();
    let columns = sqlx::query(
        "SELECT column_name::text, udt_name::text, is_nullable = 'YES' AS nullable, is_generated = 'ALWAYS' AS generated \
         FROM information_schema.columns WHERE table_schema = 'public' AND table_name = $1",
    )
    .bind(&table)
    .fetch_all(db)
    .await
    .unwrap();
    let mut stored: BTreeMap<String, PgRow> = columns.into_iter().map(|row| (row.get(0), row)).collect();
    for column in E::Column::iter() {
        let name = column.unquoted().to_owned();
        let row = stored.remove(&name).unwrap_or_else(|| panic!("{table} has no column {name}"));
        let def = column.def();
        let wanted = match def.get_column_type() {
            ColumnType::Uuid => "uuid",
            ColumnType::Text | ColumnType::String(_) => "text",
            ColumnType::Integer => "int4",
            ColumnType::BigInteger => "int8",
            ColumnType::Double => "float8",
            ColumnType::Boolean => "bool",
            ColumnType::Json | ColumnType::JsonBinary => "jsonb",
            ColumnType::TimestampWithTimeZone => "timestamptz",
            ColumnType::Array(of) if matches!(**of, ColumnType::Uuid) => "_uuid",
            other => panic!("{table}.{name}: add {other:?} to the test"),
        };
        assert_eq!(row.get::<String, _>("udt_name"), wanted, "{table}.{name}");
        let generated: bool = row.get("generated");
        assert_eq!(row.get::<bool, _>("nullable") && !generated, def.is_null(), "{table}.{name}: nullable");
    }
    stored.retain(|name, row| !row.get::<bool, _>("generated") || NOT_IN_MODELS.contains(&(table.as_str(), name)));
    stored.retain(|name, _| !NOT_IN_MODELS.contains(&(table.as_str(), name)));
    assert_eq!(stored.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "{table} has columns its model lacks");
}

#[tokio::test(flavor = "multi_thread")]
async fn entities_are_what_the_columns_are() {
    let (_database, mut db) = migrated().await;
    compare(&mut db, campaign::Entity).await;
    compare(&mut db, character::Entity).await;
    compare(&mut db, npc::Entity).await;
    compare(&mut db, owner::Entity).await;
    compare(&mut db, lore::Entity).await;
    compare(&mut db, memory::Entity).await;
    compare(&mut db, scene::Entity).await;
    compare(&mut db, message::Entity).await;
    compare(&mut db, session::Entity).await;
}

async fn campaign_of(db: &mut PgConnection, slug: &str) -> (Uuid, Uuid) {
    let tenant = tenants::create(&mut *db, slug, slug, &Default::default()).await.unwrap();
    let campaign = clock::id();
    insert_campaign(db, tenant, campaign).await.unwrap();
    (tenant, campaign)
}

async fn insert_campaign(db: impl sqlx::PgExecutor<'_>, tenant: Uuid, id: Uuid) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO campaign (tenant_id, id, slug, name, description, game_system, settings) \
         VALUES ($1, $2, $2::text, 'c', '', 'dnd5e', '{}')",
    )
    .bind(tenant)
    .bind(id)
    .execute(db)
    .await
    .map(drop)
}

/// A connection that was never told a tenant, and one that was told one before, both see nothing and may write nothing.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_tenant_nothing_is_seen() {
    let (database, mut db) = migrated().await;
    let (tenant, _) = campaign_of(&mut db, "acme").await;
    let tables = tenant_tables(&mut db).await;
    let pool = tavernkeep::database::connect(&database.url, 1).await.unwrap();
    for turn in ["fresh", "reused", "reused after a rollback"] {
        for table in &tables {
            let sql = AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
            let seen: i64 = sqlx::query(sql).fetch_one(&mut *pool.acquire().await.unwrap()).await.unwrap().get(0);
            assert_eq!(seen, 0, "a {turn} connection sees {seen} rows of {table}");
        }
        let mut conn = pool.acquire().await.unwrap();
        let refused = insert_campaign(&mut *conn, tenant, clock::id()).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501", "{turn}: {refused}");
        drop(conn);
        let tx = TenantTx::read(&pool, tenant).await.unwrap();
        let seen: i64 =
            sqlx::query("SELECT count(*) FROM campaign").fetch_one(&mut *tx.connection().await).await.unwrap().get(0);
        assert_eq!(seen, 1);
        if turn == "fresh" {
            tx.commit().await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_for_another_tenant_is_refused() {
    let (database, mut db) = migrated().await;
    let (acme, own) = campaign_of(&mut db, "acme").await;
    let (other, theirs) = campaign_of(&mut db, "other").await;
    let pool = tavernkeep::database::connect(&database.url, 1).await.unwrap();
    let code = |e: sqlx::Error| e.as_database_error().and_then(|e| e.code().map(|c| c.into_owned()));

    let tx = TenantTx::write(&pool, &Actor::system(acme)).await.unwrap();
    let insert = insert_campaign(&mut *tx.connection().await, other, clock::id()).await;
    assert_eq!(code(insert.unwrap_err()).unwrap(), "42501");
    drop(tx);
    let tx = TenantTx::write(&pool, &Actor::system(acme)).await.unwrap();
    let give = sqlx::query("UPDATE campaign SET tenant_id = $1 WHERE id = $2").bind(other).bind(own);
    assert_eq!(code(give.execute(&mut *tx.connection().await).await.unwrap_err()).unwrap(), "42501");
    drop(tx);
    let tx = TenantTx::write(&pool, &Actor::system(acme)).await.unwrap();
    for sql in ["UPDATE campaign SET name = 'mine' WHERE id = $1", "DELETE FROM campaign WHERE id = $1"] {
        let done = sqlx::query(sql).bind(theirs).execute(&mut *tx.connection().await).await.unwrap();
        assert_eq!(done.rows_affected(), 0, "{sql}");
    }
    // A transaction that only reads cannot write even its own.
    drop(tx);
    let tx = TenantTx::read(&pool, acme).await.unwrap();
    let write = sqlx::query("UPDATE campaign SET name = 'x' WHERE id = $1").bind(own);
    assert_eq!(code(write.execute(&mut *tx.connection().await).await.unwrap_err()).unwrap(), "25006");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pool_runs_as_the_bound_role_whoever_logs_in() {
    let (database, mut db) = migrated().await;
    let pool = tavernkeep::database::connect(&database.url, 2).await.unwrap();
    let row = sqlx::query("SELECT current_user::text AS who, row_security_active('campaign') AS bound")
        .fetch_one(&mut *pool.acquire().await.unwrap())
        .await
        .unwrap();
    assert_eq!((row.get("who"), row.get("bound")), ("tavernkeep_app", true));

    // A login that may not become that role is no login for the server; one that may needs nothing else.
    let guest = format!("tkt_{}_{}_guest", std::process::id(), database.number);
    db.execute(AssertSqlSafe(format!("CREATE ROLE {guest} LOGIN PASSWORD 'guest'"))).await.unwrap();
    let options = PgConnectOptions::from_str(&database.url).unwrap().username(&guest).password("guest");
    let url = options.to_url_lossy().to_string();
    let stranger = tavernkeep::database::connect(&url, 1).await;
    tavernkeep::database::migrate(&database.url, &url).await.unwrap();
    let member = tavernkeep::database::connect(&url, 1).await;
    let bound = match &member {
        Ok(pool) => {
            let mut conn = pool.acquire().await.unwrap();
            sqlx::query("SELECT current_user::text").fetch_one(&mut *conn).await.map(|row| row.get::<String, _>(0)).ok()
        }
        Err(_) => None,
    };
    if let Ok(pool) = member {
        pool.close();
    }
    db.execute(AssertSqlSafe(format!("REVOKE tavernkeep_app FROM {guest}; DROP ROLE {guest}"))).await.unwrap();
    assert!(stranger.is_err());
    assert_eq!(bound.as_deref(), Some("tavernkeep_app"));
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_together_migrate_once() {
    let (database, mut db) = migrated().await;
    db.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public").await.unwrap();
    let migrate = || tavernkeep::database::migrate(&database.url, &database.url);
    let (first, second, third) = futures_util::join!(migrate(), migrate(), migrate());
    first.and(second).and(third).unwrap();
    migrate().await.unwrap();
    let (_template, mut once) = migrated().await;
    let shape = "SELECT table_name::text || '.' || column_name || ' ' || udt_name FROM information_schema.columns \
                 WHERE table_schema = 'public'";
    assert_eq!(names(&mut db, shape).await, names(&mut once, shape).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_database_is_refused_and_left_as_it_is() {
    let (database, mut db) = migrated().await;
    db.execute(
        "DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE campaign (id uuid); \
         CREATE TABLE seaql_migrations (version text PRIMARY KEY, applied_at bigint NOT NULL); \
         INSERT INTO seaql_migrations VALUES ('m0001_world', 0), ('m0002_dice', 0)",
    )
    .await
    .unwrap();
    let refused = tavernkeep::database::migrate(&database.url, &database.url).await.unwrap_err();
    let reason = refused.cause().unwrap().to_string();
    for needed in ["earlier version", "/v1/campaigns/{c}/export", "empty database", "/v1/campaigns/import"] {
        assert!(reason.contains(needed), "{reason}");
    }
    let tables = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(names(&mut db, tables).await, ["campaign", "seaql_migrations"].map(String::from).into());
}
