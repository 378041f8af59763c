//! A connection from its upgrade to its end. One task reads frames; the other writes them and checks on the connection.

use std::{sync::Arc, time::Duration};

use actix_ws::{AggregatedMessage, AggregatedMessageStream, CloseCode, CloseReason, ProtocolError};
use futures_util::FutureExt;
use tokio::{
    sync::mpsc,
    time::{Instant, MissedTickBehavior, interval, timeout},
};

use super::{
    connect::{Connected, Refusal, Upgrade, connect, may_connect},
    incoming, pushes,
};
use crate::{
    bridge::FRAMES_PER_MINUTE,
    frontends::{
        frames::{Frame, Incoming},
        hub::{Connection, Unknown},
        mail,
        outbox::Close,
    },
    state::Ai,
};
use base::{
    error::{Code, Error, Result},
    metrics,
    request_id::RequestId,
};
use edge::auth::gate::caller_of;

/// How long a client may take to send the first frame.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a credential is checked again.
const LOOK_AGAIN: Duration = Duration::from_secs(4);
/// How long writing one frame may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sending the last frames may take.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// A flood of frames is over after a pause of this length.
const PAUSE: Duration = Duration::from_millis(100);
const BURST: u32 = 240;
/// The connection ends after this many invalid frames per minute.
const ERRORS_PER_MINUTE: u32 = 30;

/// Runs a connection to its end.
pub async fn run(
    app: Arc<Ai>,
    place: Unknown,
    upgrade: Upgrade,
    session: actix_ws::Session,
    mut stream: AggregatedMessageStream,
) {
    let first = match timeout(CONNECT_TIMEOUT, first_frame(&mut stream)).await {
        // Boxed, because it runs only once or now and then and should not enlarge the waiting future.
        Ok(Some(Ok(frame))) => Box::pin(connect(&app, &upgrade, frame)).await,
        Ok(Some(Err(refusal))) => Err(refusal),
        Ok(None) => return,
        Err(_) => {
            let error = Error::new(Code::BadRequest, "Send a `connect` frame first, within five seconds.");
            Err(Refusal { error, close: Close::ConnectTimeout })
        }
    };
    drop(place);
    metrics::BRIDGE_FRAMES.with_label_values(&["in", "connect"]).inc();
    let Connected { connection, queue, credential } = match first {
        Ok(connected) => connected,
        Err(refusal) => {
            if refusal.error.code.status() >= 500 {
                tracing::warn!(error = %refusal.error, "a frontend could not connect");
            }
            return Box::pin(refuse(session, stream, refusal)).await;
        }
    };
    tracing::info!(request_id = %upgrade.request, session_id = %connection.session.id, "a frontend connected");
    let pongs = session.clone();
    let writer = actix_web::rt::spawn(write(
        app.clone(),
        connection.clone(),
        credential,
        upgrade.request.clone(),
        session,
        queue,
    ));
    if let Err(error) = pushes::welcome(&app, &connection).await {
        tracing::warn!(%error, "could not tell a frontend which replies wait");
    }
    read(&app, &connection, &mut stream, pongs).await;
    app.frontends.hub.remove(&connection);
    if let Err(error) = Box::pin(mail::unregister(&app.frontends, &connection)).await {
        tracing::warn!(%error, "could not store that a frontend left");
    }
    linger(&mut stream).await;
    let _ = writer.await;
    let (code, _, reason) = connection.outbox.why().words();
    tracing::info!(request_id = %upgrade.request, session_id = %connection.session.id, code, reason, "a frontend left");
}

