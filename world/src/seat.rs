//! What a game master sees of everybody at the table, and changes by a word.

use entity::{CampaignId, EncounterId};
use rules::{
    encounter::Status,
    resolve::{Word, by_word},
    sheet::Creature,
};
use serde_json::Value;
use sqlx::{AssertSqlSafe, postgres::PgRow, types::Json};
use uuid::Uuid;

use crate::{
    dice::service::Failure,
    encounters::{
        names::called,
        stand::Stand,
        store::{self, Place},
    },
    rules::cast::{Cast, Who},
};
use base::{
    error::{Error, Result},
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::resource::{Ref, scope_key};

/// The most people of each kind that are listed. Those who are where a character is come first.
pub const PEOPLE_MAX: i64 = 200;

/// A character or an NPC, and how it is.
pub struct Present {
    pub id: Uuid,
    /// The path of its kind in the editor: `characters` or `npcs`.
    pub kind: String,
    pub slug: String,
    pub name: String,
    /// Hit points and their maximum on the sheet or stat block; none without one.
    pub hp: Option<(i64, i64)>,
    /// The names of its conditions.
    pub conditions: Vec<String>,
    /// Whether it is in an open fight, which has its own hit points and conditions.
    pub fights: bool,
    /// Whether the AI of this NPC alone is paused.
    pub is_paused: bool,
}

/// A place, and who is there.
pub struct PlaceSeen {
    /// As it is written for the first of them; empty for those who are nowhere.
    pub location: String,
    pub people: Vec<Present>,
}

/// SQL for whether the AI of the NPC `t` alone is paused.
const IS_PAUSED: &str = "t.id = ANY ((SELECT ai_paused_alone($1, c.id, c.settings) FROM campaign c WHERE c.tenant_id = $1 AND c.id = $2)::uuid[])";

/// Who is where: places with characters first, then those with NPCs alone, then who is nowhere. One statement.
///
/// # Errors
/// Database errors.
pub async fn everybody(tx: &TenantTx, campaign: CampaignId) -> Result<Vec<PlaceSeen>> {
    let of = |kind: &str, table: &str, hp: &str, is_paused: &str| {
        format!(
            "(SELECT '{kind}' AS kind, t.id, t.slug, t.name, coalesce(t.location, '') AS location, {hp}, \
                jsonb_path_query_array(t.conditions, '$[*].name') AS conditions, \
                EXISTS (SELECT FROM encounter_member m JOIN encounter e ON e.tenant_id = m.tenant_id AND e.id = m.encounter_id \
                  WHERE m.tenant_id = $1 AND m.record_id = t.id AND NOT m.has_left AND e.status = 'active' AND NOT e.hidden) AS fights, {is_paused} AS is_paused \
              FROM {table} t WHERE t.tenant_id = $1 AND t.campaign_id = $2 \
              ORDER BY t.location IS NULL, t.location NOT IN (SELECT c.location FROM character c WHERE c.tenant_id = $1 AND c.campaign_id = $2 \
                AND c.location IS NOT NULL), t.name COLLATE natural_order, t.id LIMIT {PEOPLE_MAX})"
        )
    };
    let rows = sqlx::query(AssertSqlSafe(format!(
        "SELECT * FROM ({} UNION ALL {}) AS all_of_them ORDER BY location = '', kind, name COLLATE natural_order, id",
        of("characters", "character", "to_jsonb(t.hp) AS hp, to_jsonb(t.max_hp) AS max_hp", "false"),
        of("npcs", "npc", "t.stats -> 'hp' AS hp, t.stats -> 'max_hp' AS max_hp", IS_PAUSED),
    )))
    .bind(tx.tenant())
    .bind(campaign.0)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let mut places: Vec<(String, PlaceSeen)> = Vec::new();
    for (location, person) in stored::each(&rows, present) {
        let key = scope_key(&location);
        match places.iter_mut().find(|(known, _)| *known == key) {
            Some((_, place)) => place.people.push(person),
            None => places.push((key, PlaceSeen { location, people: vec![person] })),
        }
    }
    Ok(places.into_iter().map(|(_, place)| place).collect())
}

/// Whether anybody who is listed is at a location, or any lore tells of it. Two statements.
///
/// # Errors
/// Database errors.
pub async fn is_location(tx: &TenantTx, campaign: CampaignId, location: &str) -> Result<bool> {
    let key = scope_key(location);
    if everybody(tx, campaign).await?.iter().any(|place| scope_key(&place.location) == key) {
        return Ok(true);
    }
    let told = sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM lore WHERE tenant_id = $1 AND campaign_id = $2 AND scope = 'zone' AND associated_key = $3)",
    );
    Ok(told.bind(tx.tenant()).bind(campaign.0).bind(key).fetch_one(&mut *tx.connection().await).await?)
}

