//! Clients' connections: how many one address may hold, and how long a client may keep the server waiting.
//!
//! The server closes a connection if the client sends nothing, sends the head of a request too slowly, is too slow with
//! the rest of a body after the request was answered, or does not read its answer. The HTTP library has limits for the
//! first head and for connections between two requests only, so this module enforces the others where bytes are read and
//! written. A body that a handler waits for has its own deadline ([`Timely`]). The server leaves a silent client alone
//! while it works on a request or a stream is open.
//!
//! Proxies that the operator trusts are not counted, because many clients share their addresses.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io,
    net::IpAddr,
    pin::Pin,
    rc::Rc,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use actix_web::{
    body::{BodySize, BoxBody, MessageBody},
    dev::Payload,
    error::PayloadError,
    web::Bytes,
};
use futures_util::Stream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::{Instant, Sleep, sleep, sleep_until},
};

use crate::client::household;
use base::metrics;

/// How long a client may read nothing of its answer before it is disconnected.
const WRITE_STALLED: Duration = Duration::from_secs(30);

/// How long the server goes on reading after its answer. Closing earlier would reset the connection and lose the answer.
const LINGER: Duration = Duration::from_secs(2);

/// Limits on clients' connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionSettings {
    /// The most connections that one address may hold; 0 means no limit.
    pub per_address_max: usize,
    /// How long the head of a request may take, from its first byte or, if it is the connection's first, from the start.
    pub head_timeout: Duration,
    /// How long the server keeps a connection open for the next request.
    pub keep_alive: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
}

/// The number of connections that each address holds.
#[derive(Default)]
pub struct Connections(Mutex<HashMap<IpAddr, usize>>);

impl Connections {
    /// Counts a connection of an address. `None` if the address already holds `most`; 0 means no limit.
    #[must_use]
    pub fn hold(self: &Arc<Self>, address: IpAddr, most: usize) -> Option<Held> {
        let address = household(address);
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.entry(address).or_default();
        if most > 0 && *count >= most {
            metrics::CONNECTIONS_REFUSED.inc();
            return None;
        }
        *count += 1;
        Some(Held { connections: self.clone(), address })
    }
}

/// One connection, counted until this is dropped.
pub struct Held {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = held.get_mut(&self.address) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                held.remove(&self.address);
            }
        }
    }
}

/// The state that a connection shares with its requests.
#[derive(Default)]
pub struct Line {
    /// Requests that are being worked on or are answered by an open stream.
    at_work: Cell<usize>,
    /// Since when the client keeps the server waiting for the rest of a head or of an answered request's body.
    owed_since: Cell<Option<Instant>>,
    waker: RefCell<Option<Waker>>,
}

impl Line {
    /// Begins a request, which ends when the result is dropped.
    #[must_use]
    pub fn work(self: &Rc<Self>) -> Work {
        self.at_work.set(self.at_work.get() + 1);
        self.owed_since.set(None);
        Work { line: self.clone(), is_read: Rc::new(Cell::new(true)) }
    }
}

/// A request that is being worked on.
pub struct Work {
    line: Rc<Line>,
    /// Whether the whole body was read.
    is_read: Rc<Cell<bool>>,
}

impl Work {
    /// Gives a request's body a deadline.
    #[must_use]
    pub fn timely(&self, payload: Payload, within: Duration) -> Payload {
        self.is_read.set(false);
        let timely = Timely { payload, deadline: Box::pin(sleep(within)), is_read: self.is_read.clone() };
        Payload::Stream { payload: Box::pin(timely) }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.line.at_work.set(self.line.at_work.get().saturating_sub(1));
        if self.is_read.get() {
            return;
        }
        self.line.owed_since.set(Some(Instant::now()));
        // Wake the connection: nothing else would check a client that holds back the rest of its body.
        if let Some(waker) = self.line.waker.borrow().as_ref() {
            waker.wake_by_ref();
        }
    }
}

