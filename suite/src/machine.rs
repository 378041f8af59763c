//! How busy other programs kept the machine while tests ran. Only Linux says so, in `/proc`.
//!
//! Each second it compares how long the processors worked with how long they worked for this run's processes. If a parent dies
//! before its child, the child is no descendant any more and its time is missing from then on. Because seconds are counted one by
//! one, that falsifies one of them and not the sum.

use std::{collections::HashMap, fs, time::Duration};

use tokio::{task::JoinHandle, time};

const INTERVAL: Duration = Duration::from_secs(1);

/// Times of processors, in ticks of the kernel's clock.
#[derive(Debug, Clone, Copy, Default)]
struct Ticks {
    /// What passed, on all processors together.
    all: u64,
    /// What they worked, for whomever.
    busy: u64,
    /// What they worked for the processes of this run.
    own: u64,
}

/// Watches the machine until it is asked.
pub(crate) struct Machine {
    root: u32,
    /// None where nothing can be read.
    last: Option<Ticks>,
    sum: Ticks,
}

impl Machine {
    /// Begins to watch. All descendants of the process `root` belong to this run.
    pub(crate) fn watch(root: u32) -> Watched {
        let mut machine = Self { root, last: read(root), sum: Ticks::default() };
        let (stop, mut stopped) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            while time::timeout(INTERVAL, &mut stopped).await.is_err() {
                machine.add();
            }
            machine.add();
            machine.others()
        });
        Watched { stop, task }
    }

    fn add(&mut self) {
        let now = read(self.root);
        if let (Some(last), Some(now)) = (self.last, now) {
            let busy = now.busy.saturating_sub(last.busy);
            self.sum.all += now.all.saturating_sub(last.all);
            self.sum.busy += busy;
            // A process that ended while the others were read comes back with all its time, as that of its parent.
            self.sum.own += now.own.saturating_sub(last.own).min(busy);
        }
        self.last = now;
    }

    fn others(&self) -> Option<f64> {
        let Ticks { all, busy, own } = self.sum;
        self.last.filter(|_| all > 0)?;
        Some(busy.saturating_sub(own) as f64 / all as f64)
    }
}

/// A machine that is being watched.
pub(crate) struct Watched {
    stop: tokio::sync::oneshot::Sender<()>,
    task: JoinHandle<Option<f64>>,
}

impl Watched {
    /// What share of all processors others used since then; none where that cannot be read.
    pub(crate) async fn others(self) -> Option<f64> {
        let _ = self.stop.send(());
        self.task.await.ok()?
    }
}

fn read(root: u32) -> Option<Ticks> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let (all, busy) = of_processors(&stat)?;
    Some(Ticks { all, busy, own: own(root)? })
}

/// What passed and what was worked, from `/proc/stat` (<https://man7.org/linux/man-pages/man5/proc_stat.5.html>): its first line has
/// user, nice, system, idle, iowait, irq, softirq and steal. Interrupts belong to nobody.
fn of_processors(stat: &str) -> Option<(u64, u64)> {
    let numbers: Option<Vec<u64>> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .take(8)
        .map(|number| number.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal] = numbers?.try_into().ok()?;
    let busy = user + nice + system + steal;
    Some((busy + idle + iowait + irq + softirq, busy))
}

/// What a process and its descendants have worked, with those of them that have ended.
fn own(root: u32) -> Option<u64> {
    let mut children: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    let mut sum = 0;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may have ended by now.
        let Some((parent, worked)) =
            fs::read_to_string(entry.path().join("stat")).ok().and_then(|stat| of_process(&stat))
        else {
            continue;
        };
        if id == root {
            sum += worked;
        } else {
            children.entry(parent).or_default().push((id, worked));
        }
    }
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        for (child, worked) in children.remove(&id).unwrap_or_default() {
            sum += worked;
            waiting.push(child);
        }
    }
    Some(sum)
}

/// A process's parent, and what it and its children that have ended have worked, from `/proc/ID/stat`
/// (<https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>): the fields `ppid`, and `utime` to `cstime`. The name before them
/// may have spaces and parentheses in it.
fn of_process(stat: &str) -> Option<(u32, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let parent = fields.get(1)?.parse().ok()?;
    let worked: Option<Vec<u64>> = fields.get(11..15)?.iter().map(|field| field.parse().ok()).collect();
    Some((parent, worked?.iter().sum()))
}

#[cfg(test)]
mod tests {
    use super::{of_process, of_processors};

    #[test]
    fn processors_are_read() {
        let stat = "cpu  100 20 30 1000 5 6 7 8 90 1\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(of_processors(stat), Some((100 + 20 + 30 + 8 + 1000 + 5 + 6 + 7, 158)));
        assert_eq!(of_processors("intr 1 2 3"), None);
        assert_eq!(of_processors(""), None);
    }

    #[test]
    fn a_process_with_any_name_is_read() {
        let stat = "42 (a) R 1 (b) S 7 42 42 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0";
        assert_eq!(of_process(stat), Some((7, 100)));
        assert_eq!(of_process("42 (sh) S 7"), None);
    }
}
