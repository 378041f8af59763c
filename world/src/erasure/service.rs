//! Begins an erasure and reports its progress.

use std::time::Duration;

use serde_json::Value;
use sqlx::postgres::PgRow;
use uuid::Uuid;

use super::{
    EraseParams, Erasure, Kind, Progress,
    steps::{self, carry_on},
    words::{Words, prose},
};
use base::{
    clock,
    error::{Code, Error, Result},
    stored::Columns,
};
use db::{
    retry::{self, BRIEF},
    tenancy::TenantTx,
};
use edge::{
    caller::{Caller, Scope},
    http::{
        etag::Expected,
        paging,
        resource::{Ref, campaign_id},
    },
    state::Edge,
    users::{email, service as users},
};

/// How long the request that begins an erasure waits for it to finish.
const WAIT_MAX: Duration = Duration::from_secs(4);
/// The largest number of additional words.
const ALSO_MAX: usize = 10;
const ALSO_CHARS_MAX: usize = 200;
/// The largest number of forks that one erasure searches.
const FORKS_MAX: i64 = 1000;

/// What to erase.
struct NewErasure {
    kind: Kind,
    /// None means all campaigns of the tenant.
    campaigns: Option<Vec<Uuid>>,
    subjects: Vec<Uuid>,
    words: Vec<String>,
    prose: Vec<String>,
}

/// Erases a character of a campaign. If it takes long, the returned erasure is not done yet and continues by itself.
///
/// # Errors
/// `forbidden` without `gm` and `admin`, `not_found`, `precondition_failed`, `bad_request` for the parameters.
pub async fn character(
    app: &Edge,
    caller: &Caller,
    expected: &Expected,
    (c, x): (&str, &str),
    asked: &EraseParams,
) -> Result<Erasure> {
    may_erase(caller)?;
    let erasure = retry::repeat(BRIEF, async || begin_character(app, caller, expected, (c, x), asked).await).await?;
    after(app, caller, erasure).await
}

/// Erases a user of the tenant. Their account in the tenant is removed at once, their words as for a character.
///
/// # Errors
/// As for [`character`]; `conflict` for the last owner.
pub async fn user(app: &Edge, caller: &Caller, expected: &Expected, x: &str, asked: &EraseParams) -> Result<Erasure> {
    may_erase(caller)?;
    let erasure = retry::repeat(BRIEF, async || begin_user(app, caller, expected, x, asked).await).await?;
    after(app, caller, erasure).await
}

/// Checks that the caller may erase: an erasure reaches secrets and cannot be undone.
fn may_erase(caller: &Caller) -> Result<()> {
    caller.needs_game_master("Erasing somebody")?;
    caller.needs(Scope::Admin, "Erasing somebody")?;
    match caller.campaign {
        Some(_) => Err(Error::new(
            Code::Forbidden,
            "This token is for one campaign only, but an erasure also changes stored answers of the tenant.",
        )),
        None => Ok(()),
    }
}

/// Waits a little for an erasure that has begun. If it takes longer, it continues by itself.
async fn after(app: &Edge, caller: &Caller, erasure: Uuid) -> Result<Erasure> {
    let carried = carry_on(&app.pool, caller.tenant_id(), erasure, WAIT_MAX).await;
    if let Err(error) = &carried {
        tracing::warn!(%erasure, %error, "an erasure will continue later");
    }
    app.forget(caller.tenant_id());
    find(&TenantTx::read(&app.pool, caller.tenant_id()).await?, erasure).await
}

/// An erasure of the tenant.
///
/// # Errors
/// `not_found`.
pub async fn find(tx: &TenantTx, erasure: Uuid) -> Result<Erasure> {
    let row = sqlx::query("SELECT * FROM erasure WHERE tenant_id = $1 AND id = $2")
        .bind(tx.tenant())
        .bind(erasure)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    view(&row.ok_or_else(|| Error::not_found("erasure"))?)
}

fn view(row: &PgRow) -> Result<Erasure> {
    let done_at: Option<time::OffsetDateTime> = row.read("done_at")?;
    Ok(Erasure {
        id: row.read("id")?,
        kind: if row.read::<&str>("kind")? == Kind::User.as_str() { Kind::User } else { Kind::Character },
        status: if done_at.is_some() { Progress::Done } else { Progress::Running },
        rows: row.read("rows")?,
        pass: row.read("pass")?,
        created_at: row.read("created_at")?,
        done_at,
    })
}

