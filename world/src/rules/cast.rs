//! The creatures that take part in something the rules resolve: finds them by name, locks them in one order, and writes
//! them back.
//!
//! Every caller locks characters before NPCs and each kind by id, so that two resolutions never deadlock. This module
//! must never guess what an ambiguous name means: the outcome is then impossible and lists the candidates.

use entity::{character, npc};
use rules::{
    encounter::Encounter,
    resolve::{StateChange, apply},
    sheet::{Creature, KnownSpell},
    srd::same,
};
use sea_orm::{
    EntityTrait, QueryFilter, QueryOrder, QuerySelect,
    sea_query::{ExprTrait, LockType},
};
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::sheet;
use crate::actors;
use base::{
    error::{Error, Result},
    fold,
    stored::{self, Columns},
};
use db::tenancy::TenantTx;
use edge::http::resource::col;

/// The most names that an impossible outcome lists.
const CANDIDATES_MAX: usize = 20;

/// A creature with a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Character(Uuid),
    Npc(Uuid),
    /// A participant of a fight, by its index there. The cast then consists of participants of that fight.
    Participant(usize),
}

impl Who {
    /// The id of the row; nil for a participant.
    #[must_use]
    pub fn id(self) -> Uuid {
        match self {
            Self::Character(id) | Self::Npc(id) => id,
            Self::Participant(_) => Uuid::nil(),
        }
    }
}

/// What a name means.
pub enum Named {
    One(Who),
    /// The name means nobody or several. The text says why, for an impossible outcome.
    Unclear(String),
}

/// Finds characters and NPCs of the campaign by what each of `wanted` says, in that order. An id or slug goes first, then a
/// name: an exact match, then in any case, then the only name that contains `wanted` or is contained in it, as whole words.
/// One statement, and one more for each that is not an id or slug.
///
/// # Errors
/// Database errors.
pub async fn named_all(tx: &TenantTx, campaign: Uuid, wanted: &[&str]) -> Result<Vec<Named>> {
    match named_by(tx, campaign, wanted, None).await? {
        Met::Here(named) => Ok(named),
        Met::Fighting(_) => Err(Error::internal("found a fight although no actor was given")),
    }
}

/// What names mean to an acting creature.
pub enum Met {
    Here(Vec<Named>),
    /// The acting creature is in this fight, so the names mean participants of the fight.
    Fighting(Uuid),
}

