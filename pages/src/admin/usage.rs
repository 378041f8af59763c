//! The usage of models.

use actix_web::HttpResponse;
use askama::Template;
use serde_json::Value;
use uuid::Uuid;

use super::{Editor, Frame, Tab};
use crate::render_blocks;
use base::error::Result;
use edge::{
    http::paging,
    tenant_settings::usage::{GROUPS, UsageParams, UsageRow, names_of, summed},
};

#[derive(Template)]
#[template(path = "admin/usage.html", blocks = ["main"])]
struct UsagePage {
    frame: Frame,
    asked: UsageParams,
    group_by: String,
    rows: Vec<Row>,
    problem: Option<String>,
}
render_blocks!(UsagePage: as_main);

struct Row {
    of: String,
    sums: UsageRow,
    /// The percentage of the largest row, for the bar.
    percent: i64,
}

/// The usage, by day unless the query asks for another grouping.
pub async fn page(editor: Editor) -> Result<HttpResponse> {
    let mut given = paging::parameters(editor.request.query_string())?;
    given.retain(|_, value| !value.is_empty());
    let asked: UsageParams = paging::read_filter(given)?;
    let group_by = asked.group_by.clone().unwrap_or_else(|| "day".to_owned());
    let tx = editor.read().await?;
    let (found, problem) = match summed(&tx, &asked, None).await {
        Ok(found) => (found, None),
        Err(error) if error.code.status() == 400 => (Vec::new(), Some(error.detail.clone())),
        Err(error) => return Err(error),
    };
    let ids = found.iter().flat_map(|row| ["campaign_id", "player_id"].map(|name| row.get(name)));
    let ids: Vec<Uuid> = ids.filter_map(|id| id?.as_str()?.parse().ok()).collect();
    let names = names_of(&tx, &ids).await?;
    drop(tx);
    let most = found.iter().filter_map(|row| row["total_tokens"].as_i64()).max().unwrap_or(0).max(1);
    let rows = found.into_iter().filter_map(|row| {
        let of = GROUPS
            .iter()
            .filter_map(|group| Some(row.get(group.member)?.as_str().unwrap_or("–")))
            .map(|of| names.get(of).map_or_else(|| of.to_owned(), Clone::clone));
        let of = of.collect::<Vec<_>>().join(" ");
        let sums: UsageRow = serde_json::from_value(with_groups(row)).ok()?;
        Some(Row { of, percent: sums.total_tokens * 100 / most, sums })
    });
    let rows = rows.collect();
    editor.show(&UsagePage { frame: editor.frame("Usage", Tab::Usage), asked, group_by, rows, problem })
}

/// Adds null for groups that were not asked for; a row has only the others.
fn with_groups(mut row: Value) -> Value {
    if let Value::Object(members) = &mut row {
        for group in GROUPS {
            members.entry(group.member).or_insert(Value::Null);
        }
    }
    row
}