/// The newest erasure of a person, if there is one. With `is_under_way`, only one that is not finished.
async fn of_subject(tx: &TenantTx, kind: Kind, subject: Uuid, is_under_way: bool) -> Result<Option<Uuid>> {
    let row = sqlx::query(
        "SELECT id FROM erasure WHERE tenant_id = $1 AND kind = $2 AND $3 = ANY (subject_ids) \
         AND (done_at IS NULL OR NOT $4) ORDER BY id DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(kind.as_str())
    .bind(subject)
    .bind(is_under_way)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read("id")).transpose()
}

async fn begin_character(
    app: &Edge,
    caller: &Caller,
    expected: &Expected,
    (c, x): (&str, &str),
    asked: &EraseParams,
) -> Result<Uuid> {
    let also = also(asked)?;
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(c)).await?;
    let named = Ref::parse(x);
    let (id, row) = match (lock_character(&tx, campaign, &named).await?, named) {
        (Some((id, row)), _) => {
            // A repeated request during the erasure asks for the same one. The row's version has risen meanwhile.
            if let Some(known) = of_subject(&tx, Kind::Character, id, true).await? {
                return Ok(known);
            }
            expected.check(row.get("version").and_then(Value::as_i64).unwrap_or_default())?;
            (id, row)
        }
        (None, Ref::Id(id)) => match of_subject(&tx, Kind::Character, id, false).await? {
            Some(known) => return Ok(known),
            // The character was deleted earlier, without an erasure.
            None => (id, last_image(&tx, campaign, id).await?.ok_or_else(|| Error::not_found("character"))?),
        },
        (None, Ref::Slug(_)) => return Err(Error::not_found("character")),
    };
    let mut words = Words::default();
    for member in ["name", "slug", "player_name", "external_ref"] {
        words.add_member(&row, member);
    }
    also.iter().for_each(|word| words.add(word));
    let mut texts = Vec::new();
    prose(&row, &mut texts);
    let mut wanted = NewErasure {
        kind: Kind::Character,
        campaigns: Some(vec![campaign]),
        subjects: vec![id],
        words: words.into_vec(),
        prose: texts,
    };
    if asked.forks {
        add_forks(&tx, campaign, id, &mut wanted).await?;
    }
    begin(app, caller, tx, wanted).await
}

/// Finds an existing character and locks it. Returns its whole row.
async fn lock_character(tx: &TenantTx, campaign: Uuid, named: &Ref) -> Result<Option<(Uuid, Value)>> {
    let (id, slug) = match named {
        Ref::Id(id) => (Some(*id), None),
        Ref::Slug(slug) => (None, Some(slug.as_str())),
    };
    let row = sqlx::query(
        "SELECT id, to_jsonb(c) AS image FROM character c WHERE tenant_id = $1 AND campaign_id = $2 AND (id = $3 OR slug = $4) FOR UPDATE",
    )
    .bind(tx.tenant())
    .bind(campaign)
    .bind(id)
    .bind(slug)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| Ok((row.read("id")?, row.read("image")?))).transpose()
}