/// [`named_all`] for an actor, unless the actor is in an active fight. It costs the same.
///
/// # Errors
/// Database errors.
pub async fn named_by(tx: &TenantTx, campaign: Uuid, wanted: &[&str], actor: Option<Uuid>) -> Result<Met> {
    let rows = sqlx::query(
        "SELECT w.n, a.actor_id, a.kind, (SELECT m.encounter_id FROM encounter_member m \
             JOIN encounter e ON e.tenant_id = m.tenant_id AND e.id = m.encounter_id WHERE m.tenant_id = $1 AND m.record_id = $5 \
               AND NOT m.has_left AND e.status = 'active' AND NOT e.hidden ORDER BY e.id DESC LIMIT 1) AS fight \
         FROM unnest($3::text[], $4::uuid[]) WITH ORDINALITY AS w (slug, id, n) \
         LEFT JOIN actor_slug a ON a.tenant_id = $1 AND a.campaign_id = $2 AND a.kind IN ('character', 'npc') \
           AND (a.slug = w.slug OR a.actor_id = w.id) ORDER BY w.n",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(wanted.iter().map(|name| name.trim()).collect::<Vec<_>>())
    .bind(wanted.iter().map(|name| Uuid::try_parse(name.trim()).ok()).collect::<Vec<_>>())
    .bind(actor)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    if let Some(fight) = rows.first().map(|row| row.read::<Option<Uuid>>("fight")).transpose()?.flatten() {
        return Ok(Met::Fighting(fight));
    }
    let found: Vec<(i64, Who)> = stored::each(&rows, |row| {
        let one = row.read::<Option<Uuid>>("actor_id")?.zip(row.read::<Option<&str>>("kind")?);
        Ok((row.read::<i64>("n")?, one.map(|(id, kind)| who(kind, id))))
    })
    .into_iter()
    .filter_map(|(n, one)| Some((n, one?)))
    .collect();
    let mut all = Vec::with_capacity(wanted.len());
    for (n, name) in (1_i64..).zip(wanted) {
        all.push(match found.iter().find(|(at, _)| *at == n) {
            Some((_, who)) => Named::One(*who),
            None => by_name(tx, campaign, name.trim()).await?,
        });
    }
    Ok(Met::Here(all))
}

fn who(kind: &str, id: Uuid) -> Who {
    if kind == "npc" { Who::Npc(id) } else { Who::Character(id) }
}

/// Finds a creature by name: an exact match, then in any case, then by whole words that the one contains of the other.
async fn by_name(tx: &TenantTx, campaign: Uuid, wanted: &str) -> Result<Named> {
    let name = fold::sql("name");
    let sql = format!(
        "WITH known AS (SELECT 'character' AS kind, id, slug, name FROM character WHERE tenant_id = $1 AND campaign_id = $2 \
           UNION ALL SELECT 'npc', id, slug, name FROM npc WHERE tenant_id = $1 AND campaign_id = $2), \
         folded AS MATERIALIZED (SELECT *, {name} AS folded FROM known), \
         compared AS (SELECT *, name = $3 AS exact, $5 IN (folded, slug) AS same, \
             position(format(' %s ', $5) IN format(' %s ', folded)) > 0 \
             OR position(format(' %s ', folded) IN format(' %s ', $5)) > 0 AS holds FROM folded) \
         SELECT * FROM compared WHERE holds OR same ORDER BY exact DESC, same DESC, name, slug LIMIT $4"
    );
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(wanted)
        .bind(i64::try_from(CANDIDATES_MAX).unwrap_or(20))
        .bind(fold::fold(wanted))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    let known = stored::each(&rows, |row| {
        // Rank 0 is an exact match, 1 differs in case only, 2 has more or fewer words.
        let (exact, same): (bool, bool) = (row.read("exact")?, row.read("same")?);
        let tier = if exact { 0 } else { 2 - i32::from(same) };
        let called = format!("{} ({})", row.read::<&str>("name")?, row.read::<&str>("slug")?);
        Ok((tier, who(row.read("kind")?, row.read("id")?), called))
    });
    let best = known.iter().map(|(tier, ..)| *tier).min();
    let fitting: Vec<_> = known.iter().filter(|(tier, ..)| Some(*tier) == best).collect();
    Ok(match fitting.as_slice() {
        [] => Named::Unclear(format!("nobody called \"{wanted}\" is here")),
        [(_, who, _)] => Named::One(*who),
        several => {
            let names: Vec<&str> = several.iter().map(|(.., called)| called.as_str()).collect();
            Named::Unclear(format!("\"{wanted}\" may be {}", names.join(", ")))
        }
    })
}

struct Member {
    who: Who,
    version: i64,
    before: Creature,
    now: Creature,
    /// Whether to raise its version even if nothing else changes.
    marked: bool,
    is_locked: bool,
}

/// A record, with the version at which it was read.
pub struct Record<'a> {
    pub version: i64,
    /// Whether AI tools must not change it.
    pub is_locked: bool,
    pub now: &'a mut Creature,
}

/// The creatures that take part, before and after the changes.
pub struct Cast {
    members: Vec<Member>,
    /// Spells that ended: the names of the caster, and the names of what the spell had put on others.
    ended: Vec<(Vec<String>, Vec<String>)>,
}

impl Cast {
    /// Reads the records. Locks them if `lock` is true.
    ///
    /// # Errors
    /// `not_found` if one of them no longer exists.
    pub async fn read(tx: &TenantTx, campaign: Uuid, who: &[Who], lock: bool) -> Result<Self> {
        let cast = Self::read_those_left(tx, campaign, who, lock).await?;
        if who.iter().all(|w| cast.members.iter().any(|m| m.who == *w)) {
            return Ok(cast);
        }
        Err(Error::not_found("character or NPC"))
    }

