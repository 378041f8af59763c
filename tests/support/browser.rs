//! A real browser: headless Chromium, driven over WebDriver by Debian's chromium-driver.

use base::clock;
use std::{
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Stdio,
    sync::{LazyLock, Mutex},
    time::Duration,
};

use fantoccini::{Client, ClientBuilder, Locator, error::CmdError, wd::WebDriverCompatibleCommand};
use hyper_util::client::legacy::connect::HttpConnector;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    runtime::Runtime,
    time::{Instant, sleep, timeout},
};
use url::ParseError;

/// The size of a new window.
const WIDTH: u32 = 1200;
const HEIGHT: u32 = 900;
/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(60);
const ARGUMENTS: [&str; 7] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

/// How somebody's browser shows pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    Light,
    Dark,
    /// Without script: `js` and what is made of it cannot be used.
    NoScript,
}

/// Where the tasks of browsers run, which outlive the tests that started them.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().build().unwrap()
});
/// Browsers that nobody uses, as clean as new ones. Starting one takes longer than many of the tests in it.
static IDLE: Mutex<Vec<Chromium>> = Mutex::new(Vec::new());

/// A running browser with its driver. Both end, and its profile goes, when this is dropped or this process ends in whatever way.
struct Chromium {
    client: Client,
    /// Waits until its input is closed, which it is then.
    _reaper: std::process::Child,
}

impl Chromium {
    /// Starts a browser; none if there is no driver on this machine.
    async fn start(with_script: bool) -> Option<Self> {
        let (driver, port) = driver().await?;
        let profile = std::env::temp_dir().join(format!("tavernkeep-browser-{}", clock::id()));
        let reaper = std::process::Command::new("sh")
            // The driver's whole group: a killed driver leaves its browser behind.
            .args(["-c", r#"read -r _; kill -s KILL -- "-$1"; rm -rf "$2""#, "sh"])
            .arg(driver.id().unwrap().to_string())
            .arg(&profile)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            // Who ends the tests' group does not end it.
            .process_group(0)
            .spawn()
            .unwrap();
        let arguments = ARGUMENTS.iter().map(|argument| (*argument).to_owned());
        let arguments: Vec<String> = arguments
            .chain([format!("--user-data-dir={}", profile.display()), format!("--window-size={WIDTH},{HEIGHT}")])
            .collect();
        let mut options = json!({ "args": arguments });
        let mut capabilities = serde_json::Map::new();
        if !with_script {
            options["prefs"] = json!({ "profile.managed_default_content_settings.javascript": 2 });
        } else if let Some(shell) = headless_shell() {
            options["binary"] = json!(shell);
            capabilities.insert("browserName".to_owned(), json!("chrome-headless-shell"));
        }
        capabilities.insert("goog:chromeOptions".to_owned(), options);
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Some(Self { client, _reaper: reaper })
    }

    /// Forgets everything that a test has done in it.
    async fn clean(&self) -> Result<(), CmdError> {
        let mut windows = self.client.windows().await?;
        let first = windows.remove(0);
        for window in windows {
            self.client.switch_to_window(window).await?;
            self.client.close_window().await?;
        }
        self.client.switch_to_window(first).await?;
        let origin = self.client.current_url().await?.origin().ascii_serialization();
        self.client.goto("about:blank").await?;
        // A port may be given to another test's server.
        self.command("Storage.clearDataForOrigin", json!({ "origin": origin, "storageTypes": "all" })).await?;
        self.command("Network.clearBrowserCookies", json!({})).await?;
        self.command("Network.clearBrowserCache", json!({})).await?;
        self.emulate(Look::Light).await?;
        self.command("Emulation.clearDeviceMetricsOverride", json!({})).await?;
        self.command("Emulation.setTimezoneOverride", json!({ "timezoneId": "" })).await?;
        self.client.set_window_size(WIDTH, HEIGHT).await
    }

    async fn emulate(&self, look: Look) -> Result<(), CmdError> {
        let scheme = if look == Look::Dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.command("Emulation.setEmulatedMedia", features).await
    }

    /// A command of Chromium's own protocol (<https://chromedevtools.github.io/devtools-protocol/>).
    async fn command(&self, command: &'static str, parameters: Value) -> Result<(), CmdError> {
        self.client.issue_cmd(DevTools { command, parameters }).await.map(|_| ())
    }
}

#[derive(Debug)]
struct DevTools {
    command: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        base_url.join(&format!("session/{}/goog/cdp/execute", session_id.unwrap_or_default()))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.command, "params": self.parameters }).to_string()))
    }
}

