//! The schema as PostgreSQL sees it. A change of the schema changes the snapshot, so it is read before it is merged.

use sqlx::{Connection, PgConnection, Row};

use crate::support::Database;

/// Everything but the bodies of functions, which the other tests run. One line for each thing.
const EVERYTHING: &str = r"
    SELECT format('table %s: row security %s, forced %s, the server may %s', c.relname, c.relrowsecurity, c.relforcerowsecurity,
        ARRAY(SELECT p FROM unnest('{SELECT,INSERT,UPDATE,DELETE,TRUNCATE,REFERENCES,TRIGGER}'::text[]) AS p
              WHERE has_table_privilege('tavernkeep_app', c.oid, p))) || coalesce(', ' || array_to_string(c.reloptions, ' '), '')
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
    UNION ALL
    SELECT format('column %s.%s: %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
        || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
        || CASE WHEN a.attcollation <> t.typcollation THEN ' collate ' || a.attcollation::regcollation::text ELSE '' END
        || CASE WHEN a.attstorage <> t.typstorage THEN ' storage ' || a.attstorage::text ELSE '' END
        || coalesce(CASE a.attgenerated WHEN 's' THEN ' generated ' ELSE ' default ' END
            || regexp_replace(pg_get_expr(d.adbin, d.adrelid), '\s+', ' ', 'g'), '')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('constraint %s.%s: %s', n.conrelid::regclass, n.conname, pg_get_constraintdef(n.oid))
    FROM pg_constraint n WHERE n.connamespace = 'public'::regnamespace AND n.contype IN ('p', 'f', 'u', 'c')
    UNION ALL
    SELECT 'index ' || pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = 'public'::regnamespace
    UNION ALL
    SELECT 'trigger ' || pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT t.tgisinternal
    UNION ALL
    SELECT format('policy %s.%s for %s to %s: using %s check %s', p.tablename, p.policyname, p.cmd,
        replace(array_to_string(p.roles, ','), current_user, 'the owner'), p.qual, p.with_check) FROM pg_policies p
    UNION ALL
    SELECT format('function %s(%s): %s', p.proname, pg_get_function_arguments(p.oid), coalesce(pg_get_function_result(p.oid), 'nothing'))
        || format(', %s %s', l.lanname, p.provolatile) || CASE WHEN p.prosecdef THEN ', as the owner' ELSE '' END
        || coalesce(', ' || array_to_string(p.proconfig, '; '), '')
        || CASE WHEN has_function_privilege('tavernkeep_app', p.oid, 'EXECUTE') THEN ', for the server' ELSE '' END
        || CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN ', for everyone' ELSE '' END
    FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang WHERE p.pronamespace = 'public'::regnamespace";

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_what_was_last_agreed_on() {
    let database = Database::create().await;
    let mut db = PgConnection::connect(&database.url).await.unwrap();
    let rows = sqlx::query(EVERYTHING).fetch_all(&mut db).await.unwrap();
    let mut lines: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"));
}
