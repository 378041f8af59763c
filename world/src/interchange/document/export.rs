//! Exports a campaign document. Its rows are read page by page within one snapshot and never held in memory as a whole.

use std::collections::HashMap;

use entity::{Seq, memory, message, owner};
use sea_orm::{EntityTrait, QueryFilter, QueryOrder, QuerySelect, sea_query::ExprTrait};
use serde::Serialize;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{BehaviorDocument, FORMAT, HolderDocument, MemoryDocument, MessageDocument, ROWS_MAX, VERSION};
use crate::{
    campaigns::Campaigns,
    characters::Characters,
    interchange::{
        book::Members,
        names::Names,
        out::members,
        pieces::{self, Pieces},
        rows,
    },
    lore::LoreEntries,
    messages::prompt_text::with_words,
    npcs::Npcs,
    owners::Owners,
    scenes::Scenes,
};
use base::{
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{pool::Pool, tenancy::TenantTx};
use edge::{
    caller::Caller,
    http::{
        budget,
        resource::{self, Place, Ref, Resource, campaign_id, col},
    },
};

/// The number of rows in one page.
const PAGE_ROWS: u64 = 200;

/// The list that is being written, and the position in it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Owners(String),
    Characters(String),
    Npcs(String),
    Scenes(String),
    Lore(String),
    /// After the memory with this number.
    Memories(i64),
    /// After the message with this number.
    Messages(i64),
    End,
}

/// A document that is being written.
pub struct Export {
    tx: TenantTx,
    caller: Caller,
    campaign: Uuid,
    pub slug: String,
    names: Names,
    scenes: HashMap<Uuid, String>,
    broadcasts: HashMap<Uuid, u32>,
    exchanges: HashMap<Uuid, u32>,
    /// The index of each message.
    places: HashMap<Seq, u32>,
    part: Part,
    /// Whether the list already has a row.
    is_begun: bool,
    head: Option<String>,
}

impl Export {
    /// Begins an export. Errors are found here, before anything is sent.
    ///
    /// # Errors
    /// `not_found` for the campaign, `conflict` while another export of the tenant is running, `payload_too_large` for
    /// a document that could not be imported again.
    pub async fn begin(pool: &Pool, caller: &Caller, c: &str) -> Result<Self> {
        let tx = TenantTx::read_at_one_moment(pool, caller.tenant_id()).await?;
        let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
        pieces::alone(&tx).await?;
        refuse_too_large(&tx, campaign).await?;
        let (names, model, scenes) = {
            let place = Place { tx: &tx, campaign, caller };
            let model = resource::find::<Campaigns>(&tx, caller, None, &Ref::Id(campaign)).await?;
            (Names::load(&place).await?, model, scenes(&place).await?)
        };
        let slug = model.slug.clone();
        let own = Value::Object(members::<Campaigns>(model, &names)?);
        let head = format!("{{\"format\":\"{FORMAT}\",\"version\":{VERSION},\n\"campaign\":{own}");
        Ok(Self {
            tx,
            caller: caller.clone(),
            campaign,
            slug,
            names,
            scenes,
            broadcasts: HashMap::new(),
            exchanges: HashMap::new(),
            places: HashMap::new(),
            part: Part::Owners(String::new()),
            is_begun: false,
            head: Some(head),
        })
    }

    fn turn_to(&mut self, part: Part) {
        self.part = part;
        self.is_begun = false;
    }

    fn open(&mut self, out: &mut String, name: &str) {
        if !self.is_begun {
            out.push_str(",\n\"");
            out.push_str(name);
            out.push_str("\":[");
        }
    }

    fn row(&mut self, out: &mut String, row: &impl Serialize) -> Result<()> {
        out.push_str(if self.is_begun { ",\n" } else { "\n" });
        self.is_begun = true;
        out.push_str(&serde_json::to_string(row).map_err(Error::internal)?);
        Ok(())
    }

    /// Writes a page of one kind. Returns the slug to continue after, or none when the list is complete.
    async fn page<R: Resource>(
        &mut self,
        out: &mut String,
        name: &str,
        after: &str,
        members: impl Fn(R::Model, &Names) -> Result<Members>,
    ) -> Result<Option<String>> {
        let place = Place { tx: &self.tx, campaign: self.campaign, caller: &self.caller };
        let (models, is_full) = rows::page::<R>(&place, after, PAGE_ROWS).await?;
        self.open(out, name);
        let mut last = None;
        for model in models {
            let members = members(model, &self.names)?;
            last = members.get("slug").and_then(Value::as_str).map(ToOwned::to_owned);
            self.row(out, &members)?;
        }
        if !is_full {
            out.push(']');
            return Ok(None);
        }
        Ok(last)
    }