/// Chromium without windows, if it is installed: it starts in a fifth of the time. It ignores preferences.
fn headless_shell() -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join("chromium-headless-shell")).find(|path| path.is_file())
}

/// Starts a driver, and the port it listens on; none if there is no driver on this machine. It picks a free port by itself, which
/// another process may take before it listens: it then ends, and the next one picks another.
async fn driver() -> Option<(Child, String)> {
    for _ in 0..5 {
        let driver = Command::new("chromedriver")
            .args(["--port=0", "--log-level=SEVERE"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // A group of its own, so that its browser goes with it.
            .process_group(0)
            .spawn();
        let Ok(mut driver) = driver else {
            let why = "there is no chromedriver; ./dev test installs it";
            // Who runs tests by hand may be without; where they decide, what was not run has failed.
            assert!(std::env::var_os("CI").is_none(), "{why}");
            println!("not run: {why}");
            return None;
        };
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                return Some((driver, port.trim_end_matches('.').to_owned()));
            }
        }
    }
    panic!("no driver says where it listens");
}

/// A browser with one window that knows nothing of other tests.
pub struct Browser {
    /// Always there until this is dropped.
    chromium: Option<Chromium>,
    client: Client,
    look: Look,
}

impl Browser {
    /// A browser; none if there is no driver on this machine.
    pub async fn open() -> Option<Self> {
        Self::open_as(Look::Light).await
    }

    /// The browser of somebody who sees pages in another way.
    pub async fn open_as(look: Look) -> Option<Self> {
        let idle = (look != Look::NoScript).then(|| IDLE.lock().unwrap().pop()).flatten();
        let chromium = match idle {
            Some(chromium) => chromium,
            None => RUNTIME.spawn(Chromium::start(look != Look::NoScript)).await.unwrap()?,
        };
        let browser = Self { client: chromium.client.clone(), chromium: Some(chromium), look };
        browser.look_at(look).await;
        Some(browser)
    }

    /// Shows pages in another way from now on, without loading them again.
    pub async fn look_at(&self, look: Look) {
        if let Some(chromium) = &self.chromium {
            chromium.emulate(look).await.unwrap();
        }
    }

    pub async fn goto(&self, url: &str) {
        let without_fragment = |url: &str| url.split('#').next().map(str::to_owned);
        // To go to another place of the page that is shown loads nothing.
        if without_fragment(&self.url().await) == without_fragment(url) {
            self.client.goto("about:blank").await.unwrap();
        }
        self.client.goto(url).await.unwrap();
    }

    pub async fn url(&self) -> String {
        self.client.current_url().await.unwrap().to_string()
    }

    /// What a function's body returns in the page.
    pub async fn js(&self, body: &str) -> Value {
        self.again(|| self.client.execute(body, Vec::new())).await
    }

