//! Opens a session. A frontend's name has one session in a campaign. A frontend that comes back takes it over as it is.

use edge::auth::player;
use entity::{
    session::{self, Dice, Role},
    shapes::Extensions,
};
use sea_orm::{
    EntityTrait, QueryFilter, QuerySelect,
    sea_query::{ExprTrait, LockType},
};
use serde_json::Value;
use uuid::Uuid;

use super::{SessionInput, Sessions};
use crate::scenes;
use base::error::{Code, Error, Result};
use edge::{
    http::{
        resource::{self, Place, Resource as _, col},
        validate,
    },
    limits::Limits,
};

/// The client's session with the given data, and whether it is new. If two open the same session at once, both get the same one.
///
/// # Errors
/// `quota_exceeded`; database errors.
pub async fn open(limits: &Limits, place: &Place<'_>, mut input: SessionInput) -> Result<(session::Model, bool)> {
    match lock_session(place, &input.client_id).await? {
        Some(known) => {
            // A frontend that comes back without naming a scene plays on in its present scene.
            if input.channel.is_none() {
                input.scene_id = input.scene_id.or(known.scene_id.map(|id| id.to_string()));
            }
            Ok((resource::update::<Sessions>(place, known, input).await?, false))
        }
        None => Ok((insert(limits, place, input).await?, true)),
    }
}

/// What a frontend asks for when it joins its session. Missing values stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub client_id: String,
    /// The session that it expects, if it knows the id.
    pub session: Option<Uuid>,
    pub role: Option<Role>,
    pub dice: Option<Dice>,
    pub player: Option<String>,
    /// The channel in which it plays.
    pub channel: Option<String>,
    /// Members for the session's extensions.
    pub notes: Extensions,
}

/// The session of a connecting frontend. With the scope `gm`, it may be any session and may change in any way. Without it, an
/// existing session is joined as it is, and a new one has the role `player` and the server's dice. A token for one character only
/// joins that character's sessions.
///
/// # Errors
/// `forbidden`, `validation_failed`, `quota_exceeded`.
pub async fn join(limits: &Limits, place: &Place<'_>, wish: &Wish) -> Result<session::Model> {
    let caller = place.caller;
    let known = lock_session(place, &wish.client_id).await?;
    if wish.session.is_some_and(|id| known.as_ref().is_none_or(|k| k.id.0 != id)) {
        return Err(Error::invalid(
            "/session_id",
            "unknown_reference",
            "This client_id has no session with this id in this campaign.",
        ));
    }
    let was = known.as_ref().map(input_of);
    let mut input = was.clone().unwrap_or_else(|| SessionInput {
        client_id: wish.client_id.clone(),
        role: if caller.sees_secrets() { Role::Gm } else { Role::Player },
        dice: Dice::Server,
        player_id: caller.player.map(|id| id.to_string()),
        scene_id: None,
        channel: None,
        extensions: Extensions::new(),
        external_ref: None,
    });
    input.role = wish.role.unwrap_or(input.role);
    input.dice = wish.dice.unwrap_or(input.dice);
    if let Some(player) = &wish.player {
        input.player_id = Some(player::id(place.tx, place.campaign, player).await?.to_string());
    }
    input.extensions.extend(wish.notes.clone());
    input.channel.clone_from(&wish.channel);
    validate::check(&input)?;
    if let Some(channel) = input.channel.take() {
        let there = scenes::service::of_channel(place, &channel).await?;
        input.scene_id = Some(there.to_string());
    }
    let settings_of = |i: &SessionInput| (i.role, i.dice, i.player_id.clone(), i.scene_id.clone());
    let plain = match &was {
        Some(was) => was.role == Role::Player && settings_of(was) == settings_of(&input),
        None => (input.role, input.dice) == (Role::Player, Dice::Server),
    };
    if !plain {
        caller.needs_game_master(
            "Opening, joining or changing a session with another role than `player`, or changing a player's session,",
        )?;
    }
    let model = match (known, was) {
        (Some(known), Some(was)) if same(&was, &input)? => known,
        (Some(known), _) => resource::update::<Sessions>(place, known, input).await?,
        (None, _) => insert(limits, place, input).await?,
    };
    if caller.is_player() && model.role != Role::Player {
        return Err(Error::new(Code::Forbidden, "A player's token may only join a session with the role `player`."));
    }
    caller.may_act_as(model.player_id.unwrap_or_default())?;
    Ok(model)
}

fn same(was: &SessionInput, input: &SessionInput) -> Result<bool> {
    let value = |input: &SessionInput| serde_json::to_value(input).map_err(Error::internal);
    let (was, input): (Value, Value) = (value(was)?, value(input)?);
    Ok(was == input)
}

fn input_of(model: &session::Model) -> SessionInput {
    SessionInput {
        client_id: model.client_id.clone(),
        role: model.role,
        dice: model.dice,
        player_id: model.player_id.map(|id| id.to_string()),
        scene_id: model.scene_id.map(|id| id.to_string()),
        channel: None,
        extensions: model.extensions.0.clone(),
        external_ref: model.external_ref.clone(),
    }
}

/// The client's session, locked until the transaction ends, so that a second frontend that opens it finds the result of the first.
async fn lock_session(place: &Place<'_>, client_id: &str) -> Result<Option<session::Model>> {
    let (tx, campaign) = (place.tx, place.campaign);
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1::text || '/' || $2, 0))")
        .bind(campaign)
        .bind(client_id)
        .execute(&mut *tx.connection().await)
        .await?;
    let found = session::Entity::find()
        .filter(col("tenant_id").eq(tx.tenant()))
        .filter(col("campaign_id").eq(campaign))
        .filter(col("client_id").eq(client_id))
        .lock(LockType::NoKeyUpdate);
    Ok(found.one(tx).await?)
}

async fn insert(limits: &Limits, place: &Place<'_>, input: SessionInput) -> Result<session::Model> {
    let (tx, campaign) = (place.tx, place.campaign);
    limits.check_rows(tx, place.caller, Sessions::TABLE).await?;
    let model = resource::insert::<Sessions>(place, input).await?;
    sqlx::query(
        "INSERT INTO session_state (tenant_id, session_id, campaign_id, from_seq) \
         VALUES ($1, $2, $3, coalesce((SELECT seq FROM feed_head WHERE tenant_id = $1 AND campaign_id = $3), 0))",
    )
    .bind(tx.tenant())
    .bind(model.id.0)
    .bind(campaign)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(model)
}
