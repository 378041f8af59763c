//! Who takes part in something the rules resolve: found by name, locked in one order, written back.
//!
//! Characters are locked before NPCs and each kind by id, by everybody, so that two resolutions never wait for each other
//! in a circle. It must never guess whom an ambiguous name means: that is an impossible outcome with the candidates.

use entity::{character, npc};
use rules::{
    encounter::Encounter,
    resolve::{StateChange, apply},
    sheet::{Creature, KnownSpell},
    srd::same,
};
use sea_orm::{EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::ExprTrait};
use serde_json::{Map, Value};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::sheet;
use crate::{
    error::{Error, Result},
    http::resource::col,
    stored::{self, Columns},
    tenancy::TenantTx,
};

/// Names listed in an impossible outcome at most.
const CANDIDATES_MAX: usize = 20;

/// Somebody with a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Character(Uuid),
    Npc(Uuid),
    /// Who takes part in a fight, by its place there; the cast is the fight's then.
    Participant(usize),
}

impl Who {
    /// The id of the row, if there is one.
    #[must_use]
    pub fn id(self) -> Uuid {
        match self {
            Self::Character(id) | Self::Npc(id) => id,
            Self::Participant(_) => Uuid::nil(),
        }
    }
}

/// Whom a name means.
pub enum Named {
    One(Who),
    /// Nobody, or several; why, as an impossible outcome says it.
    Unclear(String),
}

/// Finds characters or NPCs of the campaign, in the order of their names: by id or slug, else by name: exactly, then in any
/// case, then the only one whose name holds what was written or is held by it. One statement, and one more for each that is no
/// id or slug.
///
/// # Errors
/// Those of the database.
pub async fn named_all(tx: &TenantTx, campaign: Uuid, wanted: &[&str]) -> Result<Vec<Named>> {
    match named_by(tx, campaign, wanted, None).await? {
        Met::Here(named) => Ok(named),
        Met::Fighting(_) => Err(Error::internal("nobody's fight was found")),
    }
}

/// Whom names mean to whoever acts.
pub enum Met {
    Here(Vec<Named>),
    /// Who acts stands in this fight: it says who is there.
    Fighting(Uuid),
}

