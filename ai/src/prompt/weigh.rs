//! What a cached value weighs.

/// The memory that a cached value needs.
pub trait Weigh {
    fn bytes(&self) -> usize;
}