/// The last content of a deleted character, from the journal.
async fn last_image(tx: &TenantTx, campaign: Uuid, id: Uuid) -> Result<Option<Value>> {
    let row = sqlx::query(
        "SELECT coalesce(before, after) AS image FROM journal \
         WHERE tenant_id = $1 AND row_id = $2 AND campaign_id = $3 AND table_name = 'character' ORDER BY seq DESC LIMIT 1",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(campaign)
    .fetch_optional(&mut *tx.connection().await)
    .await?;
    row.map(|row| row.read("image")).transpose()
}

/// Adds the forks of the campaign, and forks of those, with the character's copy in each.
async fn add_forks(tx: &TenantTx, campaign: Uuid, character: Uuid, wanted: &mut NewErasure) -> Result<()> {
    let rows = sqlx::query("SELECT id, character_id FROM erase_forks($1, $2, $3)")
        .bind(campaign)
        .bind(character)
        .bind(i32::try_from(FORKS_MAX + 1).unwrap_or(i32::MAX))
        .fetch_all(&mut *tx.connection().await)
        .await?;
    if rows.len() > usize::try_from(FORKS_MAX).unwrap_or(usize::MAX) {
        return Err(Error::new(
            Code::Conflict,
            format!("More than {FORKS_MAX} campaigns were forked from this one. Delete some of them first."),
        ));
    }
    for row in &rows {
        wanted.campaigns.get_or_insert_default().push(row.read("id")?);
        wanted.subjects.push(row.read("character_id")?);
    }
    Ok(())
}

async fn begin_user(app: &Edge, caller: &Caller, expected: &Expected, x: &str, asked: &EraseParams) -> Result<Uuid> {
    let also = also(asked)?;
    if asked.forks {
        return Err(paging::bad("forks", "applies only to characters: a user is erased in every campaign"));
    }
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let gone = match users::leave_in(&tx, caller, expected, x).await {
        Ok(user) => user,
        Err(error) if error.code == Code::NotFound => {
            let known = match Uuid::try_parse(x) {
                Ok(id) => of_subject(&tx, Kind::User, id, false).await?,
                Err(_) => None,
            };
            return known.ok_or(error);
        }
        Err(error) => return Err(error),
    };
    let mut words = Words::default();
    words.add(&gone.email);
    words.add(&gone.email.replace('@', "%40"));
    // A name that was derived from the email address may be a common word, such as `owner`.
    if gone.name != email::name_of(&gone.email) {
        words.add(&gone.name);
    }
    also.iter().for_each(|word| words.add(word));
    let wanted = NewErasure {
        kind: Kind::User,
        campaigns: None,
        subjects: vec![gone.id],
        words: words.into_vec(),
        prose: Vec::new(),
    };
    begin(app, caller, tx, wanted).await
}

fn also(asked: &EraseParams) -> Result<Vec<String>> {
    let words: Vec<String> = asked
        .also
        .iter()
        .flat_map(|list| list.split(','))
        .map(|word| word.trim().to_owned())
        .filter(|word| !word.is_empty())
        .collect();
    if words.len() > ALSO_MAX
        || words.iter().any(|word| word.chars().count() > ALSO_CHARS_MAX || word.chars().count() < 2)
    {
        let rule = format!("must be at most {ALSO_MAX} words of 2 to {ALSO_CHARS_MAX} characters, separated by commas");
        return Err(paging::bad("also", &rule));
    }
    Ok(words)
}

/// Records the erasure, and asks the person's turns to stop.
async fn begin(app: &Edge, caller: &Caller, tx: TenantTx, wanted: NewErasure) -> Result<Uuid> {
    let id = clock::id();
    sqlx::query(
        "INSERT INTO erasure (tenant_id, id, kind, campaign_ids, subject_ids, author, words) VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(tx.tenant())
    .bind(id)
    .bind(wanted.kind.as_str())
    .bind(&wanted.campaigns)
    .bind(&wanted.subjects)
    .bind(caller.author())
    .bind(&wanted.words)
    .execute(&mut *tx.connection().await)
    .await?;
    sqlx::query("SELECT erase_note($1, $2, text) FROM unnest($3::text[]) AS text")
        .bind(tx.tenant())
        .bind(id)
        .bind(&wanted.prose)
        .execute(&mut *tx.connection().await)
        .await?;
    let stopped = sqlx::query(
        "UPDATE turn SET cancel_requested = true WHERE tenant_id = $1 AND (player_id = ANY ($2) OR entity_id = ANY ($2)) \
         AND status IN ('queued', 'running') RETURNING id",
    )
    .bind(tx.tenant())
    .bind(&wanted.subjects)
    .fetch_all(&mut *tx.connection().await)
    .await?;
    tx.commit().await?;
    for row in &stopped {
        app.cancel(row.read("id")?);
    }
    app.forget(caller.tenant_id());
    tracing::info!(erasure = %id, kind = wanted.kind.as_str(), "an erasure began");
    Ok(id)
}

/// Continues an erasure until it is finished, for the command line.
///
/// # Errors
/// Those of the database.
pub async fn finish(app: &Edge, tenant: Uuid, erasure: Uuid) -> Result<Erasure> {
    loop {
        let step = carry_on(&app.pool, tenant, erasure, Duration::from_secs(60)).await?;
        let view = find(&TenantTx::read(&app.pool, tenant).await?, erasure).await?;
        if view.status == Progress::Done {
            return Ok(view);
        }
        // Another server is working on it.
        if step == steps::Step::Over {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

/// Begins an erasure for the command line.
///
/// # Errors
/// As for [`character`] and [`user`].
pub async fn begun(app: &Edge, caller: &Caller, whom: &Whom<'_>, asked: &EraseParams) -> Result<Uuid> {
    match whom {
        Whom::Character { campaign, character } => {
            begin_character(app, caller, &Expected::any(), (campaign, character), asked).await
        }
        Whom::User(email) => begin_user(app, caller, &Expected::any(), email, asked).await,
    }
}

/// The person that the command line names.
pub enum Whom<'a> {
    Character { campaign: &'a str, character: &'a str },
    User(&'a str),
}