    async fn memories(&mut self, out: &mut String, after: i64) -> Result<Option<i64>> {
        let select = memory::Entity::find()
            .filter(col("tenant_id").eq(self.tx.tenant()))
            .filter(col("campaign_id").eq(self.campaign))
            .filter(col("seq").gt(after))
            .order_by(col("seq"), sea_orm::Order::Asc)
            .limit(PAGE_ROWS);
        let (rows, is_cut) = budget::rows(&self.tx, select).await?;
        self.open(out, "memories");
        let last = rows.last().map(|row| row.seq).filter(|_| is_cut || rows.len() as u64 == PAGE_ROWS);
        for m in rows {
            let (Some(holder), Some(player)) = (self.names.of(m.holder_id), self.names.of(m.subject_id)) else {
                continue;
            };
            let next = u32::try_from(self.broadcasts.len()).unwrap_or(u32::MAX);
            let document = MemoryDocument {
                holder: HolderDocument { kind: m.holder_type, slug: holder.to_owned() },
                player: player.to_owned(),
                text: m.text,
                game_time: m.game_time,
                pinned: m.pinned,
                source: m.source,
                broadcast: m.broadcast_id.map(|id| *self.broadcasts.entry(id).or_insert(next)),
                created_at: Some(m.created_at),
                extensions: m.extensions.0,
                external_ref: m.external_ref,
            };
            self.row(out, &document)?;
        }
        if last.is_none() {
            out.push(']');
        }
        Ok(last)
    }

    async fn messages(&mut self, out: &mut String, after: i64) -> Result<Option<i64>> {
        let select = message::Entity::find()
            .filter(col("tenant_id").eq(self.tx.tenant()))
            .filter(col("campaign_id").eq(self.campaign))
            .filter(col("seq").gt(after))
            .order_by(col("seq"), sea_orm::Order::Asc)
            .limit(PAGE_ROWS);
        let (rows, is_cut) = budget::rows(&self.tx, select).await?;
        self.open(out, "messages");
        let last = rows.last().map(|row| row.seq.0).filter(|_| is_cut || rows.len() as u64 == PAGE_ROWS);
        for m in rows {
            let place = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
            self.places.insert(m.seq, place);
            let document = self.message(m);
            self.row(out, &document)?;
        }
        if last.is_none() {
            out.push(']');
        }
        Ok(last)
    }

    fn message(&mut self, m: message::Model) -> MessageDocument {
        let entity = m.entity_id.and_then(|id| self.names.of(id)).map(ToOwned::to_owned);
        // The messages of a session's AI belong to the session.
        let of_entity = entity.is_some();
        let next = u32::try_from(self.exchanges.len()).unwrap_or(u32::MAX);
        // A whisper to an actor that no longer exists becomes a whisper to the game master. Otherwise everybody could
        // read it.
        let mut whisper_to: Vec<String> = Vec::new();
        for to in m.whisper_to.0 {
            let to = self.names.slug_of(&to).unwrap_or("gm");
            if !whisper_to.iter().any(|known| known == to) {
                whisper_to.push(to.to_owned());
            }
        }
        MessageDocument {
            kind: m.kind,
            author: m.author,
            speaker: m.speaker.0,
            prompt_text: m.prompt_text.filter(|_| of_entity).map(|text| with_words(text, &m.content)),
            content: m.content,
            flavor: m.flavor,
            roll: m.roll.map(|roll| roll.0),
            scene: m.scene_id.and_then(|id| self.scenes.get(&id).cloned()),
            player: m.player_id.and_then(|id| self.names.of(id)).map(ToOwned::to_owned),
            entity,
            whisper_to,
            blind: m.blind,
            exchange: m.turn_id.filter(|_| of_entity).map(|id| *self.exchanges.entry(id).or_insert(next)),
            window_start: m.window_start.filter(|_| of_entity).and_then(|seq| self.places.get(&seq).copied()),
            created_at: Some(m.created_at),
            extensions: m.extensions.0,
            external_ref: m.external_ref,
        }
    }
}

