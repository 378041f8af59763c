//! Passwords, hashed with argon2id on separate threads, a few at a time, so that an attacker who guesses does not slow down others.

use std::sync::{
    Arc, LazyLock,
    atomic::{AtomicUsize, Ordering},
};

use argon2::{
    Argon2, Params,
    password_hash::{PasswordHasher, PasswordVerifier},
};
use rand::{Rng, RngExt};
use tokio::sync::Semaphore;

use base::error::{Code, Error, Result};

/// OWASP's second recommendation for argon2id: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
/// How many hashes run at a time, and how many may wait.
const AT_A_TIME: usize = 2;
const WAITING_MAX: usize = 64;

const CHARS_MIN: usize = 10;
const CHARS_MAX: usize = 128;

/// Computes and checks hashes.
pub struct Passwords {
    places: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(AT_A_TIME)), waiting: AtomicUsize::new(0) }
    }
}

impl Passwords {
    /// The hash of a password, as it is stored.
    ///
    /// # Errors
    /// `unavailable` if too many requests wait.
    pub async fn hash(&self, password: String) -> Result<String> {
        self.apart(move || hash(&password)).await?
    }

    /// Whether a password matches a hash. Without a hash the result is false, after the same time.
    ///
    /// # Errors
    /// `unavailable` if too many requests wait.
    pub async fn is(&self, password: String, stored: Option<String>) -> Result<bool> {
        self.apart(move || {
            let stored = stored.as_deref();
            let is_it = argon2().verify_password(password.as_bytes(), stored.unwrap_or(&NOBODYS)).is_ok();
            is_it && stored.is_some()
        })
        .await
    }

    async fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let waits = Waits::begin(&self.waiting)?;
        let place = self.places.clone().acquire_owned().await.map_err(Error::internal)?;
        drop(waits);
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work is done, even if the client has disconnected.
            let _place = place;
            work()
        });
        done.await.map_err(Error::internal)
    }
}

/// A request that waits for a place.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Result<Self> {
        let waits = Self(waiting);
        if waiting.fetch_add(1, Ordering::AcqRel) >= WAITING_MAX {
            return Err(Error::new(Code::Unavailable, "Too many people are signing in at the moment. Try again.")
                .retry_after(2));
        }
        Ok(waits)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn argon2() -> Argon2<'static> {
    Params::new(MEMORY_KIB, PASSES, 1, None).map_or_else(|_| Argon2::default(), Argon2::from)
}

/// The hash of a password that nobody knows, for addresses without an account.
static NOBODYS: LazyLock<String> = LazyLock::new(|| hash(&generate()).unwrap_or_default());

/// Hashes a password on the calling thread, for the command line.
///
/// # Errors
/// `internal`.
pub fn hash(password: &str) -> Result<String> {
    let mut salt = [0u8; 16];
    rand::rng().fill_bytes(&mut salt);
    let hash = argon2().hash_password_with_salt(password.as_bytes(), &salt);
    Ok(hash.map_err(|e| Error::internal(e.to_string()))?.to_string())
}

/// Whether a password matches a hash, on the calling thread.
#[must_use]
pub fn is_it(password: &str, hash: &str) -> bool {
    argon2().verify_password(password.as_bytes(), hash).is_ok()
}

/// A new password that can be read aloud: twenty letters and digits in groups, about 100 random bits.
#[must_use]
pub fn generate() -> String {
    const LETTERS: &[u8] = b"abcdefghjkmnpqrstuvwxyz23456789";
    let mut rng = rand::rng();
    let letters: Vec<char> =
        (0..20).filter_map(|_| LETTERS.get(rng.random_range(0..LETTERS.len())).map(|b| char::from(*b))).collect();
    letters.chunks(5).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

/// Checks a new password: it must be long enough and not easy to guess.
///
/// # Errors
/// `validation_failed` at `pointer`.
pub fn check(pointer: &str, password: &str, email: &str) -> Result<()> {
    let refuse = |why: String| Err(Error::invalid(pointer, "invalid_value", why));
    let chars = password.chars().count();
    if !(CHARS_MIN..=CHARS_MAX).contains(&chars) {
        return refuse(format!("A password must have {CHARS_MIN} to {CHARS_MAX} characters."));
    }
    let name = email.split('@').next().unwrap_or_default();
    if zxcvbn::zxcvbn(password, &[email, name, "tavernkeep", "tavern"]).score() < zxcvbn::Score::Three {
        return refuse("This password is too easy to guess. Choose a longer or less common one.".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_and_who_leaves_makes_room() {
        let waiting = AtomicUsize::new(0);
        for _ in 0..3 {
            let waits: Vec<_> = (0..WAITING_MAX).map(|_| Waits::begin(&waiting).expect("a place")).collect();
            for _ in 0..3 {
                assert_eq!(Waits::begin(&waiting).err().map(|e| e.code), Some(Code::Unavailable));
            }
            drop(waits);
        }
        assert_eq!(waiting.into_inner(), 0);
    }
}