    /// [`Cast::read`] without the records that no longer exist.
    ///
    /// # Errors
    /// Database errors.
    pub async fn read_those_left(tx: &TenantTx, campaign: Uuid, who: &[Who], lock: bool) -> Result<Self> {
        let mut who = who.to_vec();
        who.sort_unstable();
        who.dedup();
        let place = |ids: Vec<Uuid>| {
            col("tenant_id").eq(tx.tenant()).and(col("campaign_id").eq(campaign)).and(col("id").is_in(ids))
        };
        let ids = |npcs: bool| -> Vec<Uuid> {
            who.iter().filter(|w| matches!(w, Who::Npc(_)) == npcs).map(|w| w.id()).collect()
        };
        let mut members = Vec::with_capacity(who.len());
        let mut add = |who, version, is_locked, creature: Creature| {
            members.push(Member { who, version, now: creature.clone(), before: creature, marked: false, is_locked });
        };
        let (characters, npcs) = (ids(false), ids(true));
        if !characters.is_empty() {
            let select = character::Entity::find().filter(place(characters)).order_by_asc(col("id"));
            let select = if lock { select.lock(LockType::NoKeyUpdate) } else { select };
            for row in select.all(tx).await? {
                add(Who::Character(row.id.0), row.version, row.ai_lock, sheet::of_character(row));
            }
        }
        if !npcs.is_empty() {
            let select = npc::Entity::find().filter(place(npcs)).order_by_asc(col("id"));
            let select = if lock { select.lock(LockType::NoKeyUpdate) } else { select };
            for row in select.all(tx).await? {
                add(Who::Npc(row.id.0), row.version, row.ai_lock, sheet::of_npc(row));
            }
        }
        Ok(Self { members, ended: Vec::new() })
    }

    /// Participants of a fight, as they are in it. [`Cast::write`] does not write them.
    #[must_use]
    pub fn of_fight(fight: &Encounter, who: &[Who]) -> Self {
        let member = |who: &Who| {
            let Who::Participant(at) = *who else { return None };
            let creature = Creature::clone(&fight.participants().get(at)?.creature);
            Some(Member {
                who: *who,
                version: 0,
                now: creature.clone(),
                before: creature,
                marked: false,
                is_locked: false,
            })
        };
        Self { members: who.iter().filter_map(member).collect(), ended: Vec::new() }
    }

    /// A record, for direct changes; `None` if it no longer exists.
    pub fn record(&mut self, who: Who) -> Option<Record<'_>> {
        self.members.iter_mut().find(|m| m.who == who).map(|m| Record {
            version: m.version,
            is_locked: m.is_locked,
            now: &mut m.now,
        })
    }

    /// Writes this record in any case, so that its version rises.
    pub fn mark(&mut self, who: Who) {
        self.members.iter_mut().filter(|m| m.who == who).for_each(|m| m.marked = true);
    }

    /// A creature before anything is resolved.
    ///
    /// # Errors
    /// `not_found` if it does not take part.
    pub fn creature(&self, who: Who) -> Result<&Creature> {
        let member = self.members.iter().find(|m| m.who == who);
        member.map(|m| &m.before).ok_or_else(|| Error::not_found("character or NPC"))
    }

    /// Applies changes one by one. When concentration on a spell ends, the spell ends on everybody in the cast now, and on
    /// others when the cast is written.
    pub fn change<'a>(&mut self, changes: impl Iterator<Item = &'a StateChange>) {
        for change in changes {
            for member in &mut self.members {
                apply(&mut member.now, std::slice::from_ref(change));
            }
            if let StateChange::EndConcentration { creature, spell } = change {
                self.end_spell(creature, spell);
            }
        }
    }

    fn end_spell(&mut self, caster: &str, spell: &str) {
        let Some(caster) = self.members.iter().find(|m| m.before.key() == caster).map(|m| &m.before) else { return };
        let sources = vec![caster.id.to_lowercase(), caster.slug.to_lowercase(), caster.name.to_lowercase()];
        let puts = puts(caster, spell);
        let from_spell = |name: &str, source: Option<&str>| {
            source.is_some_and(|s| sources.iter().any(|known| same(known, s))) && puts.iter().any(|p| same(p, name))
        };
        for member in &mut self.members {
            member.now.effects.retain(|e| !from_spell(&e.name, e.source.as_deref()));
            member.now.conditions.retain(|c| !from_spell(&c.name, c.source.as_deref()));
        }
        self.ended.push((sources, puts));
    }

    /// Checks that no locked record changes.
    fn obey_locks(&self) -> Result<()> {
        match self.members.iter().find(|m| m.is_locked && (m.marked || m.before != m.now)) {
            Some(locked) => Err(actors::locked(&locked.before.name)),
            None => Ok(()),
        }
    }

    /// Writes the changes: one statement for each row, and one per table for each spell that ended. An AI's tool obeys locks: a locked record
    /// does not change, and a spell that ends elsewhere stays on one.
    ///
    /// # Errors
    /// `locked`; database errors.
    pub async fn write(&self, tx: &TenantTx, campaign: Uuid, obeys_locks: bool) -> Result<()> {
        if obeys_locks {
            self.obey_locks()?;
        }
        for member in &self.members {
            match member.who {
                Who::Character(id) => write_character(tx, id, member).await?,
                Who::Npc(id) => write_npc(tx, id, member).await?,
                Who::Participant(_) => {}
            }
        }
        let here: Vec<Uuid> = self.members.iter().map(|m| m.who.id()).collect();
        for (sources, puts) in &self.ended {
            for table in ["character", "npc"] {
                end_on_others(tx, campaign, (table, obeys_locks), &here, sources, puts).await?;
            }
        }
        Ok(())
    }
}