impl Pieces for Export {
    async fn next(&mut self) -> Result<Option<String>> {
        let mut out = self.head.take().unwrap_or_default();
        match self.part.clone() {
            Part::Owners(after) => match self.page::<Owners>(&mut out, "owners", &after, owner_members).await? {
                Some(last) => self.part = Part::Owners(last),
                None => self.turn_to(Part::Characters(String::new())),
            },
            Part::Characters(after) => {
                match self.page::<Characters>(&mut out, "characters", &after, members::<Characters>).await? {
                    Some(last) => self.part = Part::Characters(last),
                    None => self.turn_to(Part::Npcs(String::new())),
                }
            }
            Part::Npcs(after) => match self.page::<Npcs>(&mut out, "npcs", &after, npc_members).await? {
                Some(last) => self.part = Part::Npcs(last),
                None => self.turn_to(Part::Scenes(String::new())),
            },
            Part::Scenes(after) => match self.page::<Scenes>(&mut out, "scenes", &after, scene_members).await? {
                Some(last) => self.part = Part::Scenes(last),
                None => self.turn_to(Part::Lore(String::new())),
            },
            Part::Lore(after) => {
                match self.page::<LoreEntries>(&mut out, "lore", &after, members::<LoreEntries>).await? {
                    Some(last) => self.part = Part::Lore(last),
                    None => self.turn_to(Part::Memories(i64::MIN)),
                }
            }
            Part::Memories(after) => match self.memories(&mut out, after).await? {
                Some(last) => self.part = Part::Memories(last),
                None => self.turn_to(Part::Messages(i64::MIN)),
            },
            Part::Messages(after) => match self.messages(&mut out, after).await? {
                Some(last) => self.part = Part::Messages(last),
                None => {
                    out.push_str("}\n");
                    self.part = Part::End;
                }
            },
            Part::End => return Ok(None),
        }
        Ok(Some(out))
    }

    async fn end(self) -> Result<()> {
        self.tx.commit().await
    }
}

/// Rejects a campaign that could not be imported again. Takes one statement.
async fn refuse_too_large(tx: &TenantTx, campaign: Uuid) -> Result<()> {
    let tables = ["owner", "character", "npc", "scene", "lore", "memory", "message"];
    let counts = tables.map(|table| {
        format!(
            "SELECT '{table}' AS kind FROM (SELECT 1 FROM {table} WHERE tenant_id = $1 AND campaign_id = $2 LIMIT $3 + 1) AS counted \
             HAVING count(*) > $3"
        )
    });
    let row = sqlx::query(AssertSqlSafe(counts.join(" UNION ALL ")))
        .bind(tx.tenant())
        .bind(campaign)
        .bind(ROWS_MAX as i64)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    match row {
        None => Ok(()),
        Some(row) => {
            let kind: &str = row.read("kind")?;
            let detail =
                format!("A document may contain at most {ROWS_MAX} rows of a kind; this campaign has more of {kind}.");
            Err(Error::new(Code::PayloadTooLarge, detail))
        }
    }
}

/// An owner with its stored influence and the time of it. The current value grows with time and would differ in each
/// export.
fn owner_members(model: owner::Model, names: &Names) -> Result<Members> {
    let (current, at) = (model.influence_current, model.influence_at);
    let resources = json!(model.resources);
    let mut members = members::<Owners>(model, names)?;
    members.insert("resources".to_owned(), resources);
    if let Some(Value::Object(influence)) = members.get_mut("influence") {
        influence.insert("current".to_owned(), json!(current));
        influence.insert("at".to_owned(), at.format(&Rfc3339).map_err(Error::internal)?.into());
    }
    Ok(members)
}

/// An NPC with its behaviors, which name players by slug.
fn npc_members(model: entity::npc::Model, names: &Names) -> Result<Members> {
    let behaviors = model.behaviors.0.iter().filter_map(|behavior| BehaviorDocument::told(behavior, names));
    let behaviors: Vec<_> = behaviors.collect();
    let mut members = members::<Npcs>(model, names)?;
    members.insert("behaviors".to_owned(), json!(behaviors));
    Ok(members)
}

/// A scene whose tokens refer to actors by slug.
fn scene_members(model: entity::scene::Model, names: &Names) -> Result<Members> {
    let mut members = members::<Scenes>(model, names)?;
    for token in members.get_mut("tokens").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(actor) = token.get_mut("actor_id")
            && let Some(slug) = actor.as_str().and_then(|id| names.slug_of(id))
        {
            *actor = slug.into();
        }
    }
    Ok(members)
}

async fn scenes(place: &Place<'_>) -> Result<HashMap<Uuid, String>> {
    let rows = sqlx::query("SELECT id, slug FROM scene WHERE tenant_id = $1 AND campaign_id = $2")
        .bind(place.tx.tenant())
        .bind(place.campaign)
        .fetch_all(&mut *place.tx.connection().await)
        .await?;
    rows.iter().map(|row| Ok((row.read("id")?, row.read("slug")?))).collect()
}
