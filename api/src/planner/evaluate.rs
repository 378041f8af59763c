//! How well a model plans: written sentences, the plans they should lead to, and what came of them.
