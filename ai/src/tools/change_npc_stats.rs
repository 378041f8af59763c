//! `change_npc_stats`: an owner changes members of the stat block of one of its NPCs.

use entity::shapes::Stats;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    answers::StatsChanged,
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
    stat_changes: StatChanges,
}

/// New values of members of a stat block.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct StatChanges {
    #[schemars(range(min = 0, max = 100))]
    armor_class: Option<i32>,
    /// Hit points, at most `max_hp`.
    #[schemars(range(min = 0, max = 100_000))]
    hp: Option<i32>,
    #[schemars(range(min = 1, max = 100_000))]
    max_hp: Option<i32>,
    #[schemars(range(min = 0, max = 100_000))]
    temp_hp: Option<i32>,
    /// Feet per round.
    #[schemars(range(min = 0, max = 10_000))]
    speed: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    strength: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    dexterity: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    constitution: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    intelligence: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    wisdom: Option<i32>,
    #[schemars(range(min = 1, max = 30))]
    charisma: Option<i32>,
}

impl ToolSpec for ChangeNpcStats {
    const NAME: &'static str = "change_npc_stats";
    const DESCRIPTION: &'static str =
        "Change the stat block of an NPC that answers to you: its armor class, hit points, speed or ability scores.";
    const CALLERS: &'static [ActorKind] = &[ActorKind::Owner];
    const INFORMS: bool = false;
    type Arguments = Arguments;
    type Answer = StatsChanged;

    async fn run(cx: &ToolCx<'_>, arguments: Arguments) -> Result<Value> {
        let changes = arguments.stat_changes;
        changes.fit()?;
        let tx = cx.tx().await?;
        let domain = Domain::of(tx, cx.campaign, cx.entity).await?;
        let npc = domain.npc(tx, &arguments.npc_id, "/npc_id").await?;
        let mut stats = npc.stats.0;
        changes.apply(&mut stats)?;
        set_stats(tx, npc.id.0, &stats).await?;
        Ok(json!({ "npc_id": npc.id, "stats": stats }))
    }
}

impl StatChanges {
    /// The members with their bounds.
    fn members(&self) -> [(&'static str, Option<i32>, i32, i32); 11] {
        [
            ("armor_class", self.armor_class, 0, 100),
            ("hp", self.hp, 0, 100_000),
            ("max_hp", self.max_hp, 1, 100_000),
            ("temp_hp", self.temp_hp, 0, 100_000),
            ("speed", self.speed, 0, 10_000),
            ("strength", self.strength, 1, 30),
            ("dexterity", self.dexterity, 1, 30),
            ("constitution", self.constitution, 1, 30),
            ("intelligence", self.intelligence, 1, 30),
            ("wisdom", self.wisdom, 1, 30),
            ("charisma", self.charisma, 1, 30),
        ]
    }

    /// Checks that something changes, and that every value is within its bounds.
    fn fit(&self) -> Result<()> {
        let members = self.members();
        if members.iter().all(|(_, value, ..)| value.is_none()) {
            return Err(Error::invalid("/stat_changes", "required", "Name at least one member and its new value."));
        }
        for (name, value, min, max) in members {
            if value.is_some_and(|value| !(min..=max).contains(&value)) {
                let why = format!("must be from {min} to {max}");
                return Err(Error::invalid(format!("/stat_changes/{name}"), "invalid_value", why));
            }
        }
        Ok(())
    }

    fn apply(&self, stats: &mut Stats) -> Result<()> {
        let put = |slot: &mut i32, value: Option<i32>| *slot = value.unwrap_or(*slot);
        put(&mut stats.armor_class, self.armor_class);
        put(&mut stats.max_hp, self.max_hp);
        put(&mut stats.temp_hp, self.temp_hp);
        put(&mut stats.speed, self.speed);
        if let Some(hp) = self.hp.filter(|hp| *hp > stats.max_hp) {
            let why = format!("must be at most max_hp, {}; {hp} is more", stats.max_hp);
            return Err(Error::invalid("/stat_changes/hp", "invalid_value", why));
        }
        stats.hp = self.hp.unwrap_or(stats.hp).min(stats.max_hp);
        if self.members().iter().skip(5).any(|(_, value, ..)| value.is_some()) {
            let mut scores = stats.abilities.take().unwrap_or_default();
            put(&mut scores.strength, self.strength);
            put(&mut scores.dexterity, self.dexterity);
            put(&mut scores.constitution, self.constitution);
            put(&mut scores.intelligence, self.intelligence);
            put(&mut scores.wisdom, self.wisdom);
            put(&mut scores.charisma, self.charisma);
            stats.abilities = Some(scores);
        }
        Ok(())
    }
}
