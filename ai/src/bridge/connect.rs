//! The first frame: who connects, in which role, and to which session.

use std::{net::IpAddr, sync::Arc};
use world::playing;

use entity::{
    session::{Dice, Role},
    shapes::Extensions,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::pushes;
use crate::{
    frontends::{
        frames::{self, Frame, Incoming},
        hub::{Added, Connection},
        mail,
        outbox::{Close, Outbox},
    },
    state::Ai,
};
use base::{
    error::{Code, Error, Result},
    json,
    request_id::RequestId,
    stored::Columns,
};
use db::{
    retry::{self, BRIEF},
    tenancy::TenantTx,
};
use edge::{
    auth::gate::caller_of,
    caller::{Caller, Scope},
    http::{
        read,
        resource::{Place, Ref, campaign_id},
    },
    limits::Class,
    origins::allows,
};
use world::sessions::open::{self, Wish};

/// The most bytes that a frontend may send about its world, and about its user.
const NOTE_BYTES_MAX: usize = 4096;

/// What the server knows about a connection before its first frame.
pub struct Upgrade {
    pub campaign: String,
    /// The origin of the connecting page, unless it is one of the server's own pages.
    pub origin: Option<String>,
    pub request: RequestId,
    pub peer: IpAddr,
}

/// Why the server rejects a connection.
pub struct Refusal {
    pub error: Error,
    pub close: Close,
}

impl Refusal {
    fn of(close: Close) -> impl Fn(Error) -> Self {
        move |error| Self { error, close }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let close = match error.code {
            Code::Unauthenticated => Close::Unauthenticated,
            Code::Forbidden => Close::Forbidden,
            Code::NotFound => Close::NotFound,
            Code::RateLimited | Code::QuotaExceeded => Close::TooMany,
            Code::Unavailable => Close::ShuttingDown,
            Code::Internal => Close::Internal,
            _ => Close::BadConnect,
        };
        Self { error, close }
    }
}

/// The members of a `connect`.
#[derive(Debug, Deserialize)]
struct Connect {
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    token: String,
    session_id: Option<Uuid>,
    role: Option<Role>,
    dice: Option<Dice>,
    player_id: Option<String>,
    channel: Option<String>,
    #[serde(default)]
    world_info: Value,
    #[serde(default)]
    user_info: Value,
}

/// An established connection.
pub struct Connected {
    pub connection: Arc<Connection>,
    /// The frames to send, beginning with `connected`.
    pub queue: mpsc::Receiver<Frame>,
    /// Checked again while the connection lasts.
    pub credential: String,
}

/// Connects the client that the first frame names.
///
/// # Errors
/// Why the connection is rejected.
pub async fn connect(app: &Arc<Ai>, upgrade: &Upgrade, frame: Incoming) -> Result<Connected, Refusal> {
    let Connect { client_id, token, session_id, role, dice, player_id, channel, world_info, user_info } = read(frame)?;
    if client_id.trim().is_empty() || token.is_empty() {
        return Err(
            Error::new(Code::Unauthenticated, "Send `client_id` and `token`: an API key or an access token.").into()
        );
    }
    let caller = authenticate(app, upgrade, &token).await?;
    let mut notes = Extensions::new();
    for (name, note) in [("world_info", world_info), ("user_info", user_info)] {
        if note.to_string().len() > NOTE_BYTES_MAX {
            let message = format!("must have at most {NOTE_BYTES_MAX} bytes of JSON");
            return Err(Error::invalid(format!("/{name}"), "invalid_value", message).into());
        }
        if !note.is_null() {
            notes.insert(name.to_owned(), note);
        }
    }
    let wish = Wish { client_id, session: session_id, role, dice, player: player_id, channel, notes };
    let (connection, queue) = retry::repeat(BRIEF, async || join(app, upgrade, &caller, &wish).await).await?;
    Ok(Connected { connection, queue, credential: token })
}

fn read(frame: Incoming) -> Result<Connect, Refusal> {
    let mut members = frame.members;
    // Some frontends put the members into `data`, as in all other frames.
    if let Value::Object(data) = frame.data {
        members.extend(data);
    }
    let mut members = Value::Object(members);
    json::sound(&mut members, &mut String::new())
        .and_then(|()| read::typed(members))
        .map_err(Refusal::of(Close::BadConnect))
}

/// The owner of the credential, if the credential may connect from this address and origin.
async fn authenticate(app: &Ai, upgrade: &Upgrade, token: &str) -> Result<Caller> {
    let Some(caller) = caller_of(app, token, upgrade.request.clone()).await? else {
        app.limits.check_failure(upgrade.peer).allowed("failed sign-ins")?;
        return Err(Error::new(Code::Unauthenticated, "The credential is unknown, expired or revoked."));
    };
    app.limits.check(&caller.tenant, Class::Requests).allowed("requests")?;
    may_connect(&caller)?;
    if let Some(origin) = &upgrade.origin
        && !allows(&caller.tenant.origins, origin)
    {
        return Err(Error::new(
            Code::Forbidden,
            "The page's origin is not among the tenant's `origins`; add it there.",
        ));
    }
    Ok(caller)
}

/// Whether a credential may use the bridge at all.
///
/// # Errors
/// `forbidden`.
pub fn may_connect(caller: &Caller) -> Result<()> {
    if caller.scopes.has(Scope::Play) || caller.scopes.has(Scope::Gm) {
        return Ok(());
    }
    Err(Error::new(Code::Forbidden, "The bridge needs the scope `play` or `gm`."))
}

/// Finds or opens the session and makes this its connection. The hub learns of the connection before the commit, so that a newer
/// connection can find and replace it. The session's older connection stays until the commit: `join` locks the session until then.
async fn join(
    app: &Arc<Ai>,
    upgrade: &Upgrade,
    caller: &Caller,
    wish: &Wish,
) -> Result<(Arc<Connection>, mpsc::Receiver<Frame>)> {
    let tx = TenantTx::write(&app.pool, &caller.actor()).await?;
    let campaign = campaign_id(&tx, caller, &Ref::parse(&upgrade.campaign)).await?;
    let session = open::join(&app.limits, &Place { tx: &tx, campaign, caller }, wish).await?;
    let playing = playing::playing(&tx, campaign, session.id.0).await?;
    let row =
        sqlx::query("SELECT coalesce(max(seq), 0) AS seq FROM feed_head WHERE tenant_id = $1 AND campaign_id = $2")
            .bind(tx.tenant())
            .bind(campaign)
            .fetch_one(&mut *tx.connection().await)
            .await?;
    let (outbox, queue) = Outbox::new();
    let connection = Arc::new(Connection::new(caller, playing, outbox));
    connection.outbox.send(Frame::new("connected", None, &json!({
        "client_id": session.client_id, "session_id": session.id, "campaign_id": campaign, "connection_id": connection.id,
        "role": session.role, "dice": session.dice, "player_id": session.player_id,
        "protocol_version": frames::PROTOCOL_VERSION, "server_time": frames::now(),
        "ping_seconds": app.settings.frontends.ping.as_secs(),
        "limits": { "frame_bytes": frames::BYTES_MAX, "world_state_bytes": frames::MESSAGE_BYTES_MAX,
            "frames_per_minute": super::FRAMES_PER_MINUTE },
        "message": "Connected",
    })));
    let Added { first, replaced } = app.frontends.hub.add(&connection, app.settings.frontends.connections_max)?;
    if let Some(empty) = first {
        tokio::spawn(pushes::follow(app.clone(), connection.feed(), row.read("seq")?, empty));
    }
    let written = async {
        mail::register(&tx, &connection, app.frontends.instance).await?;
        tx.commit().await
    };
    match written.await {
        Ok(()) => app.frontends.hub.keep(&connection, replaced.as_deref()),
        Err(error) => {
            app.frontends.hub.take_back(&connection, replaced);
            return Err(error);
        }
    }
    Ok((connection, queue))
}
