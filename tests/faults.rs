//! Faults, with real processes: two servers, a PostgreSQL of its own and a model, under work that never rests.
//!
//! `./dev faults` runs them; they take minutes, so `./dev test` leaves them out. Each does the same: work begins
//! ([`work`]), something breaks and is mended ([`stage`]), every request that was sent is repeated with its key until it is
//! answered, and then the books have to balance ([`account`]): nothing acknowledged is lost, nothing is there twice, the
//! journal equals the tables. A new fault is a test here that breaks something between `Work::begin` and `Work::settle`.

mod account;
mod model;
mod orphan;
mod overload;
mod postgres;
mod servers;
mod stage;
mod work;
