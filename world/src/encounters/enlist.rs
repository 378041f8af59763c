//! Looks up the records of those who take part.

use entity::{character, npc};
use rules::encounter::{NewParticipant, limits};
use sea_orm::{EntityTrait, QueryFilter, sea_query::ExprTrait};
use uuid::Uuid;

use super::{input::ParticipantInput, store::Member};
use crate::rules::sheet;
use base::error::{Error, FieldError, Result};
use db::tenancy::TenantTx;
use edge::http::resource::col;

/// Turns the input into participants for the rules, with their records if they have any. At most two statements.
pub(super) async fn enlist(
    tx: &TenantTx,
    campaign: Uuid,
    inputs: &[ParticipantInput],
    at: impl Fn(usize) -> String,
    warnings: &mut Vec<String>,
) -> Result<(Vec<NewParticipant>, Vec<Member>)> {
    for (index, input) in inputs.iter().enumerate() {
        for (field, name) in [("character_id", &input.character_id), ("npc_id", &input.npc_id)] {
            if name.as_ref().is_some_and(|name| name.chars().count() > limits::ID_CHARS_MAX) {
                let message = format!("must have at most {} characters", limits::ID_CHARS_MAX);
                return Err(invalid(format!("{}/{field}", at(index)), message));
            }
        }
    }
    let names =
        |of: fn(&ParticipantInput) -> Option<&String>| inputs.iter().filter_map(of).cloned().collect::<Vec<_>>();
    let place = |names: &[String]| {
        let ids: Vec<Uuid> = names.iter().filter_map(|n| Uuid::try_parse(n).ok()).collect();
        let named = col("id").is_in(ids).or(col("slug").is_in(names.to_vec()));
        col("tenant_id").eq(tx.tenant()).and(col("campaign_id").eq(campaign)).and(named)
    };
    let (characters, npcs) = (names(|p| p.character_id.as_ref()), names(|p| p.npc_id.as_ref()));
    let characters = match characters.as_slice() {
        [] => Vec::new(),
        names => character::Entity::find().filter(place(names)).all(tx).await?,
    };
    let npcs = match npcs.as_slice() {
        [] => Vec::new(),
        names => npc::Entity::find().filter(place(names)).all(tx).await?,
    };
    let mut members: Vec<Member> = Vec::new();
    let mut all = Vec::with_capacity(inputs.len());
    for (index, input) in inputs.iter().enumerate() {
        let mut new = NewParticipant::from(input);
        let is = |name: &str, id: Uuid, slug: &str| name == slug || Uuid::try_parse(name) == Ok(id);
        let found = match (&input.character_id, &input.npc_id) {
            (Some(_), Some(_)) => {
                return Err(invalid(format!("{}/npc_id", at(index)), "must be absent if character_id is given"));
            }
            (Some(name), None) => characters.iter().find(|c| is(name, c.id.0, &c.slug)).map(|c| {
                new.character_id = Some(c.id.to_string());
                ("character", c.id.0, c.version, c.slug.clone(), sheet::of_character(c.clone()))
            }),
            (None, Some(name)) => npcs.iter().find(|n| is(name, n.id.0, &n.slug)).map(|n| {
                new.npc_id = Some(n.id.to_string());
                ("npc", n.id.0, n.version, n.slug.clone(), sheet::of_npc(n.clone()))
            }),
            (None, None) => None,
        };
        if let Some((kind, record, version, slug, creature)) = found {
            if members.iter().any(|m| m.record == record) && kind == "character" {
                let message = format!("{slug} already takes part");
                return Err(invalid(format!("{}/character_id", at(index)), message));
            }
            if new.id.is_empty() {
                new.id = slug;
            }
            new.record = Some(creature);
            if members.iter().all(|m| m.record != record) {
                members.push(Member { participant: new.id.clone(), kind, record, version });
            }
        } else if let Some(name) = input.character_id.as_ref().or(input.npc_id.as_ref()) {
            if new.id.is_empty() {
                new.id.clone_from(name);
            }
            warnings.push(format!(
                "There is no `{name}` in this campaign, so {} has no record and exists only in this encounter.",
                new.id
            ));
        }
        all.push(new);
    }
    Ok((all, members))
}

/// A member of a request that makes no sense.
pub(super) fn invalid(pointer: String, message: impl Into<String>) -> Error {
    Error::validation(vec![FieldError { pointer, code: "invalid_value".into(), message: message.into() }])
}
