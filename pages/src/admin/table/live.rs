//! Keeps a game master's page up to date.

use std::hash::{DefaultHasher, Hash, Hasher};

use actix_web::{HttpRequest, HttpResponse, web};

use super::{Around, View, answer::fields_at_table};
use crate::{
    admin::{InCampaign, editor::Proof},
    table::{
        live::{self, From, Onlooker},
        message::ChangedMessages,
    },
};
use ai::state::Ai;
use base::error::{Code, Error, Result};
use db::{feeds::Feed, tenancy::TenantTx};
use world::table::Changes;

/// Follows the table: `message`, `fights`, `paused`, `speakers`, `hearers`, `subjects`, `here`, `changed` without content, and `over` when the user can no longer see it.
pub async fn follow(
    at: std::result::Result<InCampaign, Error>,
    app: web::Data<Ai>,
    request: HttpRequest,
    from: web::Query<From>,
) -> Result<HttpResponse> {
    let after = from.into_inner().or_later(&request);
    let at = match at {
        Err(error) if (live::is_over(&error) || error.code == Code::Forbidden) && is_follower(&request) => {
            return Ok(live::over(Master::OVER));
        }
        at => at?,
    };
    let master = Master { view: View::of(&at), proof: at.proof()?, sent: [0; 5] };
    live::follow(app, master, after)
}

/// Whether a page follows, which cannot show an error and would come back.
fn is_follower(request: &HttpRequest) -> bool {
    let accepted = request.headers().get("accept").and_then(|media| media.to_str().ok());
    accepted.is_some_and(|media| media.contains("text/event-stream"))
}

/// A game master whose page is open.
struct Master {
    view: View,
    proof: Proof,
    /// Digests of the pieces with people, as last sent.
    sent: [u64; 5],
}

impl Onlooker for Master {
    type Seat = TenantTx;

    const OVER: &'static str = "You can no longer see this table. Reload the page.";

    fn place(&self) -> Feed {
        (self.view.caller.tenant_id(), self.view.campaign.0)
    }

    async fn take_seat(&self) -> Result<TenantTx> {
        self.proof.read().await
    }

    fn tx(seat: &TenantTx) -> &TenantTx {
        seat
    }

    async fn pieces(&mut self, tx: &TenantTx, changes: &Changes) -> Result<Vec<(&'static str, String)>> {
        let changed = ChangedMessages::of(changes);
        let said = self.view.messages(tx, changed.to_read()).await?;
        let footing = self.view.footing(tx, &said, "").await?;
        let mut pieces = changed.pieces(&said, |message| footing.of(message))?;
        if changes.any(&["encounter"]) {
            // The page sends the token of its forms as a header.
            pieces.push(("fights", self.view.fights(tx, fields_at_table("")).await?));
        }
        if changes.any(&["campaign", "character", "npc", "encounter"]) {
            let Around { paused, speakers, hearers, subjects, here } =
                Around::read(&self.view, tx, ("", ""), "").await?;
            pieces.push(("changed", String::new()));
            let around = [
                ("paused", paused),
                ("speakers", speakers),
                ("hearers", hearers),
                ("subjects", subjects),
                ("here", here),
            ];
            for ((name, now), sent) in around.into_iter().zip(&mut self.sent) {
                let mut digest = DefaultHasher::new();
                now.hash(&mut digest);
                if std::mem::replace(sent, digest.finish()) != digest.finish() {
                    pieces.push((name, now));
                }
            }
        }
        Ok(pieces)
    }

    async fn may_stay(&self, seat: TenantTx) -> Result<bool> {
        drop(seat);
        self.proof.holds().await
    }
}
