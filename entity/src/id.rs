//! One id type for each table, so that an NPC's id cannot be passed where a character's is expected. All are UUIDv7.

use sea_orm::{DbErr, DeriveValueType, TryFromU64};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, DeriveValueType)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Uuid {
                id.0
            }
        }

        impl TryFromU64 for $name {
            fn try_from_u64(_: u64) -> Result<Self, DbErr> {
                Err(DbErr::ConvertFromU64(stringify!($name)))
            }
        }
    )+};
}

id_types!(
    /// A tenant: the owner of everything else.
    TenantId,
    /// An API key.
    KeyId,
    /// A campaign: one world.
    CampaignId,
    /// A player character.
    CharacterId,
    /// A non-player character.
    NpcId,
    /// An owner: a group or institution with its own AI.
    OwnerId,
    /// A lore entry.
    LoreId,
    /// A memory.
    MemoryId,
    /// A scene.
    SceneId,
    /// A frontend's session.
    SessionId,
    /// An encounter.
    EncounterId,
    /// A message in a campaign.
    MessageId,
    /// An AI turn.
    TurnId,
);

/// The place of a row in the order of writing: a number of the database. Ids say nothing about it, because the clocks of servers differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize, DeriveValueType)]
#[serde(transparent)]
pub struct Seq(pub i64);

impl std::fmt::Display for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for Seq {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}
