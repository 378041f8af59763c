//! The list of places is the database's.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection, PgConnection, Row};
use world::erasure::places::{TABLES, Treatment, walked};

use crate::support::Database;

/// Every column that may hold words stands in the list, and nothing else does: a new one cannot be forgotten.
#[tokio::test(flavor = "multi_thread")]
async fn every_column_that_may_hold_words_has_a_treatment() {
    let database = Database::create().await;
    let mut db = PgConnection::connect(&database.url).await.unwrap();
    let rows = sqlx::query(
        "SELECT c.relname::text AS of, a.attname::text AS name FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
         JOIN pg_type t ON t.oid = a.atttypid \
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped \
           AND (t.typname IN ('json', 'jsonb', 'bytea', 'tsvector', 'xml', 'hstore') OR t.typcategory IN ('S', 'A', 'U') \
                AND t.typname NOT IN ('uuid'))",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    let there: BTreeSet<(String, String)> = rows.iter().map(|row| (row.get("of"), row.get("name"))).collect();
    let named: Vec<(String, String)> = TABLES
        .iter()
        .flat_map(|table| table.columns.iter().map(|(column, _)| (table.name.to_owned(), (*column).to_owned())))
        .collect();
    let listed: BTreeSet<_> = named.iter().cloned().collect();
    assert_eq!(listed.len(), named.len(), "a column is named twice");
    let forgotten: Vec<_> = there.difference(&listed).collect();
    assert!(forgotten.is_empty(), "say in world/src/erasure/places.rs what an erasure does with {forgotten:?}");
    let gone: Vec<_> = listed.difference(&there).collect();
    assert!(gone.is_empty(), "these are no more: {gone:?}");
}

/// A reason is a reason, and a table that is not walked through has nothing to find there.
#[test]
fn what_is_left_alone_says_why() {
    for table in TABLES {
        for (column, treatment) in table.columns {
            match treatment {
                Treatment::Nothing(why) | Treatment::Goes(why) => assert!(why.len() > 5, "{}.{column}", table.name),
                _ => assert!(table.walk.is_some(), "{}.{column} is treated, but nobody walks there", table.name),
            }
        }
    }
}

/// The keys that a walk goes by are the tables' own.
#[tokio::test(flavor = "multi_thread")]
async fn walks_go_by_primary_keys() {
    let database = Database::create().await;
    let mut db = PgConnection::connect(&database.url).await.unwrap();
    let rows = sqlx::query(
        "SELECT c.relname::text AS of, array_agg(a.attname::text ORDER BY k.n) AS keys FROM pg_index x \
         JOIN pg_class c ON c.oid = x.indrelid AND c.relnamespace = 'public'::regnamespace \
         CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (attnum, n) \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum WHERE x.indisprimary GROUP BY 1",
    )
    .fetch_all(&mut db)
    .await
    .unwrap();
    let keys: BTreeMap<String, Vec<String>> = rows.iter().map(|row| (row.get("of"), row.get("keys"))).collect();
    for (table, walk) in walked() {
        let own: Vec<String> =
            std::iter::once("tenant_id").chain(walk.keys.iter().map(|(name, _)| *name)).map(str::to_owned).collect();
        assert_eq!(keys.get(table.name), Some(&own), "{}", table.name);
    }
}
