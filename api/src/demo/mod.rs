//! The demo: a tenant with a user, an API key and a small town to play in. Creating it again changes nothing that
//! exists, but for the tenant's settings if nobody has changed them.

use std::sync::Arc;

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::{config::Config, database};
use base::{
    error::{Error, Result},
    stored::Columns,
};
use db::tenancy::{self, Actor, Origin, TenantTx};
use edge::{
    auth::service::store_key,
    caller::{Caller, Scope, keys::NewKey},
    tenant_settings,
    tenants::{Features, Settings, Tenant, TenantLimits, commands},
    users::{
        Role,
        operator::{self, Brought, UserRequest},
    },
};
use world::sample;

/// The demo tenant's slug.
pub const TENANT: &str = "demo";
/// The demo campaign's slug.
pub const CAMPAIGN: &str = "port-town";

/// The character that the demo's link plays. It is at the inn, where the innkeeper is.
pub const PLAYER: &str = "lirien_vale";

/// The email of the demo's user of the editor.
pub const EMAIL: &str = "demo@localhost";

/// Credentials that are set in the environment.
#[derive(Default)]
pub struct Fixed<'a> {
    pub api_key: Option<&'a str>,
    pub password: Option<&'a str>,
}

impl<'a> Fixed<'a> {
    /// The credentials from the configuration.
    #[must_use]
    pub fn of(config: &'a Config) -> Self {
        Self { api_key: config.demo_api_key.as_deref(), password: config.demo_password.as_deref() }
    }
}

/// The demo's credentials, for signing in.
pub struct Demo {
    /// A key with every scope; `None` if the demo already had one that the environment does not set.
    pub api_key: Option<String>,
    /// The password of [`EMAIL`]; `None` if it already existed and the environment does not set it.
    pub password: Option<String>,
    /// Whether the tenant was created now.
    pub is_new: bool,
}

/// Creates the demo tenant, its key and its campaign where they are missing.
///
/// # Errors
/// Database errors.
pub async fn ensure(owner_url: &str, pool: &db::pool::Pool, fixed: &Fixed<'_>) -> Result<Demo> {
    let mut owner = database::as_owner(owner_url).await?;
    let found =
        sqlx::query("SELECT tenant_id FROM tenant WHERE slug = $1").bind(TENANT).fetch_optional(&mut owner).await?;
    let (tenant, is_new) = match found {
        Some(row) => (row.read::<Uuid>("tenant_id")?, false),
        None => (tenant_settings::service::create(&mut owner, TENANT, "Demo", &TenantLimits::unlimited()).await?, true),
    };
    allow_all_commands(&mut owner).await?;
    world(pool, tenant).await?;
    let keys =
        sqlx::query("SELECT prefix FROM api_key WHERE tenant_id = $1").bind(tenant).fetch_all(&mut owner).await?;
    let new = match fixed.api_key {
        Some(key) => NewKey::of(key),
        // An interrupted first start may have left the tenant without a key.
        None => keys.is_empty().then(NewKey::generate),
    };
    if let Some(new) = &new
        && !keys.iter().any(|row| row.read::<&str>("prefix").is_ok_and(|prefix| prefix == new.prefix))
    {
        store_key(&mut owner, tenant, new, "demo", &Scope::ALL, None).await?;
    }
    let wanted = UserRequest {
        tenant,
        email: EMAIL,
        name: Some("Demo"),
        role: Role::Owner,
        password: fixed.password,
        invite: false,
    };
    let mut password = None;
    match operator::bring(&mut owner, &wanted).await? {
        Brought::Made { password: made, .. } => password = Some(made),
        Brought::Changed { .. } => {
            if let Some(fixed) = fixed.password {
                operator::keep_password(&mut owner, EMAIL, fixed).await?;
                password = Some(fixed.to_owned());
            }
        }
        // Somebody else already has an account with this email. The demo then has no user of the editor.
        Brought::Invited { .. } => {}
    }
    owner.close().await?;
    Ok(Demo { api_key: new.map(|n| n.key), password, is_new })
}

/// Lets the planner choose every command, so that players go, rest and pray by their words. Settings that somebody has changed stay.
async fn allow_all_commands(owner: &mut PgConnection) -> Result<()> {
    let planner_commands = Some(commands::NAMES.map(str::to_owned).to_vec());
    let settings = Settings { features: Features { planner_commands, ..Features::default() }, ..Settings::default() };
    sqlx::query("UPDATE tenant SET settings = $2 WHERE slug = $1 AND settings = '{}'")
        .bind(TENANT)
        .bind(serde_json::to_value(settings).map_err(Error::internal)?)
        .execute(owner)
        .await?;
    Ok(())
}

fn caller(tenant: Uuid) -> Caller {
    let tenant = Tenant {
        id: tenant,
        version: 0,
        limits: TenantLimits::unlimited(),
        settings: Settings::default(),
        origins: Vec::new(),
        llm_api_key: None,
        switched_off: Vec::new(),
    };
    Caller::operator(Arc::new(tenant))
}

/// Writes the demo world, unless it is there.
async fn world(pool: &db::pool::Pool, tenant: Uuid) -> Result<()> {
    let actor = Actor { origin: Origin::Import, ..Actor::system(tenant) };
    tenancy::write(pool, actor, async |tx| world_in(tx, tenant).await).await
}

async fn world_in(tx: &TenantTx, tenant: Uuid) -> Result<()> {
    let exists = sqlx::query("SELECT 1 FROM campaign WHERE tenant_id = $1 AND slug = $2")
        .bind(tenant)
        .bind(CAMPAIGN)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    if exists.is_some() {
        return Ok(());
    }
    sample::write(tx, &caller(tenant), Some(CAMPAIGN)).await?;
    Ok(())
}
