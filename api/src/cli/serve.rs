//! `serve`: sets up the database, schema, model and HTTP, and shuts them down in order.

use std::{process::ExitCode, sync::Arc, time::Duration};

use actix_web::web;
use rand::RngExt;
use tokio::time::{Instant, sleep};

use super::{address, output::print};
use crate::{app::App, config::Config, database, demo, ops::maintenance};
use base::{
    error::{Error, Result},
    secrets::Secrets,
    tokens,
};
use llm::Endpoint;
use pgcluster::EmbeddedPostgres;
use world::player_links::operator::{self, Whom};

/// The server's data: an outside database, or the embedded PostgreSQL.
struct Data {
    embedded: Option<EmbeddedPostgres>,
    app_url: String,
    owner_url: String,
    secrets: Secrets,
}

async fn data(config: &mut Config) -> Result<Data> {
    let secrets = config.secrets.take();
    if let Some(url) = &config.database_url {
        let owner_url = config.migration_database_url.clone().unwrap_or_else(|| url.clone());
        let secrets = match secrets {
            Some(secrets) => secrets,
            None => {
                let dir = config.data_dir.display();
                tracing::warn!("TAVERNKEEP_SECRET_KEY is not set: using the one in {dir}; replicas must share one");
                std::fs::create_dir_all(&config.data_dir).map_err(Error::internal)?;
                load_or_create_secret(&config.data_dir)?
            }
        };
        return Ok(Data { embedded: None, app_url: url.clone(), owner_url, secrets });
    }
    let cluster = pgcluster::start(&config.data_dir).await.map_err(Error::internal)?;
    cluster.notes().iter().for_each(print);
    let secrets = match secrets {
        Some(secrets) => secrets,
        None => load_or_create_secret(cluster.data_dir())?,
    };
    let url = cluster.owner_url().to_owned();
    Ok(Data { embedded: Some(cluster), app_url: url.clone(), owner_url: url, secrets })
}

/// The secrets of the server that this command runs next to.
pub(super) fn secrets_of(config: &mut Config) -> Result<Secrets> {
    match config.secrets.take() {
        Some(secrets) => Ok(secrets),
        None if config.database_url.is_some() => load_or_create_secret(&config.data_dir),
        None => load_or_create_secret(&pgcluster::located(&config.data_dir).map_err(Error::internal)?),
    }
}

/// The secret in the data directory. Makes one if there is none.
fn load_or_create_secret(dir: &std::path::Path) -> Result<Secrets> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let path = dir.join("secret.key");
    let made = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match made {
        Ok(mut file) => {
            let secret: String = rand::rng().sample_iter(rand::distr::Alphanumeric).take(64).map(char::from).collect();
            file.write_all(secret.as_bytes()).and_then(|()| file.sync_all()).map_err(Error::internal)?;
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(Error::internal(format!("{}: {e}", path.display()))),
    }
    let text = std::fs::read_to_string(&path).map_err(Error::internal)?;
    Secrets::parse(text.trim()).map_err(|why| Error::internal(format!("{} {why}", path.display())))
}

/// The operator's model, or the rehearsal model, which runs until it is dropped.
pub(super) async fn model(config: &Config) -> Result<(Endpoint, Option<rehearsal::Rehearsal>)> {
    if let Some(model) = &config.model {
        return Ok((model.clone(), None));
    }
    let options = rehearsal::Options { record_requests_max: 0, ..rehearsal::Options::default() };
    let model = rehearsal::start(options).await.map_err(Error::internal)?;
    tracing::warn!("no model is configured; the rehearsal model answers");
    Ok((Endpoint::trusted(&model.base_url(), None, "rehearsal").map_err(Error::internal)?, Some(model)))
}

