//! `examples/foundry-bridge.js`.
