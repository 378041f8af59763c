//! Tests of encounters: turns and what actions cost, movement, attacks and conditions, results at the end, and general
//! properties.
#![cfg(test)]

mod absorb;
mod choices;
mod conditions;
mod costs;
mod end;
mod fight;
mod ground;
mod leaving;
mod limits;
mod movement;
mod properties;
mod setup;
mod support;
mod turns;
