//! Child processes and what they cost: CPU and memory from `/proc`.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::Failure;

/// A child process that ends when this is dropped.
pub struct Program(Child);

impl Program {
    /// Starts a program from our target directory.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(name: &str, arguments: &[&str], env: &[(&str, &str)]) -> Result<Self, Failure> {
        let mut command = Command::new(beside(name)?);
        command.args(arguments).envs(env.iter().copied()).stdout(Stdio::null());
        Ok(Self(command.spawn()?))
    }

    /// The process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of a program next to this one.
///
/// # Errors
/// If this program has no path.
pub fn beside(name: &str) -> Result<PathBuf, Failure> {
    Ok(std::env::current_exe()?.parent().unwrap_or(Path::new(".")).join(name))
}

/// The CPU time of a process in milliseconds; with `children` also that of its ended children.
#[must_use]
pub fn cpu_ms(process: u32, children: bool) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<f64> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
    let field = |n: usize| fields.get(n).copied().unwrap_or(0.0);
    // utime, stime, cutime, cstime in hundredths of a second.
    10.0 * (field(11) + field(12) + if children { field(13) + field(14) } else { 0.0 })
}

/// Binds all threads of a process, and those they start, to some cores. Only on Linux.
///
/// # Errors
/// If the system rejects it.
pub fn keep_on(process: u32, cores: &[usize]) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    {
        let mut set = rustix::thread::CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        for thread in std::fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
            let thread: i32 = thread.file_name().to_string_lossy().parse()?;
            rustix::thread::sched_setaffinity(rustix::process::Pid::from_raw(thread), &set)?;
        }
    }
    Ok(())
}

/// The children of a process.
#[must_use]
pub fn children(of: u32) -> Vec<u32> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    all.flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|process| parent(*process) == Some(of))
        .collect()
}

/// The parent of a process.
#[must_use]
pub fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// The CPU time of a whole PostgreSQL, by its postmaster.
#[must_use]
pub fn postgres_cpu_ms(postmaster: u32) -> f64 {
    cpu_ms(postmaster, true) + children(postmaster).into_iter().map(|p| cpu_ms(p, false)).sum::<f64>()
}

/// A server and its PostgreSQL, whose CPU time is measured.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    pub server: u32,
    pub postmaster: u32,
}

impl Meter {
    /// The CPU time in milliseconds that the server and PostgreSQL have used.
    #[must_use]
    pub fn spent(&self) -> [f64; 2] {
        [cpu_ms(self.server, false), postgres_cpu_ms(self.postmaster)]
    }

    /// The CPU time that each has used since `before`, divided by `count`.
    #[must_use]
    pub fn each(&self, before: [f64; 2], count: usize) -> [f64; 2] {
        let now = self.spent();
        [0, 1].map(|i| (now[i] - before[i]) / count as f64)
    }
}

/// Resident memory in MiB.
#[must_use]
pub fn resident_mib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
