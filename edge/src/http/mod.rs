//! The HTTP parts that all routes share: request ids, bodies, pages, patches, ETags, idempotency, problem documents.
//!
//! Routes use these and never parse headers themselves. Nothing here knows about the tables of the world.

pub mod answer;
pub mod body;
pub mod bounds;
pub mod budget;
pub mod cors;
pub mod door;
pub mod etag;
pub mod forms;
pub mod held;
pub mod idempotency;
pub mod misfit;
pub mod observe;
pub mod page;
pub mod paging;
pub mod patch;
pub mod read;
pub mod resource;
pub mod router;
pub mod schema;
pub mod sse;
pub mod stored;
pub mod validate;
pub mod weight;
pub mod write;

pub use answer::Answer;
pub use body::{Body, NoBody};
pub use stored::StoredAnswer;
pub use write::{Made, Written, answered, computed, write, write_in};