/// Runs until told to stop.
///
/// # Errors
/// What prevented the server from starting.
pub(super) async fn run(mut config: Config) -> Result<ExitCode> {
    let mut data = data(&mut config).await?;
    database::migrate(&data.owner_url, &data.app_url).await?;
    let pool = database::connect_waiting(&data.app_url, config.database_connections_max, config.database_wait).await?;
    let made = match &data.embedded {
        Some(_) => Some(demo::ensure(&data.owner_url, &pool, &demo::Fixed::of(&config)).await?),
        None => None,
    };
    let (endpoint, rehearsing) = model(&config).await?;
    let instance = i64::from(rand::rng().random_range(1..i32::MAX));
    let mut held = database::hold_instance(&data.app_url, instance).await?;
    tokio::task::spawn_blocking(|| tokens::count("ready")).await.map_err(Error::internal)?;
    let stop_seconds = config.shutdown_seconds;
    let app = web::Data::new(App::new(config, pool.clone(), data.secrets, endpoint, instance)?);
    let state = app.clone().into_inner();
    state.origins.read(&pool).await?;
    let (server, listens_on) = crate::server::serve(app.clone())?;
    let here = address::here(listens_on);
    let address = app.config.public_url.as_deref().unwrap_or(&here);
    if let Err(error) = held.announce([address, &here]).await {
        tracing::warn!(%error, "commands cannot find out the server's address");
    }
    maintenance::start(&state, &data.app_url, held);
    let handle = server.handle();
    let mut running = actix_web::rt::spawn(server);
    welcome(address, &here, made.as_ref(), app.config.llm_label());
    if made.is_some() {
        invite(address, &data.owner_url, &app).await;
    }
    let code = tokio::select! {
        () = interrupted() => ExitCode::SUCCESS,
        ended = &mut running => {
            tracing::error!(?ended, "the HTTP server ended unexpectedly");
            ExitCode::FAILURE
        }
        notice = exit_of(data.embedded.as_mut()) => {
            tracing::error!(notice, "PostgreSQL ended unexpectedly");
            ExitCode::FAILURE
        }
    };
    tracing::info!("stopping: waiting for running turns, accepting no new requests");
    app.stop();
    let drained = drain(&state, Duration::from_secs(stop_seconds));
    tokio::select! {
        _ = futures_util::future::join(drained, handle.stop(true)) => {}
        () = interrupted() => tracing::warn!("stopping at once"),
    }
    pool.close();
    if let Some(model) = rehearsing {
        model.stop().await;
    }
    if let Some(cluster) = data.embedded {
        cluster.stop().await.map_err(Error::internal)?;
    }
    Ok(code)
}

async fn exit_of(cluster: Option<&mut EmbeddedPostgres>) -> String {
    match cluster {
        Some(cluster) => cluster.wait().await.to_string(),
        None => std::future::pending().await,
    }
}

async fn drain(app: &Arc<App>, patience: Duration) {
    let started = Instant::now();
    while app.running.count() > 0 && started.elapsed() < patience {
        sleep(Duration::from_millis(50)).await;
    }
}

/// Waits for Ctrl-C or SIGTERM.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        },
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

/// The name of the link that is printed.
const PRINTED: &str = "Printed when the server starts";

/// Prints a link to the demo's page at the table, the same one each time.
async fn invite(address: &str, owner_url: &str, app: &App) {
    let made = async {
        let mut db = database::as_owner(owner_url).await?;
        let whom = Whom { tenant: demo::TENANT, campaign: demo::CAMPAIGN, player: demo::PLAYER };
        operator::find_or_make(&mut db, &app.secrets, whom, PRINTED).await
    };
    match made.await {
        Ok(link) => print(format_args!(
            "Play in the browser (`tavernkeep play-link` makes a link for another character):\n  {address}{link}\n"
        )),
        Err(error) => tracing::info!(%error, "could not make a link to the demo's table"),
    }
}

fn welcome(address: &str, here: &str, made: Option<&demo::Demo>, model: &str) {
    print(format_args!("\nTavernkeep answers at {address}  (API: {address}/docs, model: {model})"));
    if address != here {
        print(format_args!("It listens at {here}"));
    }
    let Some(made) = made else { return };
    print(format_args!("The editor: {address}/admin"));
    let email = demo::EMAIL;
    print(match &made.password {
        Some(password) => format!("  sign in as {email} with the password {password}"),
        None => format!(
            "  sign in as {email} with the password shown at the first start (`tavernkeep user password` sets another)"
        ),
    });
    let header = match &made.api_key {
        Some(key) => {
            print(format_args!("Sign in with the demo tenant's API key, which has every scope:\n  {key}"));
            format!("'Authorization: Bearer {key}'")
        }
        None => {
            let program = std::env::args().next().unwrap_or_else(|| "tavernkeep".to_owned());
            print(format_args!(
                "The demo's API key was shown at the first start. To create another one:\n  \
                 export TAVERNKEEP_KEY=$({program} key create --tenant demo --scopes read,write,play,tools,gm,admin)"
            ));
            "\"Authorization: Bearer $TAVERNKEEP_KEY\"".to_owned()
        }
    };
    print(format_args!(
        "A first turn:\n  \
         curl -s {address}/v1/campaigns/port-town/npcs/innkeeper_bob/turns \\\n    \
         -H {header} -H 'Content-Type: application/json' \\\n    \
         -d '{{\"player_id\":\"player_alice\",\"action\":\"I pay for my drink and leave a generous tip.\"}}'\n"
    ));
}
