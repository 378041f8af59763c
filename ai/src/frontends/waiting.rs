//! The questions that wait for an answer from a connection.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;
use uuid::Uuid;

use super::question::{Answer, Asked, Failure};

/// The most characters of a frontend's own error text that are passed on.
const WORDS_CHARS_MAX: usize = 300;

/// The questions that wait for an answer from a connection.
#[derive(Default)]
pub struct Waiting(Mutex<HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>>);

impl Waiting {
    pub(super) fn all(&self) -> MutexGuard<'_, HashMap<Uuid, (Asked, oneshot::Sender<Answer>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a question with this id and type is waiting.
    #[must_use]
    pub fn expects(&self, request_id: Option<&str>, asked: Asked) -> bool {
        let id = request_id.and_then(|id| Uuid::try_parse(id).ok());
        id.is_some_and(|id| self.all().get(&id).is_some_and(|(what, _)| *what == asked))
    }

    /// Passes on an answer and returns whether it was used. Ignores answers that do not match a waiting question.
    pub fn answer(&self, request_id: Option<&str>, asked: Asked, answer: Answer) -> bool {
        self.take(request_id, Some(asked)).is_some_and(|waits| waits.send(answer).is_ok())
    }

    /// Passes on that the frontend could not do what it was asked.
    pub fn refuse(&self, request_id: Option<&str>, words: &str) -> bool {
        let words: String = words.chars().filter(|c| !c.is_control()).take(WORDS_CHARS_MAX).collect();
        self.take(request_id, None).is_some_and(|waits| waits.send(Err(Failure::Refused(words))).is_ok())
    }

    fn take(&self, request_id: Option<&str>, asked: Option<Asked>) -> Option<oneshot::Sender<Answer>> {
        let id = Uuid::try_parse(request_id?).ok()?;
        let mut all = self.all();
        if asked.is_some_and(|asked| all.get(&id).is_some_and(|(what, _)| *what != asked)) {
            return None;
        }
        all.remove(&id).map(|(_, waits)| waits)
    }

    /// Drops all questions, because no answer will come.
    pub fn forget_all(&self) {
        self.all().clear();
    }
}

/// Forgets a question when its asker stops waiting.
pub(super) struct Pending<'a>(pub &'a Waiting, pub Uuid);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.0.all().remove(&self.1);
    }
}
