//! What tests start from: a server with a database of its own, tenants with keys, and short ways to call it.

pub mod browser;
mod child;
pub mod contract;
pub mod cut;
mod database;
mod routes;
pub mod scripted;
pub mod sse;
pub mod wire;
mod world;

use std::{
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use base::secrets::Secrets;
use edge::{
    auth::service::store_key,
    caller::{Scope, keys::NewKey},
    tenant_settings::service as tenants,
    users::{
        Role,
        operator::{self, Brought, UserRequest},
    },
};
use llm::Endpoint;
use reqwest::{Method, header::HeaderMap};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tavernkeep::{app::App, config::Config, database::connect_waiting, ops::maintenance};
use uuid::Uuid;

pub use child::{Child, Prepared, SWEEPS, operator, program};
pub use database::{DEMO_KEY, DEMO_PASSWORD, Database, close_others, reads};
pub use routes::{Rows, counts};
pub use wire::Wire;
pub use world::World;

/// The processor's time that this thread has used, where the system tells it. What others do on the machine does not count.
pub fn processor_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let told = std::fs::read_to_string("/proc/thread-self/schedstat");
    let nanoseconds = told.ok().and_then(|told| told.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

/// The secret that test servers sign with.
pub const SECRET: &str = "a secret for tests that is forty characters long";

/// What test servers are told, unless a test says otherwise.
const OURS: [(&str, &str); 4] = [
    ("TAVERNKEEP_BIND", "127.0.0.1:0"),
    ("TAVERNKEEP_WORKERS", "1"),
    ("DATABASE_CONNECTIONS_MAX", "6"),
    // Tests that ask much at once are about something else than how much there is room for.
    ("TAVERNKEEP_REQUESTS_MAX", "1000"),
];

/// What every server of a test is told, unless a test is about waiting: most are about something else than how busy the machine is.
const PATIENT: [(&str, &str); 5] = [
    ("LLM_FIRST_TOKEN_TIMEOUT_MS", "120000"),
    ("LLM_TIMEOUT_MS", "240000"),
    ("PLANNER_TIMEOUT_MS", "120000"),
    ("TAVERNKEEP_BRIDGE_ROLL_TIMEOUT_MS", "60000"),
    ("DATABASE_WAIT_MS", "60000"),
];

/// Servers of one database hold different numbers, else the second would wait for the first.
static INSTANCE: AtomicU32 = AtomicU32::new(1);

/// A running server with its model and database.
pub struct Server {
    pub url: String,
    pub db: Database,
    pub model: rehearsal::Rehearsal,
    pub app: Arc<App>,
    http: reqwest::Client,
    handle: actix_web::dev::ServerHandle,
}

impl Server {
    /// Starts a server with the defaults.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a server with the demo in its database: [`DEMO_KEY`] and [`DEMO_PASSWORD`] open it.
    pub async fn with_demo() -> Self {
        Self::on(Database::with_demo().await, &[]).await
    }

    /// Starts a server with variables of the environment set.
    pub async fn start_with(env: &[(&str, &str)]) -> Self {
        Self::on(Database::create().await, env).await
    }

    /// Starts a server on a database that is there: a second replica, or a restart.
    pub async fn on(db: Database, env: &[(&str, &str)]) -> Self {
        let model =
            rehearsal::start(rehearsal::Options { record_requests_max: 10_000, ..Default::default() }).await.unwrap();
        let config = Config::read(&|name| {
            env.iter()
                .chain(&OURS)
                .chain(&PATIENT)
                .find(|(variable, _)| *variable == name)
                .map(|(_, value)| (*value).to_owned())
        })
        .unwrap();
        let pool = connect_waiting(&db.url, config.database_connections_max, config.database_wait).await.unwrap();
        let instance = i64::from(INSTANCE.fetch_add(1, Ordering::Relaxed));
        let held = tavernkeep::database::hold_instance(&db.url, instance).await.unwrap();
        let endpoint =
            config.model.clone().unwrap_or_else(|| Endpoint::trusted(&model.base_url(), None, "rehearsal").unwrap());
        let app = App::new(config, pool, Secrets::parse(SECRET).unwrap(), endpoint, instance).unwrap();
        let app = actix_web::web::Data::new(app);
        let (server, addr) = tavernkeep::server::serve(app.clone()).unwrap();
        let handle = server.handle();
        tokio::spawn(server);
        let app = app.into_inner();
        maintenance::start(&app, &db.url, held);
        let http = reqwest::Client::builder().timeout(Duration::from_secs(180)).build().unwrap();
        Self { url: format!("http://{addr}"), db, model, app, http, handle }
    }

    /// Stops the server without ceremony.
    pub async fn stop(self) -> Database {
        self.handle.stop(false).await;
        self.app.pool.close();
        self.db
    }

    /// A connection as the schema's owner, to look behind the curtain.
    pub async fn owner(&self) -> PgConnection {
        PgConnection::connect(&self.db.url).await.unwrap()
    }

    /// The pool of the application's role.
    pub fn pool(&self) -> &db::pool::Pool {
        &self.app.pool
    }

    /// A new tenant with a key of every scope and no limits.
    pub async fn tenant(&self, slug: &str) -> Client<'_> {
        let mut db = self.owner().await;
        let limits = edge::tenants::TenantLimits::unlimited();
        let tenant = tenants::create(&mut db, slug, slug, &limits).await.unwrap();
        let client = Client { server: self, tenant, credential: String::new() };
        client.with_scopes(&Scope::ALL).await
    }

    /// A user of the editor, and their password. Who has an account already comes with it.
    pub async fn user(&self, tenant: Uuid, email: &str, role: Role) -> String {
        let password = "a password nobody guesses";
        let wanted = UserRequest { tenant, email, name: None, role, password: Some(password), invite: false };
        let mut db = self.owner().await;
        if let Brought::Invited { .. } = operator::bring(&mut db, &wanted).await.unwrap() {
            let joined =
                "INSERT INTO membership (tenant_id, user_id, role) SELECT $1, id, $3 FROM app_user WHERE email = $2";
            sqlx::query(joined).bind(tenant).bind(email).bind(role.as_str()).execute(&mut db).await.unwrap();
            sqlx::query("DELETE FROM invitation WHERE tenant_id = $1").bind(tenant).execute(&mut db).await.unwrap();
        }
        password.to_owned()
    }

    /// The erasure of somebody.
    pub async fn erasure_of(&self, subject: &str) -> String {
        let row = sqlx::query("SELECT id::text FROM erasure WHERE $1::uuid = ANY (subject_ids)").bind(subject);
        sqlx::Row::get(&row.fetch_one(&mut self.owner().await).await.unwrap(), 0)
    }

    /// A client without a credential.
    pub fn anonymous(&self) -> Client<'_> {
        Client { server: self, tenant: Uuid::nil(), credential: String::new() }
    }
}

