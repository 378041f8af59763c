//! The unit of work: a transaction and its answer, which is stored under an idempotency key. A stored answer is read again only here.

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::{RawValue, to_raw_value};

use super::{Answer, StoredAnswer, idempotency::IdempotencyKey};
use crate::{caller::Caller, state::Edge};
use base::error::{Error, Result};
use db::{
    retry::{BRIEF, Tries},
    tenancy::TenantTx,
};

/// The answer of a unit of work. The value is boxed, so that the futures of turns, which hand it through many functions, stay small.
#[derive(Clone, Debug)]
pub enum Written<T> {
    /// The work was done.
    Now(Box<Answer<T>>),
    /// The work was done, and its key stores these bytes of the answer.
    Stored(Made<T>),
    /// The key was used before: the work was done then, and this was the answer.
    Before(StoredAnswer),
}

/// An answer and its bytes, for work that stores them itself.
#[derive(Clone, Debug)]
pub struct Made<T> {
    answer: Box<Answer<T>>,
    stored: StoredAnswer,
}

impl<T> Made<T> {
    /// 200, with a value whose JSON is written already.
    pub fn with_json(value: T, json: Box<RawValue>) -> Self {
        let body = Box::<str>::from(json).into_string().into_bytes();
        let stored = StoredAnswer { status: 200, body, ..StoredAnswer::default() };
        Self { answer: Box::new(Answer::ok(value)), stored }
    }

    /// The value.
    #[must_use]
    pub fn value(&self) -> &T {
        &self.answer.value
    }

    /// The bytes.
    #[must_use]
    pub fn stored(&self) -> &StoredAnswer {
        &self.stored
    }
}

impl<T: Serialize> Made<T> {
    /// 200.
    ///
    /// # Errors
    /// `internal` if the value cannot be written as JSON.
    pub fn ok(value: T) -> Result<Self> {
        let json = to_raw_value(&value).map_err(Error::internal)?;
        Ok(Self::with_json(value, json))
    }
}

impl<T> From<Made<T>> for Written<T> {
    fn from(made: Made<T>) -> Self {
        Self::Stored(made)
    }
}

impl<T> From<Answer<T>> for Written<T> {
    fn from(answer: Answer<T>) -> Self {
        Self::Now(Box::new(answer))
    }
}

impl<T> Written<T> {
    /// The answer with another value, if the work was done now. What the key stores stays the same.
    #[must_use]
    pub fn map(self, change: impl FnOnce(T) -> T) -> Self {
        match self {
            Self::Now(answer) | Self::Stored(Made { answer, .. }) => answer.map(change).into(),
            before @ Self::Before(_) => before,
        }
    }

    /// The value, if the work was done now.
    pub fn fresh(self) -> Option<T> {
        match self {
            Self::Now(answer) | Self::Stored(Made { answer, .. }) => Some(answer.value),
            Self::Before(_) => None,
        }
    }

    /// The part of the value that the caller needs, also of a stored one. `U` must have the same names as `T`, and few of them: an older
    /// server may have stored the answer.
    ///
    /// # Errors
    /// `internal` if a stored answer lacks it.
    pub fn part<U: DeserializeOwned>(self, of: impl FnOnce(T) -> U) -> Result<U> {
        match self {
            Self::Now(answer) | Self::Stored(Made { answer, .. }) => Ok(of(answer.value)),
            Self::Before(stored) => stored.read(),
        }
    }

    /// The path of what was created.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        match self {
            Self::Now(answer) | Self::Stored(Made { answer, .. }) => answer.location(),
            Self::Before(stored) => stored.location.as_deref(),
        }
    }

    /// Whether it is the answer to an earlier request.
    #[must_use]
    pub fn is_replayed(&self) -> bool {
        matches!(self, Self::Before(stored) if stored.is_replayed)
    }
}

impl<T: DeserializeOwned> Written<T> {
    /// The value, also a stored one.
    ///
    /// # Errors
    /// `internal` if a stored answer is not of this type.
    pub fn value(self) -> Result<T> {
        self.part(|value| value)
    }
}

impl<T: Serialize + DeserializeOwned> Written<T> {
    /// The answer with another value, also if it is a stored one. What the key stores stays the same.
    ///
    /// # Errors
    /// `internal` if a stored answer is not of this type.
    pub fn shown(self, change: impl FnOnce(T) -> T) -> Result<Self> {
        let Self::Before(stored) = self else { return Ok(self.map(change)) };
        let body = serde_json::to_vec(&change(stored.read()?)).map_err(Error::internal)?;
        Ok(Self::Before(StoredAnswer { body, ..stored }))
    }
}

