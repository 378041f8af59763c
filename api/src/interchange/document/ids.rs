//! Ids for rows that were made elsewhere at a time of their own: they rise as the rows do, and whatever is made later comes later.

use time::OffsetDateTime;
use uuid::{Builder, Uuid};

use crate::clock;

/// Gives ids in rising order.
#[derive(Debug, Default)]
pub struct Ids {
    last_ms: u64,
    count: u16,
}

/// How many ids of one millisecond are told apart by their order.
const COUNT_MAX: u16 = 0x0fff;

impl Ids {
    /// An id of a moment, or of the last moment given if that is later; never of the future.
    pub fn at(&mut self, moment: OffsetDateTime) -> Uuid {
        let now = ms(clock::now());
        let wanted = ms(moment).min(now);
        if wanted > self.last_ms {
            (self.last_ms, self.count) = (wanted, 0);
        } else if self.count == COUNT_MAX {
            (self.last_ms, self.count) = (self.last_ms + 1, 0);
        } else {
            self.count += 1;
        }
        let [high, low] = self.count.to_be_bytes();
        let mut bytes = [high, low, 0, 0, 0, 0, 0, 0, 0, 0];
        for (to, from) in bytes.iter_mut().skip(2).zip(Uuid::now_v7().as_bytes().iter().rev()) {
            *to = *from;
        }
        Builder::from_unix_timestamp_millis(self.last_ms, &bytes).into_uuid()
    }
}

fn ms(moment: OffsetDateTime) -> u64 {
    u64::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}
