//! Accepting and discarding what a character card brought for an NPC.

use actix_web::HttpRequest;
use entity::npc;

use super::Npcs;
use crate::guidance::draft::Members;
use base::error::{Code, Error, Result};
use edge::{
    caller::Caller,
    http::{
        self, Answer, Body, NoBody, Written,
        etag::Expected,
        resource::{self, Ref, Resource, Shown},
    },
    state::Edge,
};

/// Changes the NPC by what `patch` makes of the row as it is.
pub(super) async fn decide(
    app: &Edge,
    caller: &Caller,
    request: &HttpRequest,
    (c, x): &(String, String),
    body: &Body<NoBody>,
    patch: fn(&Members) -> Option<Members>,
) -> Result<Written<Shown<npc::Model>>> {
    let expected = Expected::by(request);
    http::write(app, caller, body.idempotency.as_ref(), async |tx| {
        let npc = resource::hold::<Npcs>(tx, caller, Some(&Ref::parse(c)), &Ref::parse(x)).await?;
        expected.check(Npcs::stamp(&npc).version)?;
        let row = resource::plain_columns(&npc)?;
        let changes = patch(&row).ok_or_else(|| Error::new(Code::Conflict, "This NPC has no draft."))?;
        let npc = resource::change_held::<Npcs>(app, caller, tx, npc, changes.into()).await?;
        Ok(Answer::versioned(npc.version, resource::shown::<Npcs>(npc, caller)))
    })
    .await
}