/// The columns of [`everybody`], in its order.
type Row =
    (String, Uuid, String, String, String, Option<Json<Value>>, Option<Json<Value>>, Json<Vec<Value>>, bool, bool);

/// Where somebody is, and who.
fn present(row: &PgRow) -> Result<(String, Present)> {
    let (kind, id, slug, name, location, hp, max_hp, Json(conditions), fights, is_paused) = row.read_all::<Row>()?;
    let number = |value: Option<Json<Value>>| value.and_then(|Json(value)| value.as_i64());
    let hp = number(hp).zip(number(max_hp)).filter(|(_, max)| *max > 0);
    let conditions = conditions.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    Ok((location, Present { id, kind, slug, name, hp, conditions, fights, is_paused }))
}

/// How somebody is now: in an open fight as the fight has it, else as the sheet or stat block has it.
#[derive(Clone)]
pub struct State {
    pub hp: i32,
    pub max_hp: i32,
    pub temp_hp: i32,
    pub conditions: Vec<String>,
    /// The fight, and who that is in it.
    pub fight: Option<Fighting>,
}

/// Somebody's place in a fight.
#[derive(Clone)]
pub struct Fighting {
    pub encounter: Uuid,
    pub participant: String,
    /// Whether only game masters know of it.
    pub is_hidden: bool,
}

impl State {
    fn of(creature: &Creature, fight: Option<Fighting>) -> Self {
        Self {
            hp: creature.hp,
            max_hp: creature.max_hp_now(),
            temp_hp: creature.temp_hp,
            conditions: creature.conditions.iter().map(|condition| condition.name.clone()).collect(),
            fight,
        }
    }
}

/// Somebody in an open fight, who may have no sheet or stat block besides it.
pub struct Fighter {
    pub name: String,
    /// Whose sheet or stat block the fight changes when it is committed.
    pub record: Option<Who>,
    pub state: State,
}

/// Somebody in an open fight. One statement.
///
/// # Errors
/// `not_found` if the fight has ended, or nobody of this id takes part.
pub async fn fighter(
    tx: &TenantTx,
    campaign: CampaignId,
    encounter: EncounterId,
    participant: &str,
) -> Result<Fighter> {
    let missing = || Error::not_found("participant");
    let place = Place { campaign: &Ref::Id(campaign.0), only: None };
    let fight = store::read(tx, place, &encounter.to_string(), false).await?;
    if fight.hidden || fight.now.status() != Status::Active {
        return Err(missing());
    }
    let it = fight.now.participant(participant).ok_or_else(missing)?;
    let id = |id: &Option<String>| id.as_deref().and_then(|id| Uuid::try_parse(id).ok());
    let place = Fighting { encounter: encounter.0, participant: it.id.clone(), is_hidden: it.hidden };
    Ok(Fighter {
        name: called(&fight.now, it),
        record: id(&it.character_id).map(Who::Character).or_else(|| id(&it.npc_id).map(Who::Npc)),
        state: State::of(&it.creature, Some(place)),
    })
}

/// How somebody is now. At most three statements.
///
/// # Errors
/// `not_found` if it is gone.
pub async fn state(tx: &TenantTx, campaign: CampaignId, who: Who) -> Result<State> {
    let stand = Stand::of(tx, campaign.0, who.id()).await?;
    let own = stand.as_ref().and_then(|stand| stand.fight.now.participant(stand.own()));
    let cast;
    let creature = match own {
        Some(own) => &*own.creature,
        None => {
            cast = Cast::read(tx, campaign.0, &[who], false).await?;
            cast.creature(who)?
        }
    };
    let fight = own.zip(stand.as_ref()).map(|(own, stand)| Fighting {
        encounter: stand.fight.id,
        participant: own.id.clone(),
        is_hidden: own.hidden,
    });
    Ok(State::of(creature, fight))
}

/// Changes somebody by a word, on the sheet or stat block. Says what came of it.
///
/// # Errors
/// `not_found`; `validation_failed` for what the rules do not know, or forbid.
pub async fn change(tx: &TenantTx, campaign: CampaignId, who: Who, word: Word<'_>) -> Result<String> {
    let mut cast = Cast::read(tx, campaign.0, &[who], true).await?;
    let creature = cast.creature(who)?;
    if creature.max_hp <= 0 && matches!(word, Word::Damage(_) | Word::Heal(_) | Word::TempHp(_)) {
        let message = format!("{} has no hit points. Write a maximum into the sheet first.", creature.name);
        return Err(Error::invalid("/amount", "invalid_value", message));
    }
    let outcome = by_word(creature, word).map_err(|error| Error::from(Failure::from(error)))?;
    if outcome.impossible {
        return Err(Error::invalid("/do", "invalid_value", format!("This is not possible: {}.", outcome.notes)));
    }
    cast.change(outcome.effects.iter());
    cast.write(tx, campaign.0, false).await?;
    Ok(outcome.notes)
}
