//! Access tokens: for a few minutes they give a key's scopes or fewer. Only HS256 is accepted, whatever a token's
//! header says.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, TokenData, Validation, decode, decode_header, encode};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use base::{
    clock,
    error::{Error, Result},
    secrets::Secrets,
};

const ISSUER: &str = "tavernkeep";
const AUDIENCE: &str = "tavernkeep-api";
/// The audience of the token in a player's browser. The API does not accept these tokens.
const VISITS: &str = "tavernkeep-play";
/// How long a visit lasts after the table was opened last.
pub const VISIT_SECONDS: i64 = 12 * 3600;
/// A visit younger than this is not renewed.
const RENEWED_AFTER_SECONDS: i64 = 3600;
const TOKEN_BYTES_MAX: usize = 4096;
const LEEWAY_SECONDS: i64 = 30;

/// The claims of a token.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    pub iss: String,
    pub aud: String,
    /// The prefix of the key that the token was exchanged for. The token ends when that key ends.
    pub sub: String,
    /// The tenant.
    pub tid: Uuid,
    /// Scopes, separated by spaces.
    pub scope: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub campaign: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub player: Option<Uuid>,
    /// Only for a visit: its id, with which it can be ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
    /// Only for a visit: the player link by which it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Uuid>,
    /// Only for a visit: the end of what it began by. The visit cannot be renewed beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<i64>,
    pub iat: i64,
    pub nbf: i64,
    pub exp: i64,
}

impl Claims {
    /// The claims of an API token that is valid for `ttl_seconds` from now.
    #[must_use]
    pub fn of_token(key_prefix: &str, tenant: Uuid, narrowed: Narrowed, ttl_seconds: i64) -> Self {
        let now = clock::now().unix_timestamp();
        Self {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: key_prefix.to_owned(),
            tid: tenant,
            scope: narrowed.scope,
            campaign: narrowed.campaign,
            player: narrowed.player,
            jti: None,
            link: None,
            until: None,
            iat: now,
            nbf: now,
            exp: now + ttl_seconds,
        }
    }

    /// The claims of a new visit to the table in a browser, by a player link or by a token that is valid until `until`.
    #[must_use]
    pub fn of_visit(
        key_prefix: &str,
        tenant: Uuid,
        narrowed: Narrowed,
        link: Option<Uuid>,
        until: Option<i64>,
    ) -> Self {
        let claims = Self::of_token(key_prefix, tenant, narrowed, 0);
        Self { aud: VISITS.to_owned(), jti: Some(clock::id()), link, until, ..claims }.renewed()
    }

    /// The same visit from now on.
    #[must_use]
    pub fn renewed(self) -> Self {
        let now = clock::now().unix_timestamp();
        let end = now + VISIT_SECONDS;
        Self { iat: now, nbf: now, exp: self.until.map_or(end, |until| until.min(end)), ..self }
    }

    /// Whether they are valid now.
    fn are_current(&self) -> bool {
        let now = clock::now().unix_timestamp();
        self.nbf.saturating_sub(LEEWAY_SECONDS) <= now && now <= self.exp.saturating_add(LEEWAY_SECONDS)
    }

    /// Whether a visit should be renewed now.
    #[must_use]
    pub fn is_old(&self) -> bool {
        clock::now().unix_timestamp() - self.iat > RENEWED_AFTER_SECONDS
    }
}

struct Key {
    kid: String,
    encoding: EncodingKey,
    decoding: DecodingKey,
}

/// Signs and checks tokens. The first secret signs; every current secret can check.
pub struct Tokens {
    keys: Vec<Key>,
    validation: Validation,
    visits: Validation,
}

impl Tokens {
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        validation.set_required_spec_claims(&["exp", "nbf", "aud", "iss", "sub"]);
        // The library would go by the clock of this machine (`Claims::are_current`).
        validation.validate_exp = false;
        validation.validate_nbf = false;
        let keys = secrets.signing().map(|(kid, secret)| Key {
            kid,
            encoding: EncodingKey::from_secret(&secret),
            decoding: DecodingKey::from_secret(&secret),
        });
        let mut visits = validation.clone();
        visits.set_audience(&[VISITS]);
        Self { keys: keys.collect(), validation, visits }
    }

    /// Signs claims. The same claims and the same secret always give the same token.
    ///
    /// # Errors
    /// `internal` if it cannot be signed.
    pub fn sign(&self, claims: &Claims) -> Result<String> {
        let key = self.keys.first().ok_or_else(|| Error::internal("no signing secret"))?;
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::HS256) };
        encode(&header, claims, &key.encoding).map_err(Error::internal)
    }

    /// The claims of a token, if its signature is valid and it has not expired.
    #[must_use]
    pub fn check(&self, token: &str) -> Option<Claims> {
        self.checked(token, &self.validation)
    }

    /// The claims of a visit's token. They always have an id.
    #[must_use]
    pub fn check_visit(&self, token: &str) -> Option<Claims> {
        self.checked(token, &self.visits).filter(|claims| claims.jti.is_some())
    }

    fn checked(&self, token: &str, validation: &Validation) -> Option<Claims> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let kid = decode_header(token).ok()?.kid?;
        let key = self.keys.iter().find(|k| k.kid == kid)?;
        let data: TokenData<Claims> = decode(token, &key.decoding, validation).ok()?;
        Some(data.claims).filter(Claims::are_current)
    }
}

/// The restrictions of a token.
pub struct Narrowed {
    pub scope: String,
    pub campaign: Option<Uuid>,
    pub player: Option<Uuid>,
}