/// Waits until something is so, as long as any machine needs, but not so long that the test counts as hanging: then nobody would learn
/// what it waited for.
pub async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !done().await {
        assert!(begun.elapsed() < Duration::from_secs(240), "waited in vain for: {what}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// Asks again what a server was too busy for: on a slow machine it may say so, and has done nothing then.
pub async fn patiently<F: Future<Output = Answer>>(mut ask: impl FnMut() -> F) -> Answer {
    for _ in 0..600 {
        let answer = ask().await;
        if answer.status != 503 || answer.header("retry-after").is_empty() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("it is too busy for ever");
}

/// The JSON within the fence that a tool's result stands in for a model.
pub fn fenced(text: &str) -> Value {
    let inside = text.trim().split_once('\n').and_then(|(_, rest)| rest.rsplit_once('\n')).map(|(inside, _)| inside);
    serde_json::from_str(&inside.unwrap_or_default().replace("&lt;", "<"))
        .unwrap_or_else(|_| panic!("no fence: {text}"))
}

/// A caller with a credential.
pub struct Client<'a> {
    pub server: &'a Server,
    pub tenant: Uuid,
    pub credential: String,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub body: Value,
}

impl Answer {
    /// The answer, if its status is `status`.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// The answer, if it is the problem `code`.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.body["code"].as_str()), (status, Some(code)), "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        self
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// The `id` of the body.
    pub fn id(&self) -> String {
        self.body["id"].as_str().unwrap().to_owned()
    }

    /// The items of a list.
    pub fn items(&self) -> &Vec<Value> {
        self.body["items"].as_array().unwrap()
    }

    /// The pointers of a problem's errors.
    pub fn pointers(&self) -> Vec<&str> {
        self.body["errors"].as_array().into_iter().flatten().filter_map(|e| e["pointer"].as_str()).collect()
    }
}

impl<'a> Client<'a> {
    /// The same client at another server.
    pub fn at<'s>(&self, server: &'s Server) -> Client<'s> {
        Client { server, tenant: self.tenant, credential: self.credential.clone() }
    }

    /// The same tenant with a key of these scopes only.
    pub async fn with_scopes(&self, scopes: &[Scope]) -> Client<'a> {
        let key = NewKey::generate();
        let mut db = self.server.owner().await;
        store_key(&mut db, self.tenant, &key, "test", scopes, None).await.unwrap();
        Client { server: self.server, tenant: self.tenant, credential: key.key }
    }

    /// The same tenant with another credential.
    pub fn with_credential(&self, credential: &str) -> Client<'a> {
        Client { server: self.server, tenant: self.tenant, credential: credential.to_owned() }
    }

    /// A token narrowed as `body` says.
    pub async fn token(&self, body: Value) -> Client<'a> {
        let answer = self.post("/v1/auth/token", body).await.expect(200);
        self.with_credential(answer.body["access_token"].as_str().unwrap())
    }

    /// A request to be changed before it is sent.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.server.http.request(method, format!("{}{path}", self.server.url));
        if self.credential.is_empty() { request } else { request.bearer_auth(&self.credential) }
    }

    /// Sends a request and reads the answer, which is as `openapi.yaml` says.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let (sent, answer) = self.exchange(request).await;
        contract::check(&sent, &answer).unwrap_or_else(|wrong| panic!("{wrong}"));
        answer
    }

    /// The same for a request that `openapi.yaml` does not describe.
    pub async fn send_odd(&self, request: reqwest::RequestBuilder) -> Answer {
        self.exchange(request).await.1
    }

    async fn exchange(&self, request: reqwest::RequestBuilder) -> (contract::Sent, Answer) {
        let (http, request) = request.build_split();
        let request = request.unwrap();
        let sent = contract::Sent::of(&request);
        let response = http.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        // A stream of events does not end.
        let streams = headers.get("content-type").is_some_and(|t| t.as_bytes().starts_with(b"text/event-stream"));
        let text = if streams { String::new() } else { response.text().await.unwrap() };
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        (sent, Answer { status, headers, text, body })
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn post_with_key(&self, path: &str, key: &str, body: Value) -> Answer {
        self.send(self.request(Method::POST, path).header("idempotency-key", key).json(&body)).await
    }

    pub async fn patch(&self, path: &str, body: Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// A campaign with seed 002's people in it: see [`World`].
    pub async fn world(&self) -> World<'_> {
        World::make(self, "port-town").await
    }

    /// A turn of an NPC.
    pub async fn npc_turn(&self, campaign: &str, npc: &str, player: &str, action: &str) -> Answer {
        let body = json!({ "player_id": player, "action": action });
        self.post(&format!("/v1/campaigns/{campaign}/npcs/{npc}/turns"), body).await
    }

    /// A turn of an owner.
    pub async fn owner_turn(&self, campaign: &str, owner: &str, player: &str, action: &str) -> Answer {
        let body = json!({ "player_id": player, "action": action });
        self.post(&format!("/v1/campaigns/{campaign}/owners/{owner}/turns"), body).await
    }
}