/// The first frame, if it is a `connect`.
async fn first_frame(stream: &mut AggregatedMessageStream) -> Option<Result<Incoming, Refusal>> {
    loop {
        let refusal = |error, close| Some(Err(Refusal { error, close }));
        match stream.recv().await? {
            Ok(AggregatedMessage::Ping(_) | AggregatedMessage::Pong(_)) => {}
            Ok(AggregatedMessage::Text(text)) => {
                return match Incoming::read(&text) {
                    Ok(frame) if frame.kind == "connect" => Some(Ok(frame)),
                    Ok(_) => refusal(
                        Error::new(Code::BadRequest, "The first frame must be a `connect`."),
                        Close::ConnectFirst,
                    ),
                    Err(unreadable) => refusal(unreadable.error, Close::ConnectFirst),
                };
            }
            Ok(AggregatedMessage::Binary(_)) => {
                return refusal(Error::new(Code::BadRequest, "Frames must be text messages."), Close::ConnectFirst);
            }
            Ok(AggregatedMessage::Close(_)) => return None,
            Err(error) => return refusal(Error::new(Code::BadRequest, error.to_string()), of_protocol(&error)),
        }
    }
}

fn of_protocol(error: &ProtocolError) -> Close {
    match error {
        ProtocolError::Overflow => Close::TooBig,
        ProtocolError::Io(e) if e.kind() == std::io::ErrorKind::InvalidData => Close::NotText,
        ProtocolError::Io(_) => Close::Gone,
        _ => Close::BadConnect,
    }
}

async fn refuse(mut session: actix_ws::Session, mut stream: AggregatedMessageStream, refusal: Refusal) {
    let frame = Frame::error(&refusal.error, None);
    metrics::BRIDGE_CLOSED.with_label_values(&[refusal.close.words().2]).inc();
    let goodbye = async {
        let _ = session.text(frame.text).await;
        let _ = session.close(Some(reason(refusal.close))).await;
        linger(&mut stream).await;
    };
    let _ = timeout(GOODBYE_TIMEOUT, goodbye).await;
}

fn reason(close: Close) -> CloseReason {
    let (code, words, _) = close.words();
    CloseReason { code: CloseCode::from(code), description: (!words.is_empty()).then(|| words.to_owned()) }
}

/// Reads on until the other side closes too. Unread data would otherwise reset the connection before the other side reads the
/// reason.
async fn linger(stream: &mut AggregatedMessageStream) {
    let rest = async { while let Some(Ok(_)) = stream.recv().await {} };
    let _ = timeout(GOODBYE_TIMEOUT, rest).await;
}

/// Handles frames as they come, until the connection ends.
async fn read(
    app: &Arc<Ai>,
    connection: &Arc<Connection>,
    stream: &mut AggregatedMessageStream,
    mut pongs: actix_ws::Session,
) {
    let outbox = &connection.outbox;
    let mut frames = Bucket::new(FRAMES_PER_MINUTE, BURST);
    let mut errors = Bucket::new(ERRORS_PER_MINUTE, ERRORS_PER_MINUTE);
    loop {
        let message = tokio::select! {
            biased;
            () = outbox.ended() => return,
            message = stream.recv() => message,
        };
        connection.hear();
        let refused = |error: Error| {
            outbox.send(Frame::error(&error, None));
            Err(error)
        };
        let taken = match message {
            None | Some(Ok(AggregatedMessage::Close(_))) => return outbox.close(Close::Gone),
            Some(Err(error)) => return outbox.close(of_protocol(&error)),
            Some(Ok(AggregatedMessage::Pong(_))) => Ok(()),
            Some(Ok(AggregatedMessage::Ping(payload))) => {
                // A pong that does not fit is dropped: the other side is receiving data anyway.
                let _ = pongs.pong(&payload).now_or_never();
                Ok(())
            }
            Some(Ok(AggregatedMessage::Binary(_))) => {
                refused(Error::new(Code::BadRequest, "Frames must be text messages."))
            }
            Some(Ok(AggregatedMessage::Text(text))) => {
                Box::pin(incoming::take(app, connection, &text, || frames.take())).await
            }
        };
        match taken {
            Err(error) if error.code.status() < 500 && !errors.take() => {
                drain(stream).await;
                return outbox.close(Close::TooManyErrors);
            }
            Ok(()) | Err(_) => {}
        }
        // During a burst of frames, leave room for writing the answers.
        tokio::task::yield_now().await;
    }
}

