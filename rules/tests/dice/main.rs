//! Tests of the dice: what formulas mean, which are rejected, general properties, and statistics.
#![cfg(test)]

mod fair;
mod meaning;
mod properties;
mod refusals;
mod statistics;
mod support;
