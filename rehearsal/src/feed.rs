//! A response body that is made while it is sent, and can be slow, cut or broken.
//!
//! It must never have more than one piece in memory besides the segments it was given.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use actix_web::body::{BodySize, MessageBody};
use bytes::Bytes;
use tokio::time::{Sleep, sleep};

/// How long data sent before a break has to leave the socket.
const BEFORE_BREAK: Duration = Duration::from_millis(25);

/// Bytes that are sent a number of times.
pub(crate) struct Segment {
    pub(crate) unit: Bytes,
    pub(crate) times: usize,
}

/// How a body is delivered.
#[derive(Clone, Default)]
pub(crate) struct Delivery {
    /// The wait before the first byte.
    pub(crate) before: Option<Duration>,
    /// The wait between pieces.
    pub(crate) between: Option<Duration>,
    /// The size of a piece; `None` sends segments as they are.
    pub(crate) piece_bytes: Option<usize>,
    /// Break the connection after this many bytes.
    pub(crate) break_after: Option<u64>,
}

/// The body.
pub(crate) struct Feed {
    segments: VecDeque<Segment>,
    delivery: Delivery,
    size: BodySize,
    pause: Option<Pin<Box<Sleep>>>,
    /// The number of bytes until the break.
    left: u64,
    breaks: bool,
}

/// The error that breaks the connection because the script says so.
#[derive(Debug)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script breaks the connection here")
    }
}

impl std::error::Error for Broken {}

impl Segment {
    /// Bytes sent once.
    pub(crate) fn once(bytes: impl Into<Bytes>) -> Self {
        Self { unit: bytes.into(), times: 1 }
    }

    fn len(&self) -> u64 {
        self.unit.len() as u64 * self.times as u64
    }
}

impl Delivery {
    /// Whether a body only has to be sent, without delays or faults.
    pub(crate) fn is_plain(&self) -> bool {
        self.before.is_none() && self.between.is_none() && self.piece_bytes.is_none() && self.break_after.is_none()
    }
}

impl Feed {
    /// A body of these segments. A `streamed` body does not announce its length.
    pub(crate) fn new(segments: Vec<Segment>, delivery: Delivery, streamed: bool) -> Self {
        let total = segments.iter().map(Segment::len).sum();
        let left = delivery.break_after.unwrap_or(u64::MAX);
        let at_once = (left == 0).then_some(BEFORE_BREAK);
        Self {
            size: if streamed { BodySize::Stream } else { BodySize::Sized(total) },
            pause: delivery.before.or(at_once).map(|wait| Box::pin(sleep(wait))),
            breaks: left < total,
            segments: segments.into(),
            delivery,
            left,
        }
    }

    /// A body that breaks before anything was written, even its headers.
    pub(crate) fn broken() -> Self {
        Self {
            segments: VecDeque::new(),
            delivery: Delivery::default(),
            size: BodySize::Stream,
            pause: None,
            left: 0,
            breaks: true,
        }
    }

    /// The next bytes to send, within the piece size and the bytes left until the break.
    fn take(&mut self) -> Option<Bytes> {
        loop {
            let segment = self.segments.front_mut()?;
            if segment.times == 0 || segment.unit.is_empty() {
                self.segments.pop_front();
                continue;
            }
            let until_break = usize::try_from(self.left).unwrap_or(usize::MAX);
            let most = self.delivery.piece_bytes.unwrap_or(usize::MAX).min(until_break);
            let piece = if most >= segment.unit.len() {
                segment.times -= 1;
                segment.unit.clone()
            } else {
                self.split_front(most)
            };
            self.left = self.left.saturating_sub(piece.len() as u64);
            return Some(piece);
        }
    }

    /// Takes the first `bytes` bytes of the first segment, which must be longer.
    fn split_front(&mut self, bytes: usize) -> Bytes {
        let Some(segment) = self.segments.front_mut() else {
            return Bytes::new();
        };
        segment.times -= 1;
        let mut rest = segment.unit.clone();
        let piece = rest.split_to(bytes.min(rest.len()));
        self.segments.push_front(Segment::once(rest));
        piece
    }
}

impl MessageBody for Feed {
    type Error = Broken;

    fn size(&self) -> BodySize {
        self.size
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        if self.breaks && self.left == 0 {
            return Poll::Ready(Some(Err(Broken)));
        }
        let piece = self.take();
        if self.breaks && self.left == 0 {
            self.pause = Some(Box::pin(sleep(BEFORE_BREAK)));
        } else if let Some(wait) = self.delivery.between {
            self.pause = Some(Box::pin(sleep(wait)));
        }
        Poll::Ready(piece.map(Ok))
    }
}
