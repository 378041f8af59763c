//! The fair stream: known answers, worked out by the Python program of docs/fair-dice.md.
