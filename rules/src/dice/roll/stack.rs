//! The stack of the machine.

/// A value on the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::dice) struct Slot {
    pub(super) value: f64,
    /// The number of dice rolled before the value was computed.
    pub(super) first: u32,
}

/// The values that steps work on. The parser guarantees that a step never takes more than there are.
pub(super) struct Stack<'a> {
    slots: &'a mut [Slot],
    len: usize,
}

impl<'a> Stack<'a> {
    pub(super) const fn new(slots: &'a mut [Slot]) -> Self {
        Self { slots, len: 0 }
    }

    pub(super) fn push(&mut self, value: f64, first: u32) {
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = Slot { value, first };
            self.len += 1;
        }
    }

    pub(super) fn pop(&mut self) -> Slot {
        self.len = self.len.saturating_sub(1);
        self.slots.get(self.len).copied().unwrap_or_default()
    }

    pub(super) fn top(&mut self) -> Option<&mut Slot> {
        self.slots.get_mut(self.len.checked_sub(1)?)
    }

    /// Takes `count` values.
    pub(super) fn take(&mut self, count: usize) -> &[Slot] {
        let end = self.len;
        self.len = end.saturating_sub(count);
        self.slots.get(self.len..end).unwrap_or_default()
    }
}
