//! Keys derived from the operator's secret, and the encryption of tenants' provider keys and accounts' second factors.
//!
//! `TAVERNKEEP_SECRET_KEY` contains one secret, or two separated by a comma while rotating. The first signs and encrypts;
//! both verify and decrypt. Nothing in this module is ever logged.

use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead, KeyInit, Payload},
};
use hkdf::Hkdf;
use rand::Rng;
use sha2::Sha256;
use uuid::Uuid;

use crate::{
    error::{Error, Result},
    hex::hex,
};

const KID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;

/// The operator's current secrets.
pub struct Secrets {
    masters: Vec<String>,
}

impl Secrets {
    /// Parses one or two secrets of at least 32 characters, separated by a comma.
    ///
    /// # Errors
    /// A sentence that says what is wrong, without the secret.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let masters: Vec<String> = text.split(',').map(|s| s.trim().to_owned()).filter(|s| !s.is_empty()).collect();
        if !(1..=2).contains(&masters.len()) {
            return Err("must be one secret, or two separated by a comma".to_owned());
        }
        if masters.iter().any(|s| s.chars().count() < 32) {
            return Err("must have at least 32 characters".to_owned());
        }
        Ok(Self { masters })
    }

    fn derive<const N: usize>(master: &str, purpose: &[u8]) -> [u8; N] {
        let mut out = [0; N];
        // Only a length over 255 hashes fails. Ours are 4 and 32 bytes.
        let _ = Hkdf::<Sha256>::new(None, master.as_bytes()).expand(purpose, &mut out);
        out
    }

    fn kid(master: &str) -> [u8; KID_BYTES] {
        Self::derive(master, b"tavernkeep key id")
    }

    /// The signing keys and their ids. The first one signs.
    pub fn signing(&self) -> impl Iterator<Item = (String, [u8; 32])> {
        self.masters.iter().map(|m| {
            let kid = hex(&Self::kid(m));
            (kid, Self::derive(m, b"tavernkeep access tokens"))
        })
    }

    /// Encrypts a secret of a tenant or an account. The id is authenticated, so the result cannot be decrypted for another id.
    ///
    /// # Errors
    /// `internal` if encryption fails.
    pub fn seal(&self, tenant: Uuid, plain: &str) -> Result<Vec<u8>> {
        let master = self.masters.first().ok_or_else(|| Error::internal("no secret"))?;
        let mut nonce = [0u8; NONCE_BYTES];
        rand::rng().fill_bytes(&mut nonce);
        let payload = Payload { msg: plain.as_bytes(), aad: tenant.as_bytes() };
        let sealed =
            Self::cipher(master).encrypt(&XNonce::from(nonce), payload).map_err(|e| Error::internal(e.to_string()))?;
        Ok([&Self::kid(master)[..], &nonce, &sealed].concat())
    }

    /// Decrypts a secret of a tenant or an account.
    ///
    /// # Errors
    /// `internal` if it was encrypted with a secret that is no longer configured, or for another id.
    pub fn open(&self, tenant: Uuid, sealed: &[u8]) -> Result<String> {
        let broken =
            || Error::internal("a stored secret cannot be decrypted with the configured TAVERNKEEP_SECRET_KEY");
        let (kid, rest) = sealed.split_at_checked(KID_BYTES).ok_or_else(broken)?;
        let (nonce, body) = rest.split_at_checked(NONCE_BYTES).ok_or_else(broken)?;
        let master = self.masters.iter().find(|m| Self::kid(m) == kid).ok_or_else(broken)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| broken())?;
        let payload = Payload { msg: body, aad: tenant.as_bytes() };
        let plain = Self::cipher(master).decrypt(&XNonce::from(nonce), payload).map_err(|_| broken())?;
        String::from_utf8(plain).map_err(|_| broken())
    }

    fn cipher(master: &str) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Self::derive::<32>(master, b"tavernkeep tenant secrets").into())
    }
}