/// The same for somebody who acts, unless that one stands in a fight that goes on. It costs the same.
///
/// # Errors
/// Those of the database.
pub async fn named_by(tx: &TenantTx, campaign: Uuid, wanted: &[&str], actor: Option<Uuid>) -> Result<Met> {
    let rows = sqlx::query(
        "SELECT w.n, a.actor_id, a.kind, (SELECT m.encounter_id FROM encounter_member m \
             JOIN encounter e ON e.tenant_id = m.tenant_id AND e.id = m.encounter_id WHERE m.tenant_id = $1 AND m.record_id = $5 \
               AND e.status = 'active' AND NOT e.hidden ORDER BY e.id DESC LIMIT 1) AS fight \
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

/// Who is called so: exactly, or but for the case, or with words more or fewer. Parts of words are nobody's name.
async fn by_name(tx: &TenantTx, campaign: Uuid, wanted: &str) -> Result<Named> {
    let rows = sqlx::query(
        "WITH known AS (SELECT 'character' AS kind, id, slug, name FROM character WHERE tenant_id = $1 AND campaign_id = $2 \
           UNION ALL SELECT 'npc', id, slug, name FROM npc WHERE tenant_id = $1 AND campaign_id = $2), \
         compared AS (SELECT *, name = $3 AS exact, lower($3) IN (lower(name), slug) AS same, \
             position(format(' %s ', lower($3)) IN format(' %s ', lower(name))) > 0 \
             OR position(format(' %s ', lower(name)) IN format(' %s ', lower($3))) > 0 AS holds FROM known) \
         SELECT * FROM compared WHERE holds OR same ORDER BY exact DESC, same DESC, name, slug LIMIT $4",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(wanted)
    .bind(i64::try_from(CANDIDATES_MAX).unwrap_or(20))
    .fetch_all(&mut *tx.connection().await)
    .await?;
    let known = stored::each(&rows, |row| {
        // Called exactly so, or but for the case, or with words more or fewer.
        let (exact, same): (bool, bool) = (row.read("exact")?, row.read("same")?);
        let tier = if exact { 0 } else { 2 - i32::from(same) };
        let called = format!("{} ({})", row.read::<&str>("name")?, row.read::<&str>("slug")?);
        Ok((tier, who(row.read("kind")?, row.read("id")?), called))
    });
    let best = known.iter().map(|(tier, ..)| *tier).min();
    let fitting: Vec<_> = known.iter().filter(|(tier, ..)| Some(*tier) == best).collect();
    Ok(match fitting.as_slice() {
        [] => Named::Unclear(format!("there is nobody called \"{wanted}\" here")),
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
    /// Its version rises even if nothing else changes.
    marked: bool,
}

/// A record as it stands, and the version it was read at.
pub struct Record<'a> {
    pub version: i64,
    pub now: &'a mut Creature,
}

/// Everybody who takes part, as they stood and as they stand.
pub struct Cast {
    members: Vec<Member>,
    /// Spells that ended: who concentrated on them, and what the spell had put on others.
    ended: Vec<(Vec<String>, Vec<String>)>,
}

impl Cast {
    /// Reads everybody; locks them unless nothing is to be changed.
    ///
    /// # Errors
    /// `not_found` if somebody is gone by now.
    pub async fn read(tx: &TenantTx, campaign: Uuid, who: &[Who], lock: bool) -> Result<Self> {
        let cast = Self::read_those_left(tx, campaign, who, lock).await?;
        if who.iter().all(|w| cast.members.iter().any(|m| m.who == *w)) {
            return Ok(cast);
        }
        Err(Error::not_found("character or NPC"))
    }

    /// As [`Cast::read`], without those who are gone.
    ///
    /// # Errors
    /// Those of the database.
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
        let mut add = |who, version, creature: Creature| {
            members.push(Member { who, version, now: creature.clone(), before: creature, marked: false })
        };
        let (characters, npcs) = (ids(false), ids(true));
        if !characters.is_empty() {
            let select = character::Entity::find().filter(place(characters)).order_by_asc(col("id"));
            let select = if lock { select.lock_exclusive() } else { select };
            for row in select.all(tx).await? {
                add(Who::Character(row.id.0), row.version, sheet::of_character(row));
            }
        }
        if !npcs.is_empty() {
            let select = npc::Entity::find().filter(place(npcs)).order_by_asc(col("id"));
            let select = if lock { select.lock_exclusive() } else { select };
            for row in select.all(tx).await? {
                add(Who::Npc(row.id.0), row.version, sheet::of_npc(row));
            }
        }
        Ok(Self { members, ended: Vec::new() })
    }

    /// Those who take part in a fight, as they stand there. Nothing of it is written from here.
    #[must_use]
    pub fn of_fight(fight: &Encounter, who: &[Who]) -> Self {
        let member = |who: &Who| {
            let Who::Participant(at) = *who else { return None };
            let creature = Creature::clone(&fight.participants().get(at)?.creature);
            Some(Member { who: *who, version: 0, now: creature.clone(), before: creature, marked: false })
        };
        Self { members: who.iter().filter_map(member).collect(), ended: Vec::new() }
    }

    /// Somebody's record, to be changed by hand; none for who is gone.
    pub fn record(&mut self, who: Who) -> Option<Record<'_>> {
        self.members.iter_mut().find(|m| m.who == who).map(|m| Record { version: m.version, now: &mut m.now })
    }

    /// That somebody's record is written in any case: its version says that something was settled.
    pub fn mark(&mut self, who: Who) {
        self.members.iter_mut().filter(|m| m.who == who).for_each(|m| m.marked = true);
    }

    /// Somebody as they stand before anything is resolved.
    ///
    /// # Errors
    /// `not_found` for who takes no part.
    pub fn creature(&self, who: Who) -> Result<&Creature> {
        let member = self.members.iter().find(|m| m.who == who);
        member.map(|m| &m.before).ok_or_else(|| Error::not_found("character or NPC"))
    }

    /// Makes changes, one after the other. A spell whose concentration ends goes from everybody who takes part; from others
    /// when this is written.
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

    /// Writes what changed: one statement for each row, and one a table for a spell that ended.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn write(&self, tx: &TenantTx, campaign: Uuid) -> Result<()> {
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
                end_on_others(tx, campaign, table, &here, sources, puts).await?;
            }
        }
        Ok(())
    }
}

/// The names of what a spell puts on its targets, in lower case: its own, and those of its effect and condition.
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
    // The names are those of `sheet`, never a client's.
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

/// Takes what a spell had put on them from everybody of the campaign who takes no part.
async fn end_on_others(
    tx: &TenantTx,
    campaign: Uuid,
    table: &'static str,
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
        "UPDATE {table} SET {}, {} WHERE tenant_id = $1 AND campaign_id = $2 AND id <> ALL ($3) AND ({} OR {})",
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