    /// The text of the first element that `css` selects, as a person sees it; empty if there is none.
    pub async fn text(&self, css: &str) -> String {
        self.js(&format!("return document.querySelector({})?.innerText ?? ''", json!(css)))
            .await
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub async fn count(&self, css: &str) -> u64 {
        self.js(&format!("return document.querySelectorAll({}).length", json!(css))).await.as_u64().unwrap()
    }

    /// All of the page as it is now.
    pub async fn html(&self) -> String {
        self.client.source().await.unwrap()
    }

    pub async fn value(&self, css: &str) -> String {
        self.again(async || self.find(css).await.prop("value").await).await.unwrap_or_default()
    }

    pub async fn click(&self, css: &str) {
        self.again(async || self.find(css).await.click().await).await;
    }

    /// Writes into an empty field, or one whose text is given up.
    pub async fn write(&self, css: &str, text: &str) {
        self.again(async || {
            let field = self.find(css).await;
            field.clear().await?;
            field.send_keys(text).await
        })
        .await;
    }

    /// What came of something done in the page, done again while the page that it was begun in goes: that one takes its elements with
    /// it, and nothing was done.
    async fn again<T, F: Future<Output = Result<T, CmdError>>>(&self, mut done: impl FnMut() -> F) -> T {
        let begun = Instant::now();
        loop {
            match done().await {
                Ok(value) => return value,
                Err(error) if begun.elapsed() < PATIENCE && is_of_a_page_that_goes(&error) => {
                    sleep(Duration::from_millis(50)).await;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// An element, as soon as there is one.
    async fn find(&self, css: &str) -> fantoccini::elements::Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        found.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    /// Waits until an element's text holds this, also where there is no script.
    pub async fn reads(&self, css: &str, text: &str) {
        let begun = Instant::now();
        loop {
            // A page that goes takes its elements with it.
            let shown = self.find(css).await.text().await.unwrap_or_default();
            if shown.contains(text) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{css} reads {shown:?}, not {text:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Chooses a file of this machine.
    pub async fn upload(&self, css: &str, path: &str) {
        self.again(async || self.find(css).await.send_keys(path).await).await;
    }

    pub async fn choose(&self, css: &str, value: &str) {
        self.again(async || self.find(css).await.select_by_value(value).await).await;
    }

    /// Waits until a function's body returns true.
    #[track_caller]
    pub fn until(&self, what: impl Into<String>, body: impl Into<String>) -> impl Future<Output = ()> {
        let (what, body) = (what.into(), body.into());
        let at = std::panic::Location::caller();
        async move {
            let begun = Instant::now();
            while self.js(&format!("return Boolean((() => {{ {body} }})())")).await != true {
                if begun.elapsed() > PATIENCE {
                    panic!("{at}: {what}: did not come\n{}", self.js("return document.body.outerHTML").await);
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits until an element shows a text.
    #[track_caller]
    pub fn sees(&self, css: &str, text: &str) -> impl Future<Output = ()> {
        let body = format!("return document.querySelector({})?.innerText.includes({})", json!(css), json!(text));
        let what = format!("{text:?} in {css}");
        self.until(what, body)
    }

    /// Shows pages on a screen of this width, which may be less than a window can have; none for the window's own.
    pub async fn narrow(&self, width: Option<u32>) {
        let Some(chromium) = &self.chromium else { return };
        let shown = match width {
            Some(width) => {
                let screen = json!({ "width": width, "height": 700, "deviceScaleFactor": 1, "mobile": false });
                chromium.command("Emulation.setDeviceMetricsOverride", screen).await
            }
            None => chromium.command("Emulation.clearDeviceMetricsOverride", json!({})).await,
        };
        shown.unwrap();
    }

    /// Sets the clock of its reader to a time zone, such as `Asia/Tokyo`, for pages that are loaded from now on.
    pub async fn in_zone(&self, zone: &str) {
        let Some(chromium) = &self.chromium else { return };
        chromium.command("Emulation.setTimezoneOverride", json!({ "timezoneId": zone })).await.unwrap();
    }

    pub async fn resize(&self, width: u32, height: u32) {
        self.client.set_window_size(width, height).await.unwrap();
    }

    /// A picture of the window.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.unwrap()
    }
}

fn is_of_a_page_that_goes(error: &CmdError) -> bool {
    let said = error.to_string();
    ["stale element", "not attached", "does not belong to the document", "execution context", "navigat"]
        .iter()
        .any(|words| said.contains(words))
}

impl Drop for Browser {
    fn drop(&mut self) {
        // What a test that failed has left behind is nobody's to guess.
        if std::thread::panicking() || self.look == Look::NoScript {
            return;
        }
        let Some(chromium) = self.chromium.take() else { return };
        RUNTIME.spawn(async move {
            if let Ok(Ok(())) = timeout(PATIENCE, chromium.clean()).await {
                IDLE.lock().unwrap().push(chromium);
            }
        });
    }
}

/// A file on the disk of whoever sits at the browser.
pub fn file(name: &str, bytes: &[u8]) -> String {
    let folder = std::env::temp_dir().join(format!("tavernkeep-files-{}", clock::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_string_lossy().into_owned()
}
