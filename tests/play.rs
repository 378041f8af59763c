//! The table in a browser: by plain HTTP (`commands`, `door`, `forms`, `links`), and in a real Chromium (`talk`, `live`, `looks`); `again`, `fight`,
//! `location` and `story` do both.

mod again;
mod commands;
mod door;
mod fight;
mod forms;
mod links;
mod live;
mod location;
mod looks;
mod story;
mod talk;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, World, browser::Browser};

const ALICE: &str = "player_alice";
const MALLORY: &str = "player_mallory";

/// A player's token for the campaign.
pub async fn token(client: &Client<'_>, player: &str) -> String {
    let body = json!({ "scopes": ["read", "play"], "campaign": "port-town", "player_id": player });
    client.post("/v1/auth/token", body).await.expect(200).body["access_token"].as_str().unwrap().to_owned()
}

/// Somebody at the table without a browser: a cookie and forms.
pub struct Guest {
    http: reqwest::Client,
    base: String,
    cookie: String,
}

impl Guest {
    fn at(server: &Server) -> Self {
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { http, base: server.url.clone(), cookie: String::new() }
    }

    /// Sits down with a token.
    pub async fn seated(server: &Server, token: &str) -> Self {
        let mut guest = Self::at(server);
        let answer = guest.enter("port-town", token).await.expect(303);
        assert_eq!(answer.header("location"), "/play/port-town");
        guest.cookie = answer.header("set-cookie").split(';').next().unwrap().to_owned();
        guest
    }

    pub fn http(&self) -> &reqwest::Client {
        &self.http
    }

    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    async fn enter(&self, campaign: &str, token: &str) -> Answer {
        self.send(self.form(&format!("/play/{campaign}/enter"), &[("token", token)])).await
    }

    pub fn form(&self, path: &str, fields: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let body: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
        let request = self.http.post(format!("{}{path}", self.base)).body(body.join("&"));
        request.header("content-type", "application/x-www-form-urlencoded").header("cookie", &self.cookie)
    }

    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap(), body: Value::Null }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.http.get(format!("{}{path}", self.base)).header("cookie", &self.cookie)).await
    }

    /// The table as it is now.
    async fn page(&self) -> String {
        self.get("/play/port-town").await.expect(200).text
    }
}

/// A value as a form writes it.
fn quoted(value: &str) -> String {
    value.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Opens a player's link in a browser; none without a browser.
pub async fn sit_down(client: &Client<'_>, player: &str) -> Option<Browser> {
    let browser = Browser::open().await?;
    open_link(&browser, client, player).await;
    Some(browser)
}

pub async fn open_link(browser: &Browser, client: &Client<'_>, player: &str) {
    let token = token(client, player).await;
    browser.goto(&format!("{}/play/port-town#{token}", client.server.url)).await;
    browser.until("the table", "return document.getElementById('log')").await;
}

/// What a frontend or a game master says over REST.
async fn says(world: &World<'_>, mut body: Value) -> String {
    body.as_object_mut().unwrap().entry("author").or_insert(json!("gm"));
    world.post("/messages", body).await.expect(201).id()
}