/// Reads a flood of frames for a while. Closing a connection with unread data resets it, and the other side never reads the reason.
async fn drain(stream: &mut AggregatedMessageStream) {
    let flood = async { while let Ok(Some(Ok(_))) = timeout(PAUSE, stream.recv()).await {} };
    let _ = timeout(GOODBYE_TIMEOUT, flood).await;
}

/// A token bucket: a rate per minute, and a burst.
struct Bucket {
    per_second: f64,
    most: f64,
    left: f64,
    at: Instant,
}

impl Bucket {
    fn new(per_minute: u32, burst: u32) -> Self {
        let most = f64::from(burst);
        Self { per_second: f64::from(per_minute) / 60.0, most, left: most, at: Instant::now() }
    }

    fn take(&mut self) -> bool {
        let now = Instant::now();
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * self.per_second).min(self.most);
        self.at = now;
        let has = self.left >= 1.0;
        if has {
            self.left -= 1.0;
        }
        has
    }
}

/// Writes queued frames, sends pings, and checks for silence and the credential until the connection ends; then sends the reason.
async fn write(
    app: Arc<Ai>,
    connection: Arc<Connection>,
    credential: String,
    request: RequestId,
    mut session: actix_ws::Session,
    mut queue: mpsc::Receiver<Frame>,
) {
    let outbox = &connection.outbox;
    let ping = app.settings.frontends.ping;
    let (mut beats, mut looks) = (interval(ping), interval(LOOK_AGAIN.min(ping)));
    for every in [&mut beats, &mut looks] {
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        every.reset();
    }
    loop {
        tokio::select! {
            biased;
            () = outbox.ended() => break,
            Some(frame) = queue.recv() => tokio::select! {
                biased;
                () = put(&mut session, &connection, frame) => {}
                () = outbox.ended() => break,
            },
            _ = beats.tick() => {
                if connection.last_heard().elapsed() >= ping * 3 {
                    outbox.close(Close::Silent);
                    break;
                }
                let _ = timeout(WRITE_TIMEOUT, session.ping(b"")).await;
            }
            _ = looks.tick() => Box::pin(look_again(&app, &connection, &credential, &request)).await,
        }
    }
    metrics::BRIDGE_CLOSED.with_label_values(&[outbox.why().words().2]).inc();
    let goodbye = async {
        // Frames queued before the end, such as the error that explains it. A frontend that does not read gets none of them.
        while outbox.why() != Close::Overflow
            && let Ok(frame) = queue.try_recv()
        {
            put(&mut session, &connection, frame).await;
        }
        let _ = session.close(Some(reason(outbox.why()))).await;
    };
    let _ = timeout(GOODBYE_TIMEOUT, goodbye).await;
}

async fn put(session: &mut actix_ws::Session, connection: &Connection, frame: Frame) {
    connection.outbox.note_removal(&frame);
    metrics::BRIDGE_FRAMES.with_label_values(&["out", frame.kind]).inc();
    match timeout(WRITE_TIMEOUT, session.text(frame.text)).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => connection.outbox.close(Close::Gone),
        Err(_) => connection.outbox.close(Close::Overflow),
    }
}

/// Ends the connection if its credential was revoked, expired or restricted.
async fn look_again(app: &Ai, connection: &Connection, credential: &str, request: &RequestId) {
    let (error, close) = match caller_of(app, credential, request.clone()).await {
        Ok(Some(caller)) => match may_connect(&caller) {
            Ok(()) => return connection.renew(caller),
            Err(error) => (error, Close::Forbidden),
        },
        Ok(None) => {
            let error = Error::new(Code::Unauthenticated, "The credential has expired or was revoked.");
            (error, Close::Unauthenticated)
        }
        // The database cannot be reached. Check again next time.
        Err(_) => return,
    };
    connection.outbox.send(Frame::error(&error, None));
    connection.outbox.close(close);
}
