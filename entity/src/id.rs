//! One id type for each table, so that an NPC's id cannot be passed where a character's is expected. All are UUIDv7.

use sea_orm::{DbErr, DeriveValueType, TryFromU64};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

macro_rules! id_types {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, DeriveValueType)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// Makes a new id, which sorts after earlier ones.
            #[must_use]
            pub fn generate() -> Self {
                Self(Uuid::now_v7())
            }

            /// The least id that is made at a time, to the millisecond. Ids that are made later sort after it.
            #[must_use]
            pub fn first_at(time: OffsetDateTime) -> Self {
                let milliseconds = u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
                Self(uuid::Builder::from_unix_timestamp_millis(milliseconds, &[0; 10]).into_uuid())
            }
        }

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
