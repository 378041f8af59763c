//! `Idempotency-Key`: the first answer is stored in the same transaction as the work, and replayed for 24 hours.
//!
//! Failed requests are not stored, so a client can correct or retry them with the same key. Turns store their keys in
//! `turns::store`, because their work spans two transactions.
//!
//! A stored answer is returned before anything else in the request is checked. So a caller must never get the answer
//! that was given to somebody with a wider token. To ensure that, a key is bound to the campaign, player and scopes of
//! the caller's token. Routes do not need to care.

use actix_web::{HttpMessage, HttpRequest};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::types::Json;
use uuid::Uuid;

use super::{Answer, StoredAnswer};
use crate::caller::Caller;
use base::{
    clock,
    error::{Code, Error, Result},
    hex::hex,
    stored::Columns,
};
use db::tenancy::TenantTx;

/// A key, bound to a route, a body and what the caller may do.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    pub key: String,
    /// Method and path. For a restricted token also its campaign and player: each has keys of its own.
    pub route: String,
    /// The hash of the body, the query and the caller's scopes.
    pub fingerprint: Vec<u8>,
}

/// A key as `claim_key` in the database takes it.
#[derive(Serialize)]
pub struct ClaimRow<'a> {
    id: Uuid,
    route: &'a str,
    key: &'a str,
    fingerprint: String,
}

impl IdempotencyKey {
    /// The key in a document for database functions that claim it.
    #[must_use]
    pub fn row(&self) -> ClaimRow<'_> {
        ClaimRow { id: clock::id(), route: &self.route, key: &self.key, fingerprint: hex(&self.fingerprint) }
    }

    /// Reads the request's key, quoted (as a structured field) or bare.
    ///
    /// # Errors
    /// `bad_request` if it is empty, longer than 255 characters or not printable.
    pub fn from_request(request: &HttpRequest, body_hash: &[u8]) -> Result<Option<Self>> {
        let Some(value) = request.headers().get("idempotency-key") else { return Ok(None) };
        let text = value.to_str().unwrap_or_default().trim();
        let key = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).unwrap_or(text);
        if key.is_empty() || key.len() > 255 || !key.bytes().all(|b| b.is_ascii_graphic() || b == b' ') {
            return Err(Error::new(Code::BadRequest, "An Idempotency-Key must have 1 to 255 printable characters."));
        }
        let mut route = format!("{} {}", request.method(), request.path());
        let mut print = Sha256::new().chain_update(body_hash).chain_update(request.query_string());
        if let Some(caller) = request.extensions().get::<Caller>() {
            // A renewed token with the same restrictions has the same keys. Paths contain no spaces.
            if let Some(campaign) = caller.campaign {
                route.push_str(&format!(" in {campaign}"));
            }
            if let Some(player) = caller.player {
                route.push_str(&format!(" as {player}"));
            }
            print.update(format!("\0{}", caller.scopes.to_text()));
        }
        Ok(Some(Self { key: key.to_owned(), route, fingerprint: print.finalize().to_vec() }))
    }

    /// Claims the key for this transaction's work, or returns the stored answer. A new key takes one statement.
    ///
    /// # Errors
    /// `idempotency_key_reused` for another body or other scopes, `idempotency_in_flight` while the first request still runs.
    pub async fn claim(&self, tx: &TenantTx) -> Result<Option<StoredAnswer>> {
        let claimed = sqlx::query("SELECT claim_key($1, $2, NULL) AS is_new")
            .bind(tx.tenant())
            .bind(Json(self.row()))
            .fetch_one(&mut *tx.connection().await)
            .await?;
        if claimed.read("is_new")? {
            return Ok(None);
        }
        // The row exists: the insert ran into it.
        self.stored(tx).await?.map(Some).ok_or_else(in_flight)
    }

    /// The stored answer, if there is one, for calls that do something before they claim the key. Takes one statement.
    /// A turn that came to nothing has no stored answer, so its key may be used again.
    ///
    /// # Errors
    /// As for [`Self::claim`]. `idempotency_in_flight` names the turn if one is running.
    pub async fn replay(&self, tx: &TenantTx) -> Result<Option<StoredAnswer>> {
        self.stored(tx).await
    }

    async fn stored(&self, tx: &TenantTx) -> Result<Option<StoredAnswer>> {
        let Some(row) = sqlx::query(
            "SELECT fingerprint, state, headers, body, turn_id FROM idempotency \
             WHERE tenant_id = $1 AND route = $2 AND key = $3",
        )
        .bind(tx.tenant())
        .bind(&self.route)
        .bind(&self.key)
        .fetch_optional(&mut *tx.connection().await)
        .await?
        else {
            return Ok(None);
        };
        self.check_same(&row.read::<Vec<u8>>("fingerprint")?)?;
        match (row.read("state")?, row.read("turn_id")?) {
            ("done", _) => {}
            ("retry", _) => return Ok(None),
            // The answer told about a person whose words were erased. It must not be returned, nor the work done again.
            ("erased", _) => return Err(Error::new(Code::Gone, "The answer to this request was erased.")),
            (_, Some(turn)) => return Err(in_flight().for_turn(turn)),
            (_, None) => return Err(in_flight()),
        }
        StoredAnswer::of_row(&row).map(Some)
    }

    /// Checks that the stored fingerprint is this request's.
    ///
    /// # Errors
    /// `idempotency_key_reused` if it is not.
    pub fn check_same(&self, fingerprint: &[u8]) -> Result<()> {
        if fingerprint == self.fingerprint {
            return Ok(());
        }
        let detail = "This Idempotency-Key was used with a different body, or by a credential with different scopes.";
        Err(Error::new(Code::IdempotencyKeyReused, detail))
    }

    /// Stores the answer. It is committed together with the work. Returns its bytes.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn store<T: Serialize>(&self, tx: &TenantTx, answer: &Answer<T>) -> Result<StoredAnswer> {
        let stored = answer.to_stored()?;
        sqlx::query(
            "UPDATE idempotency SET state = 'done', status = $4, headers = $5, body = $6 \
             WHERE tenant_id = $1 AND route = $2 AND key = $3",
        )
        .bind(tx.tenant())
        .bind(&self.route)
        .bind(&self.key)
        .bind(i32::from(stored.status))
        .bind(serde_json::to_value(&stored).map_err(Error::internal)?)
        .bind(&stored.body)
        .execute(&mut *tx.connection().await)
        .await?;
        Ok(stored)
    }
}

/// The error while the first request with a key is still running.
#[must_use]
pub fn in_flight() -> Error {
    Error::new(Code::IdempotencyInFlight, "The first request with this Idempotency-Key is still running.")
        .retry_after(1)
}
