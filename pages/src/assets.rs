//! The files that pages load: the stylesheet, scripts, fonts and pictures.
//!
//! Pages name a file by [`url()`], which holds a digest of the file's bytes. A browser may keep such a file for a year, because
//! other bytes have another name. A new file is one line in [`FILES`], and pages show an icon of `static/icons.svg` by [`icon`].
//! Everything here is part of the program, and nothing of it was written by a user.

use std::{borrow::Cow, collections::HashMap, io::Write as _, sync::LazyLock};

use askama::filters::Safe;
use base::hex::hex;
use flate2::{Compression, write::GzEncoder};
use sha2::{Digest, Sha256};

/// Hexadecimal digits of a digest in a file's name.
const DIGITS: usize = 12;

/// A file as it is served.
pub struct Asset {
    pub media: &'static str,
    pub body: Cow<'static, [u8]>,
    /// The body compressed by gzip, if that makes it smaller.
    pub gzip: Option<Vec<u8>>,
    /// `/static/` and the name with its digest.
    url: String,
}

struct File {
    name: &'static str,
    media: &'static str,
    body: &'static [u8],
}

const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const FONT: &str = "font/woff2";

macro_rules! file {
    ($name:literal, $media:expr, $path:literal) => {
        File { name: $name, media: $media, body: include_bytes!(concat!("../../static/", $path)) }
    };
}

/// The one stylesheet, in the order of its parts.
const STYLES: &str = concat!(
    include_str!("../../static/css/tokens.css"),
    include_str!("../../static/css/base.css"),
    include_str!("../../static/css/pieces.css"),
    include_str!("../../static/css/door.css"),
    include_str!("../../static/css/editor.css"),
    include_str!("../../static/css/entity.css"),
    include_str!("../../static/css/forms.css"),
    include_str!("../../static/css/lists.css"),
    include_str!("../../static/css/lab.css"),
    include_str!("../../static/css/table.css"),
    include_str!("../../static/css/docs.css"),
);

/// The files. Those that the stylesheet names stand before it. htmx and its extension are copied from their npm packages.
const FILES: &[File] = &[
    file!("alegreya.woff2", FONT, "fonts/alegreya.woff2"),
    file!("alegreya-ext.woff2", FONT, "fonts/alegreya-ext.woff2"),
    file!("commissioner.woff2", FONT, "fonts/commissioner.woff2"),
    file!("commissioner-ext.woff2", FONT, "fonts/commissioner-ext.woff2"),
    file!("icon.svg", SVG, "icon.svg"),
    file!("icons.svg", SVG, "icons.svg"),
    file!("tavern.svg", SVG, "tavern.svg"),
    File { name: "tavernkeep.css", media: CSS, body: STYLES.as_bytes() },
    file!("editor.js", SCRIPT, "editor.js"),
    file!("lists.js", SCRIPT, "lists.js"),
    file!("table.js", SCRIPT, "table.js"),
    file!("times.js", SCRIPT, "times.js"),
    file!("htmx.min.js", SCRIPT, "vendor/htmx.min.js"),
    file!("htmx-sse.min.js", SCRIPT, "vendor/htmx-sse.min.js"),
];

static ASSETS: LazyLock<HashMap<&'static str, Asset>> = LazyLock::new(|| {
    let mut assets: HashMap<&'static str, Asset> = HashMap::new();
    for file in FILES {
        let mut body = Cow::Borrowed(file.body);
        if file.media == CSS {
            let mut text = String::from_utf8_lossy(file.body).into_owned();
            for (name, asset) in &assets {
                text = text.replace(&format!("\"/static/{name}\""), &format!("\"{}\"", asset.url));
            }
            body = Cow::Owned(text.into_bytes());
        }
        let url = format!("/static/{}", versioned(file.name, &body));
        let gzip = Some(gzip(&body)).filter(|smaller| !smaller.is_empty() && smaller.len() < body.len());
        assets.insert(file.name, Asset { media: file.media, body, gzip, url });
    }
    assets
});

/// The name with a digest of the bytes after its first dot: `icon.svg` becomes `icon.0123456789ab.svg`.
fn versioned(name: &str, body: &[u8]) -> String {
    let digest = hex(&Sha256::digest(body));
    let (stem, end) = name.split_once('.').unwrap_or((name, ""));
    format!("{stem}.{}.{end}", &digest[..DIGITS])
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory cannot fail. An empty result is not used.
    out.write_all(body).and_then(|()| out.finish()).unwrap_or_default()
}

/// The path of a file, with its version. A name that is not in the list keeps no version, and is not found.
#[must_use]
pub fn url(name: &'static str) -> &'static str {
    ASSETS.get(name).map_or(name, |asset| &asset.url)
}

/// An icon or the emblem: a drawing that says nothing by itself, so its label stands beside it.
#[must_use]
pub fn icon(name: &str) -> Safe<String> {
    Safe(format!(r#"<svg class="icon" aria-hidden="true"><use href="{}#{name}"/></svg>"#, url("icons.svg")))
}

/// Finds what a path below `/static/` names, and whether it names exactly this version. A page that another version of the program
/// wrote gets the file of this one, which a browser does not keep for long.
#[must_use]
pub fn find(name: &str) -> Option<(&'static Asset, bool)> {
    if let Some(asset) = ASSETS.get(name) {
        return Some((asset, false));
    }
    let (stem, rest) = name.split_once('.')?;
    let (version, end) = rest.split_once('.')?;
    let is_version = version.len() == DIGITS && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    let asset = ASSETS.get(format!("{stem}.{end}").as_str()).filter(|_| is_version)?;
    Some((asset, asset.url.strip_prefix("/static/") == Some(name)))
}
