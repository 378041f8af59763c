//! A cheap closed-loop HTTP client: keep-alive sockets, requests prepared once, answers read by their length.

use std::time::{Duration, Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::Failure;

/// A request as bytes.
#[must_use]
pub fn request(method: &str, path: &str, key: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// One connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Socket errors.
    pub async fn open(addr: &str) -> Result<Self, Failure> {
        let stream = TcpStream::connect(addr).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(16 * 1024) })
    }

    /// Sends a request and reads the whole answer. Returns its status and body.
    ///
    /// # Errors
    /// Socket errors, or an answer without a length.
    pub async fn send(&mut self, request: &[u8]) -> Result<(u16, &[u8]), Failure> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            let Some(end) = self.buffer.windows(4).position(|w| w == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&self.buffer[..end])?.to_ascii_lowercase();
            let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or("an answer without a status")?;
            let length = head
                .split("content-length:")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next()?.trim().parse().ok())
                .or((status == 204).then_some(0usize))
                .ok_or("an answer without a length")?;
            while self.buffer.len() < end + 4 + length {
                self.stream.read_buf(&mut self.buffer).await?;
            }
            return Ok((status, &self.buffer[end + 4..]));
        }
    }

    /// Sends a request whose answer is a stream, and reads until it contains `words`. Returns everything read so far.
    ///
    /// # Errors
    /// Socket errors, or an answer that is not a stream.
    pub async fn follow(&mut self, request: &[u8], words: &str) -> Result<String, Failure> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        self.until(words).await
    }

    /// Reads until the stream contains `words`.
    ///
    /// # Errors
    /// Socket errors, or an answer that is not a stream.
    pub async fn until(&mut self, words: &str) -> Result<String, Failure> {
        let words = words.as_bytes();
        let mut read = 0usize;
        while !self.buffer[read.saturating_sub(words.len())..].windows(words.len()).any(|w| w == words) {
            read = self.buffer.len();
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if !self.buffer.starts_with(b"HTTP/1.1 200") {
                return Err(String::from_utf8_lossy(&self.buffer).into_owned().into());
            }
        }
        Ok(String::from_utf8_lossy(&self.buffer).into_owned())
    }
}

/// The measurements of a run.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub requests: usize,
    pub failed: usize,
    pub seconds: f64,
    latencies: Vec<u32>,
}

impl Run {
    /// Requests per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// Sends one more request and records its result. Call [`ends`](Self::ends) after the last one.
    ///
    /// # Errors
    /// Socket errors.
    pub async fn note(&mut self, connection: &mut Connection, request: &[u8]) -> Result<(), Failure> {
        let sent = Instant::now();
        let (status, _) = connection.send(request).await?;
        self.failed += usize::from(!(200..300).contains(&status));
        self.latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Sums up what was recorded since `began`.
    pub fn ends(&mut self, began: Instant) {
        self.seconds = began.elapsed().as_secs_f64();
        self.requests = self.latencies.len();
        self.latencies.sort_unstable();
    }

    /// A quantile of the latency, in milliseconds.
    #[must_use]
    pub fn quantile_ms(&self, share: f64) -> f64 {
        let at = ((self.latencies.len() as f64) * share) as usize;
        self.latencies.get(at.min(self.latencies.len().saturating_sub(1))).map_or(0.0, |us| f64::from(*us) / 1000.0)
    }
}

/// Drives `clients` connections for `time`. Each repeats its own requests.
///
/// # Errors
/// Socket errors.
pub async fn drive(addr: &str, requests: &[Vec<Vec<u8>>], time: Duration) -> Result<Run, Failure> {
    run(addr, requests, Some(time)).await
}

/// Drives `clients` connections through their requests once.
///
/// # Errors
/// Socket errors.
pub async fn once(addr: &str, requests: &[Vec<Vec<u8>>]) -> Result<Run, Failure> {
    run(addr, requests, None).await
}

async fn run(addr: &str, requests: &[Vec<Vec<u8>>], time: Option<Duration>) -> Result<Run, Failure> {
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for own in requests {
        let own = own.clone();
        let addr = addr.to_owned();
        tasks.spawn(async move {
            let mut connection = Connection::open(&addr).await?;
            let mut run = Run::default();
            'time: loop {
                for request in &own {
                    if time.is_some_and(|time| started.elapsed() >= time) {
                        break 'time;
                    }
                    run.note(&mut connection, request).await?;
                }
                if time.is_none() {
                    break;
                }
            }
            Ok::<_, Failure>(run)
        });
    }
    let mut run = Run::default();
    while let Some(done) = tasks.join_next().await {
        let one = done??;
        run.failed += one.failed;
        run.latencies.extend(one.latencies);
    }
    run.ends(started);
    Ok(run)
}
