//! The queue of frames for a frontend, and why its connection ends. The queue is bounded: a frontend that does not read is dropped.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::frames::Frame;

/// The most frames in the queue, and the most bytes.
const FRAMES_MAX: usize = 512;
const BYTES_MAX: usize = 1024 * 1024;
/// How often a sender that can wait checks for room.
const ROOM_POLL: Duration = Duration::from_millis(20);

/// Why a connection ends: the code and reason of its close frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The other side closed the connection or disappeared.
    Gone,
    ShuttingDown,
    NotText,
    TooManyErrors,
    ConnectTimeout,
    ConnectFirst,
    BadConnect,
    TooBig,
    Overflow,
    Internal,
    Unauthenticated,
    Forbidden,
    NotFound,
    Silent,
    TakenOver,
    Changed,
    TooMany,
}

impl Close {
    /// The code, the reason and the metric's label.
    #[must_use]
    pub fn words(self) -> (u16, &'static str, &'static str) {
        match self {
            Close::Gone => (1000, "", "gone"),
            Close::ShuttingDown => (1001, "The server is shutting down; reconnect in a moment", "shutdown"),
            Close::NotText => (1007, "Frames must be JSON in UTF-8", "not_text"),
            Close::TooManyErrors => (1008, "Too many invalid frames", "errors"),
            Close::ConnectTimeout => (1008, "Timeout waiting for connection message", "connect"),
            Close::ConnectFirst => (1008, "Expected connection message", "connect"),
            Close::BadConnect => (1008, "The connection message is invalid", "connect"),
            Close::TooBig => (1009, "The message is too big", "too_big"),
            Close::Overflow => (1013, "You read too slowly: too many frames are waiting", "overflow"),
            Close::Internal => (1011, "Something went wrong on our side", "internal"),
            Close::Unauthenticated => (4401, "The credential is unknown, expired or revoked", "credential"),
            Close::Forbidden => (4403, "The credential does not allow this", "credential"),
            Close::NotFound => (4404, "There is no such campaign or session", "not_found"),
            Close::Silent => (4408, "You sent nothing for too long", "silent"),
            Close::TakenOver => {
                (4409, "A newer connection of this client_id took over, or its session was deleted", "taken_over")
            }
            Close::Changed => (4412, "The session's role, dice or player changed; connect again", "changed"),
            Close::TooMany => (4429, "Too many connections", "too_many"),
        }
    }
}

/// Sends frames to a frontend. Cheap to clone; sending never waits.
#[derive(Clone)]
pub struct Outbox(Arc<Inner>);

struct Inner {
    queue: mpsc::Sender<Frame>,
    bytes: AtomicUsize,
    why: OnceLock<Close>,
    ended: CancellationToken,
}

impl Outbox {
    /// Returns an outbox and the receiver of its frames.
    #[must_use]
    pub fn new() -> (Self, mpsc::Receiver<Frame>) {
        let (queue, frames) = mpsc::channel(FRAMES_MAX);
        let inner = Inner { queue, bytes: AtomicUsize::new(0), why: OnceLock::new(), ended: CancellationToken::new() };
        (Self(Arc::new(inner)), frames)
    }

    /// Queues a frame. If it does not fit, the connection ends.
    pub fn send(&self, frame: Frame) {
        let bytes = frame.text.len();
        if self.0.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > BYTES_MAX || self.0.queue.try_send(frame).is_err()
        {
            self.close(Close::Overflow);
        }
    }

    /// Waits until there is room for frames that can wait. Returns at once when the connection ends.
    pub async fn room(&self) {
        while self.0.queue.capacity() < FRAMES_MAX / 2 && !self.is_ended() {
            tokio::time::sleep(ROOM_POLL).await;
        }
    }

    /// Notes that a frame was taken from the queue.
    pub fn note_removal(&self, frame: &Frame) {
        self.0.bytes.fetch_sub(frame.text.len(), Ordering::Relaxed);
    }

    /// Ends the connection. The first reason counts.
    pub fn close(&self, why: Close) {
        let _ = self.0.why.set(why);
        self.0.ended.cancel();
    }

    /// Waits until the connection should end.
    pub async fn ended(&self) {
        self.0.ended.cancelled().await;
    }

    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.0.ended.is_cancelled()
    }

    /// Why the connection ends.
    #[must_use]
    pub fn why(&self) -> Close {
        self.0.why.get().copied().unwrap_or(Close::Gone)
    }
}