/// The names of what a spell puts on its targets, in lower case: the spell's own name, and those of its effect and
/// condition.
fn puts(caster: &Creature, spell: &str) -> Vec<String> {
    let rule = rules::srd::SPELLS.iter().find(|rule| same(rule.name, spell));
    let own = caster.spells.iter().find_map(|known| match known {
        KnownSpell::Own(own) if same(&own.name, spell) => Some(own),
        _ => None,
    });
    let of_table = rule.into_iter().flat_map(|r| [r.effect, r.condition]);
    let of_sheet = own.into_iter().flat_map(|o| [o.effect.as_deref(), o.condition.as_deref()]);
    let names = std::iter::once(Some(spell)).chain(of_table).chain(of_sheet);
    names.flatten().map(str::to_lowercase).collect()
}

async fn write_character(tx: &TenantTx, id: Uuid, member: &Member) -> Result<()> {
    let mut columns = sheet::character_columns(&member.before, &member.now)?;
    if columns.is_empty() {
        if !member.marked {
            return Ok(());
        }
        columns.insert("hp".to_owned(), member.now.hp.into());
    }
    // The column names come from `sheet`, never from a client.
    let list = |prefix: &str| columns.keys().map(|c| format!("{prefix}{c}")).collect::<Vec<_>>().join(", ");
    let sql = format!(
        "UPDATE character t SET ({}) = ROW ({}) FROM jsonb_populate_record(NULL::\"character\", $1) r \
         WHERE t.tenant_id = $2 AND t.id = $3",
        list(""),
        list("r.")
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(Value::Object(columns))
        .bind(tx.tenant())
        .bind(id)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}

async fn write_npc(tx: &TenantTx, id: Uuid, member: &Member) -> Result<()> {
    let (stats, mut columns): (Map<_, _>, Map<_, _>) = sheet::npc_columns(&member.before, &member.now)?;
    if stats.is_empty() && columns.is_empty() && !member.marked {
        return Ok(());
    }
    sqlx::query(
        "UPDATE npc SET stats = stats || $1, conditions = coalesce($2, conditions), effects = coalesce($3, effects) \
         WHERE tenant_id = $4 AND id = $5",
    )
    .bind(Value::Object(stats))
    .bind(columns.remove("conditions"))
    .bind(columns.remove("effects"))
    .bind(tx.tenant())
    .bind(id)
    .execute(&mut *tx.connection().await)
    .await?;
    Ok(())
}

/// Ends a spell's effects on everybody in the campaign who is not in the cast.
async fn end_on_others(
    tx: &TenantTx,
    campaign: Uuid,
    (table, obeys_locks): (&'static str, bool),
    here: &[Uuid],
    sources: &[String],
    puts: &[String],
) -> Result<()> {
    let of_spell = "lower(e ->> 'source') = ANY ($4) AND lower(e ->> 'name') = ANY ($5)";
    let left = |column: &str| {
        format!(
            "{column} = (SELECT coalesce(jsonb_agg(e ORDER BY n), '[]') FROM jsonb_array_elements({column}) \
             WITH ORDINALITY AS a (e, n) WHERE ({of_spell}) IS NOT TRUE)"
        )
    };
    let any = |column: &str| format!("EXISTS (SELECT FROM jsonb_array_elements({column}) AS a (e) WHERE {of_spell})");
    let sql = format!(
        "UPDATE {table} SET {}, {} WHERE tenant_id = $1 AND campaign_id = $2 AND id <> ALL ($3) AND NOT (ai_lock AND {obeys_locks}) AND ({} OR {})",
        left("effects"),
        left("conditions"),
        any("effects"),
        any("conditions"),
    );
    sqlx::query(AssertSqlSafe(sql))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(here)
        .bind(sources)
        .bind(puts)
        .execute(&mut *tx.connection().await)
        .await?;
    Ok(())
}
