//! The editor: by plain HTTP, as a browser without script would (`door`, `erase`, `roles`, `forms`, `tenant`, `together`, `unseen`), and in a
//! real Chromium (`browser`, `looks`).

mod back;
mod browser;
mod directions;
mod door;
mod entity;
mod erase;
mod evening;
mod fights;
mod fights_led;
mod files;
mod first_steps;
mod forms;
mod links;
mod looks;
mod lore;
mod merging;
mod reactions;
mod remedies;
mod roles;
mod saving;
mod screenshots;
mod seat;
mod second_factor;
mod signed_out;
mod speed;
mod tenant;
mod together;
mod tools;
mod tries;
mod unseen;
mod walk;

use base::clock;
use edge::users::Role;
use serde_json::Value;
use uuid::Uuid;

use crate::support::{Answer, Server, browser::Browser};

const EMAIL: &str = "mara@example.org";

/// Somebody with a browser without script: a cookie, pages and forms.
pub struct Visitor {
    http: reqwest::Client,
    base: String,
    cookie: String,
}

impl Visitor {
    fn at(server: &Server) -> Self {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { http, base: server.url.clone(), cookie: String::new() }
    }

    /// Somebody of this role who has signed in.
    pub async fn signed_in(server: &Server, tenant: Uuid, role: Role) -> Self {
        let email = format!("{}-{}@example.org", role.as_str(), clock::id().simple());
        let password = server.user(tenant, &email, role).await;
        let mut visitor = Self::at(server);
        visitor.sign_in(&email, &password).await.expect(303);
        visitor
    }

    /// Sets the password of an invitation or a reset.
    async fn choose_password(&mut self, link: &str, password: &str) -> Answer {
        let path = link.strip_prefix(&self.base).unwrap_or(link).to_owned();
        if self.cookie.is_empty() {
            self.get("/admin/sign-in").await;
        }
        let answer = self.post(&path, &[("name", "Somebody"), ("new_password", password), ("again", password)]).await;
        self.keep(&answer);
        answer
    }

    async fn sign_in(&mut self, email: &str, password: &str) -> Answer {
        self.get("/admin/sign-in").await.expect(200);
        let answer = self.post("/admin/sign-in", &[("email", email), ("password", password)]).await;
        self.keep(&answer);
        answer
    }

    fn keep(&mut self, answer: &Answer) {
        let cookies = answer.headers.get_all("set-cookie");
        let kept = cookies.iter().map(|c| c.to_str().unwrap()).find(|c| c.starts_with("tavernkeep="));
        if let Some(cookie) = kept {
            self.cookie = cookie.split(';').next().unwrap().to_owned();
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.header("cookie", &self.cookie).send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap(), body: Value::Null }
    }

    fn request(&self, method: &str, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), format!("{}{path}", self.base))
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        let answer = self.send(self.request("GET", path)).await;
        self.keep(&answer);
        answer
    }

    /// A form as this browser was given it: with the token of its pages.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let token = self.token();
        let mut all = vec![("form_token", token.as_str())];
        all.extend(fields);
        self.send(form(self.request("POST", path), &all)).await
    }

    /// What the pages' forms hold.
    fn token(&self) -> String {
        use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
        use sha2::{Digest, Sha256};
        let secret = self.cookie.split_once('=').map_or("", |(_, secret)| secret);
        let hash = Sha256::new().chain_update(b"tavernkeep form\0").chain_update(secret).finalize();
        // Behind a mask of zeros.
        BASE64_URL_SAFE_NO_PAD.encode([[0; 32], hash.into()].concat())
    }
}

/// A request with the fields of a form.
fn form(request: reqwest::RequestBuilder, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let quoted = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let body: Vec<String> = fields.iter().map(|(name, value)| format!("{}={}", quoted(name), quoted(value))).collect();
    request.header("content-type", "application/x-www-form-urlencoded").body(body.join("&"))
}

/// The value of a field of a page.
pub fn field(page: &str, name: &str) -> String {
    let (_, rest) = page.split_once(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("no field {name}: {page}"));
    let (tag, after) = rest.split_once('>').unwrap();
    match tag.split_once("value=\"") {
        Some((_, value)) => value.split('"').next().unwrap().to_owned(),
        None => after.split("</textarea>").next().unwrap().trim_start_matches('\n').to_owned(),
    }
}

/// Signs in, in a browser.
async fn sign_in(browser: &Browser, server: &Server, email: &str, password: &str) {
    browser.goto(&format!("{}/admin", server.url)).await;
    browser.write("#email", email).await;
    browser.write("#password", password).await;
    browser.click("main button").await;
}

/// Returns when somebody waits for a row that another holds.
async fn somebody_waits(server: &Server) {
    server.db.somebody_waits().await;
}

/// Whether a page is a file, which no browser shows, or a piece of a page.
fn is_file(path: &str) -> bool {
    [".json", ".svg", ".md", ".html", "/exchange/card", "/table/lines"].iter().any(|ending| path.ends_with(ending))
}

/// Whether a path is of no page, but of what a page follows.
fn is_stream(path: &str) -> bool {
    path.ends_with("/live") || path.ends_with("/table/turns/{x}")
}

/// A text of a page without tags, with single spaces.
pub fn words(page: &str) -> String {
    let mut text = String::new();
    for part in page.split('<') {
        text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