/// A body that fails when it takes too long.
struct Timely {
    payload: Payload,
    deadline: Pin<Box<Sleep>>,
    is_read: Rc<Cell<bool>>,
}

impl Stream for Timely {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match Pin::new(&mut self.payload).poll_next(cx) {
            Poll::Ready(None) => {
                self.is_read.set(true);
                Poll::Ready(None)
            }
            Poll::Ready(chunk) => Poll::Ready(chunk),
            Poll::Pending => {
                ready!(self.deadline.as_mut().poll(cx));
                Poll::Ready(Some(Err(PayloadError::Io(io::ErrorKind::TimedOut.into()))))
            }
        }
    }
}

/// Whether a body failed because it took too long.
#[must_use]
pub fn took_too_long(error: &PayloadError) -> bool {
    matches!(error, PayloadError::Io(error) if error.kind() == io::ErrorKind::TimedOut)
}

/// A streamed answer. Its request counts as work until the stream ends.
struct Streamed {
    body: BoxBody,
    work: Option<Work>,
}

impl MessageBody for Streamed {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        let chunk = ready!(Pin::new(&mut self.body).poll_next(cx));
        if chunk.is_none() {
            self.work = None;
        }
        Poll::Ready(chunk)
    }
}

/// The body of an answer. A complete body ends the request's work at once, a stream when it ends.
#[must_use]
pub fn until_it_ends(body: BoxBody, work: Option<Work>) -> BoxBody {
    match body.size() {
        BodySize::Stream => BoxBody::new(Streamed { body, work }),
        BodySize::None | BodySize::Sized(_) => body,
    }
}

/// A client's connection.
pub struct Connection {
    io: TcpStream,
    line: Rc<Line>,
    head_timeout: Duration,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
    lingering: Option<Pin<Box<Sleep>>>,
    _held: Option<Held>,
}

impl Connection {
    /// Wraps an accepted connection.
    #[must_use]
    pub fn new(io: TcpStream, head_timeout: Duration, held: Option<Held>) -> Self {
        let line = Rc::new(Line::default());
        line.owed_since.set(Some(Instant::now()));
        Self { io, line, head_timeout, reading: None, writing: None, lingering: None, _held: held }
    }

    /// The state that it shares with its requests.
    #[must_use]
    pub fn line(&self) -> Rc<Line> {
        self.line.clone()
    }

    /// Ready when a head, or the rest of an answered request's body, has taken too long.
    fn poll_owed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_known = self.line.waker.borrow().as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
        if !is_known {
            *self.line.waker.borrow_mut() = Some(cx.waker().clone());
        }
        // A client that is still reading an answer is not late with its next request.
        if self.writing.is_some() {
            return Poll::Pending;
        }
        let (0, Some(since)) = (self.line.at_work.get(), self.line.owed_since.get()) else { return Poll::Pending };
        let end = since + self.head_timeout;
        loop {
            let timer = self.reading.get_or_insert_with(|| Box::pin(sleep_until(end)));
            ready!(timer.as_mut().poll(cx));
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            // The timer was set for an earlier request. Set it again.
            timer.as_mut().reset(end);
        }
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep(WRITE_STALLED)));
        ready!(timer.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.io).poll_read(cx, buf) {
            // Reading nothing means the end of the stream, which closes the connection properly.
            Poll::Pending => self.poll_owed(cx).map(Ok),
            read => {
                let line = &self.line;
                if line.at_work.get() == 0 && line.owed_since.get().is_none() && buf.filled().len() > before {
                    line.owed_since.set(Some(Instant::now()));
                }
                read
            }
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.io).poll_write(cx, buf) {
            Poll::Pending => self.poll_stalled(cx),
            written => {
                self.writing = None;
                if self.line.owed_since.get().is_some() {
                    self.line.owed_since.set(Some(Instant::now()));
                }
                written
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        let this = &mut *self;
        let linger = this.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        let mut unwanted = [0; 16 * 1024];
        while linger.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut unwanted);
            match ready!(Pin::new(&mut this.io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {}
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}
