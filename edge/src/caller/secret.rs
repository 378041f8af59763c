//! Random secrets that people carry in cookies and links.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rand::Rng;
use sha2::{Digest, Sha256};

/// The secret of a session, an invitation or a link. The database has only its hash.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// 256 random bits.
    #[must_use]
    pub fn generate() -> Self {
        let mut bytes = [0u8; 32];
        rand::rng().fill_bytes(&mut bytes);
        Self(BASE64_URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Parses a secret that somebody sent. None if it does not look like a secret.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// The secret itself, only for the cookie or link that carries it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub(crate) fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.0.as_bytes()).to_vec()
    }
}
