//! `POST …/characters/{x}/rest`, and `GET /rules/srd/{table}`: the SRD 5.1 tables that the resolvers use.

use actix_web::{Responder, web};
use edge::auth::player;
use rules::resolve::{RestArgs, RestType, take_rest};
use rules::srd::{ARMOR, CONDITIONS, CREATURES, SKILLS, SPELLS, WEAPONS};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    cast::{Cast, Who},
    service::{self, How},
};
use crate::rules::answers::ResolvedOutcome;
use base::error::{Error, Problem, Result};
use edge::{
    caller::Caller,
    http::{
        Answer, Body,
        resource::{Ref, campaign_id},
    },
    state::Edge,
};

/// A rest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestInput {
    /// A short rest (an hour or more) or a long one (eight hours).
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    rest: RestType,
    /// Hit dice to spend in a short rest.
    #[schema(minimum = 0, maximum = 100)]
    #[serde(default)]
    hit_dice: Option<i32>,
    /// The levels of the slots to recover in a short rest with Arcane or Natural Recovery.
    #[serde(default)]
    recover_slots: Vec<i32>,
    /// Whether the character has food and drink. Without them exhaustion does not improve.
    #[serde(default = "yes")]
    food: bool,
    /// Dice rolled by hand; needs the scope `gm`.
    #[serde(default)]
    dice: Option<Vec<u32>>,
    /// True to only show what the rest would do.
    #[serde(default)]
    preview: bool,
}

fn yes() -> bool {
    true
}

impl RestInput {
    fn checked(&self) -> Result<RestArgs> {
        if self.hit_dice.is_some_and(|n| !(0..=100).contains(&n)) {
            return Err(Error::invalid("/hit_dice", "invalid_value", "must be a whole number from 0 to 100"));
        }
        if self.recover_slots.len() > 20 {
            return Err(Error::invalid("/recover_slots", "invalid_value", "must have at most 20 entries"));
        }
        if let Some(at) = self.recover_slots.iter().position(|l| !(1..=9).contains(l)) {
            return Err(Error::invalid(format!("/recover_slots/{at}"), "invalid_value", "must be a level from 1 to 9"));
        }
        Ok(RestArgs {
            rest: self.rest,
            hit_dice: self.hit_dice,
            recover_slots: self.recover_slots.clone(),
            food: self.food,
        })
    }
}

/// Takes a short or long rest with a character, as the tool `take_rest` does.
#[utoipa::path(post, path = "/v1/campaigns/{c}/characters/{x}/rest",
    tag = "rules", operation_id = "rest_character", request_body = RestInput,
    params(("c" = String, Path, description = "Campaign id or slug"), ("x" = String, Path, description = "Character id or slug")),
    responses((status = 200, body = ResolvedOutcome), (status = "default", body = Problem)))]
pub async fn rest(
    app: web::Data<Edge>,
    caller: Caller,
    path: web::Path<(String, String)>,
    body: Body<RestInput>,
) -> Result<impl Responder> {
    let (c, x) = path.into_inner();
    let input = &body.value;
    let args = input.checked()?;
    if input.dice.is_some() {
        caller.needs_game_master("Giving dice")?;
    }
    edge::http::write(&app, &caller, body.idempotency.as_ref(), async |tx| {
        let campaign = campaign_id(tx, &caller, &Ref::parse(&c)).await?;
        let id = player::find(tx, campaign, &x).await?.ok_or_else(|| Error::not_found("character"))?;
        caller.may_act_as(id)?;
        let who = Who::Character(id);
        let cast = Cast::read(tx, campaign, &[who], !input.preview).await?;
        let how = How {
            tx,
            campaign,
            tool: "take_rest",
            given: input.dice.as_deref(),
            preview: input.preview,
            harm: true,
            spares_damage: false,
            obeys_locks: false,
        };
        let run = |cast: &Cast, dice: &mut dyn rules::dice::Dice| Ok(take_rest(cast.creature(who)?, &args, dice));
        Ok(Answer::ok(service::resolve(&how, cast, run).await?))
    })
    .await
}

/// A whole table. There are no further pages.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it only describes the answer, which is written from the tables themselves")]
struct SrdTable {
    /// All rows of the requested table.
    items: Vec<SrdRow>,
    /// Always null.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A row of one of the tables.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "as above")]
enum SrdRow {
    Weapon(rules::srd::WeaponRule),
    Armor(rules::srd::Armor),
    Condition(rules::srd::ConditionRule),
    Spell(rules::srd::SpellRule),
    Skill(rules::srd::Skill),
    Creature(rules::srd::CreatureRule),
}

/// Returns a table of SRD 5.1: `weapons`, `armor`, `conditions`, `spells`, `skills` or `creatures`.
#[utoipa::path(get, path = "/v1/rules/srd/{x}",
    tag = "rules", operation_id = "get_srd_table",
    params(("x" = String, Path, description = "`weapons`, `armor`, `conditions`, `spells`, `skills` or `creatures`")),
    responses((status = 200, body = SrdTable), (status = "default", body = Problem)))]
pub async fn srd(_: Caller, path: web::Path<String>) -> Result<impl Responder> {
    let items = match path.as_str() {
        "weapons" => table(&WEAPONS),
        "armor" => table(&ARMOR),
        "conditions" => table(&CONDITIONS),
        "spells" => table(&SPELLS),
        "skills" => table(&SKILLS),
        "creatures" => table(&CREATURES),
        _ => Err(Error::not_found("table")),
    }?;
    Ok(Answer::ok(json!({ "items": items, "next_cursor": null })))
}

fn table(rows: &[impl Serialize]) -> Result<Value> {
    serde_json::to_value(rows).map_err(Error::internal)
}
