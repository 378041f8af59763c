//! What a tool's file says about the tool, and what it gets.

use std::{borrow::Cow, marker::PhantomData};

use entity::{kind::EntityKind, session::Role};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};
use uuid::Uuid;

use super::{
    earlier::Earlier,
    effects::{self, Effects},
    hand::Hand,
    work::Work,
};
use crate::{
    corpora::Corpora,
    frontends::question::{Heard, Question},
};
use base::error::Result;
use db::tenancy::TenantTx;
use world::{
    dice::service::Wish,
    memory::subject::Bound,
    playing::{Playing, Reader},
};

/// The context in which a tool runs.
pub struct ToolCx<'a> {
    pub work: &'a Work<'a>,
    pub corpora: &'a Corpora,
    pub campaign: Uuid,
    pub kind: ActorKind,
    /// Who calls the tool. The nil id stands for the game master.
    pub entity: Uuid,
    /// The player of the turn, by id and slug, so that naming the player needs no look-up.
    pub player: Option<(Uuid, &'a str)>,
    /// The session in which the call happens.
    pub session: Option<&'a Playing>,
    /// The reader for whom messages and secrets are read.
    pub reader: Reader,
    pub turn: Option<Uuid>,
    /// Whether a command runs the tool. Commands report themselves as actions.
    pub is_command: bool,
    /// The key that called the tool outside of a turn.
    pub key: Option<Uuid>,
    /// Dice that the caller rolled by hand. Only a game master may give any.
    pub dice: Option<&'a [u32]>,
    /// The answer of the session's frontend, if the tool asked it something.
    pub heard: Option<&'a Heard>,
    /// Dice rolled by hand for the whole turn. `roll_dice` uses them before it rolls.
    pub hand: Option<&'a Hand>,
    /// What earlier attempts at the turn rolled, if it is tried again.
    pub earlier: Option<&'a Earlier>,
    /// Change nothing: slots, hit points and the fair dice stay as they are.
    pub preview: bool,
    /// Deal the damage even though no encounter does.
    pub apply: bool,
    /// The most rows of one kind that the tenant may have. 0 means no limit.
    pub rows_max: u64,
    /// The effects of the turn, if a failure reverts them.
    pub effects: Option<&'a Effects>,
}

impl<'a> ToolCx<'a> {
    /// Where the dice of this call come from.
    #[must_use]
    pub fn wish(&self) -> Wish<'a> {
        Wish { given: self.dice, seed: None, preview: self.preview }
    }

    /// The player about whom the call may remember something.
    #[must_use]
    pub fn bound(&self) -> Bound {
        let played = self.session.filter(|session| session.role == Role::Player).and_then(|session| session.player);
        match (self.player.map(|(id, _)| id).or(played), self.turn) {
            (Some(player), _) => Bound::To(player),
            (None, Some(_)) => Bound::Nobody,
            (None, None) => Bound::Free,
        }
    }

    /// Counts rows that the call will change, in addition to the one that every call counts as. One statement if there are many.
    ///
    /// # Errors
    /// `quota_exceeded` if the turn may not change that many; database errors.
    pub async fn changes(&self, rows: u64) -> Result<()> {
        let Some(effects) = self.effects else { return Ok(()) };
        effects.take(rows)?;
        match self.turn {
            Some(turn) if rows >= effects::MANY => effects::take_time(self.tx().await?, turn).await,
            _ => Ok(()),
        }
    }

    /// The transaction in which the tool runs.
    ///
    /// # Errors
    /// The errors of [`Work::tx`].
    pub async fn tx(&self) -> Result<&TenantTx> {
        self.work.tx().await
    }
}

/// What a tool needs to know to decide whether to ask the frontend.
pub struct Asking<'a> {
    /// The session whose frontend would be asked.
    pub session: &'a Playing,
    /// Whether there are dice already: rolled by hand, or by the server for a preview.
    pub has_dice: bool,
}

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorKind {
    Character,
    Npc,
    Owner,
    Gm,
}

impl From<EntityKind> for ActorKind {
    fn from(kind: EntityKind) -> Self {
        match kind {
            EntityKind::Npc => Self::Npc,
            EntityKind::Owner => Self::Owner,
        }
    }
}

/// All kinds of callers.
pub const ANYONE: &[ActorKind] = &[ActorKind::Character, ActorKind::Npc, ActorKind::Owner, ActorKind::Gm];

/// What a tool's file defines.
pub trait ToolSpec {
    const NAME: &'static str;
    /// Older names of the tool. They still work, but are not listed.
    const ALIASES: &'static [&'static str] = &[];
    const DESCRIPTION: &'static str;
    const CALLERS: &'static [ActorKind];
    /// Whether an NPC or owner must list the tool to call it. Tools that apply the rules are for everyone.
    const LISTED: bool = true;
    /// Whether the model needs the result to go on (in XML mode; native mode always returns it).
    const INFORMS: bool;
    /// Whether the tool reads things that only its caller may know. Other readers of the turn do not see its results.
    const READS: bool = false;
    /// Whether the tool applies the rules, so that a call tells numbers of its caller and its targets. Of an NPC's turn, only the game
    /// master reads such calls.
    const OF_RULES: bool = false;
    /// Whether a call can only show what it would do. Tools that merely change something have nothing to show.
    const PREVIEWS: bool = Self::INFORMS;
    type Arguments: DeserializeOwned + JsonSchema;
    type Answer: Serialize + ToSchema;

    /// What to ask the session's frontend before the tool runs. The answer comes as [`ToolCx::heard`]. No transaction may be open
    /// while the frontend answers, so the calls before this one are committed first.
    fn asks(_: &Asking<'_>, _: &Self::Arguments) -> Option<Question> {
        None
    }

    /// Runs the tool.
    fn run(cx: &ToolCx<'_>, arguments: Self::Arguments) -> impl Future<Output = Result<Self::Answer>>;
}

/// An answer that is made elsewhere, and the type that describes it: a list of all members that it may have.
pub struct Described<T, D>(T, PhantomData<D>);

impl<T, D> From<T> for Described<T, D> {
    fn from(answer: T) -> Self {
        Self(answer, PhantomData)
    }
}

impl<T: Serialize, D> Serialize for Described<T, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<T, D: PartialSchema> PartialSchema for Described<T, D> {
    fn schema() -> RefOr<Schema> {
        D::schema()
    }
}

impl<T, D: ToSchema> ToSchema for Described<T, D> {
    fn name() -> Cow<'static, str> {
        D::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        D::schemas(schemas);
    }
}

/// Schemas by name: a type's own, and those to which it refers.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// The schemas of a type, its own first.
pub fn schemas<T: ToSchema>() -> Schemas {
    let mut schemas = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut schemas);
    schemas
}