impl<T: Serialize> Written<T> {
    /// The answer's bytes.
    ///
    /// # Errors
    /// `internal` if the value cannot be written as JSON.
    pub fn into_stored(self) -> Result<StoredAnswer> {
        match self {
            Self::Now(answer) => answer.to_stored(),
            Self::Stored(Made { stored, .. }) | Self::Before(stored) => Ok(stored),
        }
    }
}

impl<T: Serialize> From<Written<T>> for HttpResponse {
    fn from(written: Written<T>) -> Self {
        written.into_stored().map_or_else(HttpResponse::from_error, Into::into)
    }
}

impl<T: Serialize> Responder for Written<T> {
    type Body = BoxBody;
    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        self.into()
    }
}

/// Runs `work` in a transaction, once per idempotency key, and commits it together with its answer. Temporary failures
/// are retried. If it is uncertain whether the transaction was committed, it is retried only with a key, because the
/// key reveals what happened.
///
/// # Errors
/// Those of `work`. Nothing is written then.
pub async fn write<T: Serialize>(
    app: &Edge,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFn(&TenantTx) -> Result<Answer<T>>,
) -> Result<Written<T>> {
    write_in(async || TenantTx::write(&app.pool, &caller.actor()).await, key, work).await
}

/// Like [`write()`], in a transaction that `open` opens.
///
/// # Errors
/// Those of `open` and `work`. Nothing is written then.
pub async fn write_in<T: Serialize>(
    open: impl AsyncFn() -> Result<TenantTx>,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFn(&TenantTx) -> Result<Answer<T>>,
) -> Result<Written<T>> {
    let mut tries = Tries::with(BRIEF);
    let mut was_in_doubt = false;
    loop {
        match write_once(&open, key, &work).await {
            Err(error) if error.in_doubt() && key.is_some() => {
                was_in_doubt = true;
                let error = error.settled();
                if !tries.wait_to_retry(&error).await {
                    return Err(error);
                }
            }
            Err(error) if tries.wait_to_retry(&error).await => {}
            // The stored answer that the key found was given by an earlier attempt of this same request.
            Ok(Written::Before(stored)) if was_in_doubt => {
                return Ok(Written::Before(StoredAnswer { is_replayed: false, ..stored }));
            }
            result => return result,
        }
    }
}

async fn write_once<T: Serialize>(
    open: &impl AsyncFn() -> Result<TenantTx>,
    key: Option<&IdempotencyKey>,
    work: &impl AsyncFn(&TenantTx) -> Result<Answer<T>>,
) -> Result<Written<T>> {
    let tx = open().await?;
    let Some(key) = key else {
        let answer = work(&tx).await?;
        tx.commit().await?;
        return Ok(answer.into());
    };
    if let Some(stored) = key.claim(&tx).await? {
        return Ok(Written::Before(stored));
    }
    let answer = work(&tx).await?;
    let stored = key.store(&tx, &answer).await?;
    tx.commit().await?;
    Ok(Written::Stored(Made { answer: Box::new(answer), stored }))
}

/// The stored answer of a key, if there is one. It is returned even when a limit would reject the request: a client
/// that lost the answer and asks again does not ask for anything new.
///
/// # Errors
/// `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn answered(app: &Edge, caller: &Caller, key: Option<&IdempotencyKey>) -> Result<Option<StoredAnswer>> {
    match key {
        Some(key) => key.replay(&TenantTx::read(&app.pool, caller.tenant_id()).await?).await,
        None => Ok(None),
    }
}

/// Answers with the result of `work`, which changes nothing, once per idempotency key. It may take long: no transaction
/// is open meanwhile.
///
/// # Errors
/// Those of `work`, which are not stored. `idempotency_in_flight`, `idempotency_key_reused`.
pub async fn computed<T: Serialize>(
    app: &Edge,
    caller: &Caller,
    key: Option<&IdempotencyKey>,
    work: impl AsyncFnOnce() -> Result<Answer<T>>,
) -> Result<Written<T>> {
    if let Some(stored) = answered(app, caller, key).await? {
        return Ok(Written::Before(stored));
    }
    let answer = work().await?;
    match key {
        // If two requests run at the same time, both get the answer that was stored first.
        Some(_) => {
            let written = write(app, caller, key, async |_| Ok(answer.by_ref())).await?;
            let stored = match written {
                Written::Now(_) => None,
                Written::Stored(made) => Some(made.stored),
                Written::Before(stored) => return Ok(Written::Before(stored)),
            };
            Ok(match stored {
                Some(stored) => Written::Stored(Made { answer: Box::new(answer), stored }),
                None => answer.into(),
            })
        }
        None => Ok(answer.into()),
    }
}
