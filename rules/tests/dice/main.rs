//! Tests of the dice: what formulas mean, what is refused, what always holds, what the numbers are.
#![cfg(test)]

mod fair;
mod meaning;
mod properties;
mod refusals;
mod statistics;
mod support;
