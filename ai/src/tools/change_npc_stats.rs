//! `change_npc_stats`: an owner changes members of the stat block of one of its NPCs, or its disposition.

use entity::shapes::Stats;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    answers::StatsChanged,
    arguments::line,
    spec::{ActorKind, ToolCx, ToolSpec},
};
use base::error::{Error, Result};
use world::{npcs::changes::set_stats, owners::domain::Domain};

pub(super) struct ChangeNpcStats;

/// Whose stat block changes, and how.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// An NPC that answers to you, by id or slug.
    npc_id: String,
    /// The members to change, with their new values. At least one.
    changes: Changes,
}

/// New values.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct Changes {
    #[schemars(range(min = 0, max = 100))]
    armor_class: Option<i32>,
    #[schemars(range(min = 1, max = 100_000))]
    max_hp: Option<i32>,
    /// Hit points, at most `max_hp`.
    #[schemars(range(min = 0, max = 100_000))]
    hp: Option<i32>,
    /// How it feels about people, such as `hostile` or `wary of strangers`.
    #[schemars(length(min = 1, max = 200))]
    disposition: Option<String>,
    /// Feet per round.
    #[schemars(range(min = 0, max = 10_000))]
    speed: Option<i32>,
}

impl ToolSpec for ChangeNpcStats {
    const NAME: &'static str = "change_npc_stats";
    const DESCRIPTION: &'static str =
        "Change the armor class, hit points, speed or disposition of an NPC that answers to you.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = StatsChanged;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Self::Answer> {
        let changes = arguments.changes;
        changes.fit()?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let npc = domain.npc_to_change(tx, &arguments.npc_id, "/npc_id").await?;
        let mut stats = npc.stats.0;
        changes.apply(&mut stats)?;
        let disposition = changes.disposition.as_deref().map_or(npc.disposition.as_str(), str::trim);
        set_stats(tx, npc.id.0, &stats, disposition).await?;
        Ok(StatsChanged { npc_id: npc.id.0, stats, disposition: disposition.to_owned() })
    }
}

impl Changes {
    /// Checks that something changes, and that every value is within its bounds.
    fn fit(&self) -> Result<()> {
        let numbers = [
            ("armor_class", self.armor_class, 0, 100),
            ("max_hp", self.max_hp, 1, 100_000),
            ("hp", self.hp, 0, 100_000),
            ("speed", self.speed, 0, 10_000),
        ];
        if self.disposition.is_none() && numbers.iter().all(|(_, value, ..)| value.is_none()) {
            return Err(Error::invalid("/changes", "required", "Name at least one member and its new value."));
        }
        for (name, value, min, max) in numbers {
            if value.is_some_and(|value| !(min..=max).contains(&value)) {
                let why = format!("must be from {min} to {max}");
                return Err(Error::invalid(format!("/changes/{name}"), "invalid_value", why));
            }
        }
        self.disposition.as_deref().map_or(Ok(()), |words| line(words, "/changes/disposition").map(drop))
    }

    fn apply(&self, stats: &mut Stats) -> Result<()> {
        let put = |slot: &mut i32, value: Option<i32>| *slot = value.unwrap_or(*slot);
        put(&mut stats.armor_class, self.armor_class);
        put(&mut stats.max_hp, self.max_hp);
        put(&mut stats.speed, self.speed);
        if let Some(hp) = self.hp.filter(|hp| *hp > stats.max_hp) {
            let why = format!("must be at most max_hp, {}; {hp} is more", stats.max_hp);
            return Err(Error::invalid("/changes/hp", "invalid_value", why));
        }
        stats.hp = self.hp.unwrap_or(stats.hp).min(stats.max_hp);
        Ok(())
    }
}
