//! The demo: a tenant with every scope and a small town to play in. Making it again changes nothing that is there.

use std::sync::Arc;

use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use crate::{
    auth::{Caller, Scope, keys::NewKey, service::store_key},
    campaigns::{CampaignInput, Campaigns},
    config::Config,
    encounters,
    error::{Error, Result},
    http::{
        body,
        resource::{self, Place},
    },
    interchange::{report::Report, seed},
    limits::TenantLimits,
    scenes::{SceneInput, Scenes},
    stored::Columns,
    tenancy::{Actor, Origin, TenantTx},
    tenants::{self, Settings, Tenant},
    users::{
        Role,
        operator::{self, Brought, Wanted},
    },
};

/// The demo tenant's slug.
pub const TENANT: &str = "demo";
/// The demo campaign's slug.
pub const CAMPAIGN: &str = "port-town";

/// The character that the demo's link plays: at the inn, where the innkeeper is.
pub const PLAYER: &str = "lirien_vale";

/// The demo's user of the editor.
pub const EMAIL: &str = "demo@localhost";

/// Credentials that the environment fixes.
#[derive(Default)]
pub struct Fixed<'a> {
    pub api_key: Option<&'a str>,
    pub password: Option<&'a str>,
}

impl<'a> Fixed<'a> {
    /// What a configuration fixes.
    #[must_use]
    pub fn of(config: &'a Config) -> Self {
        Self { api_key: config.demo_api_key.as_deref(), password: config.demo_password.as_deref() }
    }
}

/// What the demo left for whoever wants to sign in.
pub struct Demo {
    /// A key with every scope; none if one was made before and not fixed by the environment.
    pub api_key: Option<String>,
    /// The password of [`EMAIL`]; none if it was made before and not fixed by the environment.
    pub password: Option<String>,
    /// Whether the tenant is new.
    pub is_new: bool,
}

/// Makes the demo tenant, its key and its campaign where they are missing.
///
/// # Errors
/// Those of the database.
pub async fn ensure(owner_url: &str, pool: &crate::pool::Pool, fixed: &Fixed<'_>) -> Result<Demo> {
    let mut owner = PgConnection::connect(owner_url).await?;
    let found =
        sqlx::query("SELECT tenant_id FROM tenant WHERE slug = $1").bind(TENANT).fetch_optional(&mut owner).await?;
    let (tenant, is_new) = match found {
        Some(row) => (row.read::<Uuid>("tenant_id")?, false),
        None => (tenants::service::create(&mut owner, TENANT, "Demo", &TenantLimits::unlimited()).await?, true),
    };
    world(pool, tenant).await?;
    let keys =
        sqlx::query("SELECT prefix FROM api_key WHERE tenant_id = $1").bind(tenant).fetch_all(&mut owner).await?;
    let new = match fixed.api_key {
        Some(key) => NewKey::of(key),
        // A start that was cut short may have left the tenant without one.
        None => keys.is_empty().then(NewKey::generate),
    };
    if let Some(new) = &new
        && !keys.iter().any(|row| row.read::<&str>("prefix").is_ok_and(|prefix| prefix == new.prefix))
    {
        store_key(&mut owner, tenant, new, "demo", &Scope::ALL, None).await?;
    }
    let wanted =
        Wanted { tenant, email: EMAIL, name: Some("Demo"), role: Role::Owner, password: fixed.password, invite: false };
    let mut password = None;
    match operator::bring(&mut owner, &wanted).await? {
        Brought::Made { password: made, .. } => password = Some(made),
        Brought::Changed { .. } => {
            if let Some(fixed) = fixed.password {
                operator::keep_password(&mut owner, EMAIL, fixed).await?;
                password = Some(fixed.to_owned());
            }
        }
        // Somebody else has an account of this name: the demo has no user of the editor then.
        Brought::Invited { .. } => {}
    }
    owner.close().await?;
    Ok(Demo { api_key: new.map(|n| n.key), password, is_new })
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

async fn world(pool: &crate::pool::Pool, tenant: Uuid) -> Result<()> {
    let tx = TenantTx::write(pool, &Actor { origin: Origin::Import, ..Actor::system(tenant) }).await?;
    let exists = sqlx::query("SELECT 1 FROM campaign WHERE tenant_id = $1 AND slug = $2")
        .bind(tenant)
        .bind(CAMPAIGN)
        .fetch_optional(&mut *tx.connection().await)
        .await?;
    if exists.is_some() {
        return Ok(());
    }
    let caller = caller(tenant);
    let place = Place { tx: &tx, campaign: Uuid::now_v7(), caller: &caller };
    let document: Value = serde_json::from_str(include_str!("port-town.json")).map_err(Error::internal)?;
    let part = |name: &str| document.get(name).cloned().unwrap_or_default();
    let campaign: CampaignInput = body::typed(part("campaign"))?;
    resource::insert::<Campaigns>(&place, campaign).await?;
    let entities = json!({
        "owners": part("owners"), "players": part("players"), "npcs": part("npcs"), "lore": part("lore"),
    });
    let entities = seed::of_value(entities)?;
    seed::import(&place, entities, &mut Report::new("seed", false)).await?;
    let scene: SceneInput = body::typed(part("scene"))?;
    resource::insert::<Scenes>(&place, scene).await?;
    encounters::service::create(&tx, place.campaign, &body::typed(part("encounter"))?, 0).await?;
    tx.commit().await
}
