//! What a fault happens to: a PostgreSQL of its own behind a wire, a model, and two servers whose addresses stay the same
//! when they are started again.

use std::{
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    str::FromStr,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use pgcluster::{DATABASE, EmbeddedPostgres};
use sqlx::{ConnectOptions, Connection, PgConnection, postgres::PgConnectOptions};

use crate::support::{Child, Database, Prepared, wire::Wire};

/// Connections that the cluster allows, those of the servers among them.
pub const CONNECTIONS_MAX: usize = 60;

/// A cluster in a directory of its own, which is deleted at the end.
pub struct Cluster {
    dir: PathBuf,
    /// Whether the directory is a file system of its own, with an end that can be reached.
    is_small: bool,
    running: Option<EmbeddedPostgres>,
}

impl Cluster {
    /// A new cluster; with `bytes_max` on a file system that holds no more.
    async fn make(bytes_max: Option<u64>) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tavernkeep-faults-{}-{number}", std::process::id()));
        if let Some(bytes) = bytes_max {
            std::fs::create_dir(&dir).unwrap();
            let size = format!("size={bytes},mode=0755");
            run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", dir.to_str().unwrap()]);
        }
        let mut cluster = Self { dir, is_small: bytes_max.is_some(), running: None };
        cluster.start().await;
        cluster
    }

    /// Starts it, on another port than before.
    pub async fn start(&mut self) {
        // A killed server leaves its data as they were in the kernel's memory, so nothing needs the disk.
        let most = CONNECTIONS_MAX.to_string();
        let settings = [("max_connections", most.as_str()), ("fsync", "off"), ("wal_recycle", "off")];
        self.running = Some(pgcluster::start_with(&self.dir, &settings).await.unwrap());
    }

    /// Host and port at which it answers now.
    fn address(&self) -> String {
        let options = PgConnectOptions::from_str(&self.url()).unwrap();
        format!("{}:{}", options.get_host(), options.get_port())
    }

    /// Its owner's URL, without a wire between.
    pub fn url(&self) -> String {
        self.running.as_ref().unwrap().owner_url().to_owned()
    }

    /// A connection that sees every tenant.
    pub async fn superuser(&self) -> PgConnection {
        let options = PgConnectOptions::from_str(self.running.as_ref().unwrap().superuser_url()).unwrap();
        options.database(DATABASE).connect().await.unwrap()
    }

    fn postmaster(&self) -> u32 {
        let file = self.running.as_ref().unwrap().data_dir().join("cluster/postmaster.pid");
        std::fs::read_to_string(file).unwrap().lines().next().unwrap().trim().parse().unwrap()
    }

    /// The server's processes: the first, then those it began.
    fn processes(&self) -> Vec<u32> {
        let postmaster = self.postmaster();
        let task = format!("/proc/{postmaster}/task/{postmaster}/children");
        let children = std::fs::read_to_string(task).unwrap_or_default();
        std::iter::once(postmaster).chain(children.split_whitespace().filter_map(|pid| pid.parse().ok())).collect()
    }

    /// `kill -9` of every process of it; [`Cluster::start`] begins with a recovery.
    pub async fn kill(&mut self) {
        for process in self.processes() {
            signal("-KILL", process);
        }
        self.running.as_mut().unwrap().wait().await;
        self.running = None;
    }

    /// Whether it answers.
    pub async fn is_up(&self) -> bool {
        PgConnection::connect(&self.url()).await.is_ok()
    }

    /// Ends it without waiting for anybody's transaction.
    pub async fn stop(&mut self) {
        self.running.take().unwrap().stop().await.unwrap();
    }

    /// Stops every process in the middle of what it does; the kernel still takes what is sent to them.
    pub fn freeze(&self) -> Vec<u32> {
        // The first one begins new ones, so it goes first.
        let frozen = self.processes();
        frozen.iter().for_each(|process| signal("-STOP", *process));
        frozen
    }

    /// Lets them go on.
    pub fn thaw(&self, frozen: &[u32]) {
        frozen.iter().for_each(|process| signal("-CONT", *process));
    }

    /// Fills the file system to its last byte; deleting the file makes room again.
    pub fn fill(&self) -> PathBuf {
        assert!(self.is_small, "only a small file system is filled");
        let file = self.dir.join("filled");
        let mut to = std::fs::File::create(&file).unwrap();
        let zeros = vec![0_u8; 64 * 1024];
        while std::io::Write::write_all(&mut to, &zeros).is_ok() {}
        file
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            // It ends when its handle goes; the files must stay until then.
            let postmaster = self.dir.join("cluster/postmaster.pid");
            drop(running);
            for _ in 0..200 {
                if !postmaster.exists() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
        if self.is_small {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn signal(name: &str, process: u32) {
    // Some may have ended by themselves meanwhile.
    let _ = Command::new("kill").args([name, &process.to_string()]).stderr(std::process::Stdio::null()).status();
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}: run it as root");
}

/// Whether a small file system can be made here; only root may.
pub fn can_fill() -> bool {
    Path::new("/proc/self/status").exists()
        && std::fs::read_to_string("/proc/self/status").is_ok_and(|s| s.contains("\nUid:\t0\t"))
}

/// A server that can be started again where it was.
pub struct Replica {
    bind: String,
    child: Option<Child>,
}

/// Everything of one fault.
pub struct Stage {
    pub cluster: Cluster,
    pub wire: Wire,
    pub model: rehearsal::Rehearsal,
    prepared: Prepared,
    env: Vec<(String, String)>,
    replicas: Vec<Replica>,
}

impl Stage {
    /// Two servers that work, on a world of one tenant.
    pub async fn set() -> Self {
        Self::with(None, &[]).await
    }

    /// The same on a file system that holds no more than `bytes_max`, and with more in the servers' environment.
    pub async fn with(bytes_max: Option<u64>, env: &[(&str, &str)]) -> Self {
        let cluster = Cluster::make(bytes_max).await;
        let url = cluster.url();
        tavernkeep::database::migrate(&url, &url).await.unwrap();
        let prepared = Prepared::on(Database::elsewhere(url)).await;
        let wire = Wire::to(&cluster.address()).await;
        let model =
            rehearsal::start(rehearsal::Options { record_requests_max: 100, ..Default::default() }).await.unwrap();
        let mut env: Vec<_> = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        env.push(("DATABASE_URL".to_owned(), wire.url(&prepared.db.url)));
        env.push(("RUST_LOG".to_owned(), "warn".to_owned()));
        let replicas = [(); 2].map(|()| Replica { bind: free_address().to_string(), child: None });
        let mut stage = Self { cluster, wire, model, prepared, env, replicas: replicas.into() };
        for nth in 0..stage.replicas.len() {
            stage.start_server(nth).await;
        }
        stage
    }

    pub fn credential(&self) -> &str {
        &self.prepared.credential
    }

    /// Where the servers answer, whether they run or not.
    pub fn urls(&self) -> Vec<String> {
        self.replicas.iter().map(|replica| format!("http://{}", replica.bind)).collect()
    }

    /// Starts a server where it was before.
    pub async fn start_server(&mut self, nth: usize) {
        let bind = self.replicas[nth].bind.clone();
        let env = self.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let env: Vec<_> = env.chain([("TAVERNKEEP_BIND", bind.as_str())]).collect();
        self.replicas[nth].child = Some(self.prepared.start_with(&self.model, &env).await);
    }

    /// `kill -9` of a server.
    pub async fn kill_server(&mut self, nth: usize) {
        self.replicas[nth].child.take().unwrap().kill().await;
    }

    /// Starts PostgreSQL again; the servers find it where it was.
    pub async fn start_postgres(&mut self) {
        self.cluster.start().await;
        self.wire.aim(&self.cluster.address());
    }

    /// What the servers hold in memory, in bytes, and what they logged.
    pub fn servers(&self) -> impl Iterator<Item = (u64, String)> {
        self.replicas.iter().filter_map(|replica| replica.child.as_ref()).map(|c| (c.memory_bytes(), c.log()))
    }
}

/// An address on loopback that nobody uses.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
