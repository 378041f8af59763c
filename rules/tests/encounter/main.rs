//! Tests of encounters: turns and economy, movement, what attacks and conditions come to, what is told at the end, what
//! always holds.
#![cfg(test)]

mod absorb;
mod conditions;
mod end;
mod fight;
mod movement;
mod properties;
mod setup;
mod support;
mod turns;
