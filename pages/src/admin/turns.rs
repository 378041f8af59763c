//! The campaign's turns, newest first.

use actix_web::HttpResponse;

use super::{InCampaign, Tab, list::ListPage};
use ai::turns::list as turns;
use base::error::Result;
use edge::http::paging::Page;

const ORDERS: &[(&str, &str)] = &[("-created_at", "newest first")];
const COLUMNS: &[&str] = &["Kind", "State", "Who", "For", "Time, UTC"];

/// The list.
pub async fn list(at: InCampaign) -> Result<HttpResponse> {
    let page = Page::<turns::SummaryFilter>::parse(&super::query::as_asked(&at, "-created_at", &[]))?;
    let tx = at.read().await?;
    let found = turns::summaries(&tx, &at.caller, at.campaign.id.0, &page).await?;
    let mut shown = ListPage::new(&at, "Turns", Tab::Turns, "turns");
    shown.about = "What the AI was asked and what it did. These records are deleted after some time; the audit keeps their changes.";
    shown.example = "A turn is kept whenever a model is asked something, also by “Run the turn” in the prompt lab.";
    (shown.label, shown.columns, shown.orders) = ("Request", COLUMNS, ORDERS);
    shown.is_searched = at.caller.sees_secrets();
    if !at.caller.sees_secrets() {
        shown.label = "Turn";
    }
    for turn in found.items {
        let state = match (turn.is_reverting, turn.is_undone) {
            (true, _) => format!("{}, being reverted", turn.status),
            (_, true) => format!("{}, undone", turn.status),
            _ => turn.status,
        };
        let label = match turn.action.trim() {
            "" if at.caller.sees_secrets() => "(no text)".to_owned(),
            "" => format!("A turn of kind {}", turn.kind),
            _ => turn.action,
        };
        let cells = vec![
            turn.kind,
            state,
            turn.entity.unwrap_or_default(),
            turn.player.unwrap_or_default(),
            super::list::moment(turn.created_at),
        ];
        shown.add(&turn.id.to_string(), label, cells);
    }
    shown.pages(&at, found.next_cursor.as_deref());
    at.show(&shown)
}
