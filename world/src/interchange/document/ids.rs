//! Ids for imported rows that were made earlier. They rise in the order of the rows, and are lower than the ids of all
//! later rows.

use time::OffsetDateTime;
use uuid::{Builder, Uuid};

use base::clock;

/// Generates ids in rising order.
#[derive(Debug, Default)]
pub struct Ids {
    last_ms: u64,
    count: u16,
}

/// How many ids can be ordered within one millisecond.
const COUNT_MAX: u16 = 0x0fff;

impl Ids {
    /// An id for a time, or for the time of the last id if that is later. Never for the future.
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
        for (to, from) in bytes.iter_mut().skip(2).zip(clock::id().as_bytes().iter().rev()) {
            *to = *from;
        }
        Builder::from_unix_timestamp_millis(self.last_ms, &bytes).into_uuid()
    }
}

fn ms(moment: OffsetDateTime) -> u64 {
    u64::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_in_the_order_of_the_rows_and_none_is_of_the_future() {
        let long_ago = clock::parse("2001-02-03T04:05:06.789Z").unwrap();
        let mut ids = Ids::default();
        // More than are told apart within a millisecond; then one of an earlier time, and one of a time to come.
        let mut made: Vec<Uuid> = (0..5000).map(|_| ids.at(long_ago)).collect();
        assert_eq!([0, 4095, 4096].map(|n| time_of(made[n]) - 981_173_106_789), [0, 0, 1]);
        made.push(ids.at(clock::parse("1999-01-01T00:00:00Z").unwrap()));
        made.push(ids.at(clock::parse("9999-01-01T00:00:00Z").unwrap()));
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(time_of(made[5001]) <= ms(clock::now()));
    }

    /// The milliseconds that an id says.
    fn time_of(id: Uuid) -> u64 {
        id.as_bytes()[..6].iter().fold(0, |ms, byte| ms << 8 | u64::from(*byte))
    }
}
