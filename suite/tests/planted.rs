//! The suite judges planted tests: one that passes, one that fails once, one that always fails, one that hangs, one that
//! aborts. They are tests of this very binary, ignored, and do something only if `PLANTED` names a folder.
#![cfg(test)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

mod planted {
    use std::{
        io::{ErrorKind, Write},
        path::PathBuf,
        time::Duration,
    };

    fn folder() -> PathBuf {
        PathBuf::from(std::env::var_os("PLANTED").expect("planted tests are run by the tests below"))
    }

    /// True for the first caller of this name in a run.
    fn is_first(name: &str) -> bool {
        match std::fs::OpenOptions::new().write(true).create_new(true).open(folder().join(name)) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            Err(error) => panic!("{error}"),
        }
    }

    async fn for_ever() {
        loop {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
    }

    #[test]
    #[ignore = "planted"]
    fn aborts_always() {
        folder();
        // What `eprintln!` prints is captured, and lost with the process.
        std::io::stderr().write_all(b"about to abort\n").unwrap();
        std::process::abort();
    }

    #[test]
    #[ignore = "planted"]
    fn aborts_once() {
        if is_first("aborts_once") {
            std::process::abort();
        }
    }

    #[test]
    #[ignore = "planted"]
    fn fails_always() {
        println!("nothing helps");
        assert_eq!(folder(), PathBuf::new());
    }

    #[test]
    #[ignore = "planted"]
    fn fails_once() {
        assert!(!is_first("fails_once"), "once is enough");
    }

    #[tokio::test]
    #[ignore = "planted"]
    async fn hangs_always() {
        folder();
        for_ever().await;
    }

    #[tokio::test]
    #[ignore = "planted"]
    async fn hangs_once() {
        if is_first("hangs_once") {
            for_ever().await;
        }
    }

    #[test]
    #[ignore = "planted"]
    fn passes() {
        folder();
    }

    #[tokio::test]
    #[ignore = "planted"]
    async fn takes_a_while() {
        folder();
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What a run of the suite said.
struct Run {
    folder: PathBuf,
    is_success: bool,
    output: String,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Run {
    fn last_line(&self) -> &str {
        self.output.lines().last().unwrap()
    }

    fn kept(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.output))
    }

    fn has_line(&self, start: &str) -> bool {
        self.output.lines().any(|line| line.starts_with(start))
    }
}

/// Runs planted tests in the suite.
fn run(tests: &[&str], options: &[&str]) -> Run {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("suite-planted-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let mut suite = Command::new(env!("CARGO_BIN_EXE_suite"));
    suite.arg("--binary").arg(std::env::current_exe().unwrap()).arg("--keep").arg(&folder).args(options);
    suite.args(tests.iter().map(|name| format!("planted::{name}"))).args(["--", "--ignored"]);
    let ran = suite.env("PLANTED", &folder).env("RUST_TEST_THREADS", "2").output().unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    Run { is_success: ran.status.success(), folder, output }
}

#[test]
fn what_passes_is_counted() {
    let run = run(&["passes", "takes_a_while"], &[]);
    assert!(run.is_success, "{}", run.output);
    assert_eq!(run.last_line(), "2 passed, 0 failed, 0 skipped");
    assert!(run.has_line("test planted::passes ... ok"), "{}", run.output);
}

#[test]
fn what_measures_runs_after_the_others() {
    let run = run(&["passes", "takes_a_while"], &["--alone", "passes"]);
    assert!(run.is_success, "{}", run.output);
    assert_eq!(run.last_line(), "2 passed, 0 failed, 0 skipped");
    let at = |name: &str| run.output.find(&format!("test planted::{name} ... ok")).unwrap();
    assert!(at("takes_a_while") < at("passes"), "{}", run.output);
}

#[test]
fn what_fails_once_is_flaky_and_its_output_is_kept() {
    let run = run(&["fails_once", "passes"], &[]);
    assert!(run.is_success, "{}", run.output);
    assert_eq!(run.last_line(), "2 passed, 0 failed, 0 skipped");
    assert!(run.has_line("FLAKY planted::fails_once"), "{}", run.output);
    assert!(run.kept("flaky/planted.fails_once.txt").contains("once is enough"));
}

#[test]
fn what_fails_always_fails_the_run() {
    let run = run(&["fails_always", "passes"], &[]);
    assert!(!run.is_success);
    assert_eq!(run.last_line(), "1 passed, 1 failed, 0 skipped");
    assert_eq!(run.output.matches("running again, alone: planted::fails_always").count(), 2, "{}", run.output);
    assert!(run.kept("failed/planted.fails_always.txt").contains("nothing helps"));
    assert!(run.has_line("    planted::fails_always"), "{}", run.output);
    assert!(!run.output.contains("FLAKY"), "{}", run.output);
}

#[test]
fn what_hangs_is_ended_and_named() {
    let run = run(&["hangs_always", "passes", "takes_a_while"], &["--hang-after", "2"]);
    assert!(!run.is_success);
    assert_eq!(run.last_line(), "2 passed, 1 failed, 0 skipped");
    assert!(run.has_line("test planted::hangs_always ... HANGS"), "{}", run.output);
    assert!(run.kept("failed/planted.hangs_always.txt").contains("it ran for more than 2 seconds"));
}

#[test]
fn what_hangs_once_is_flaky() {
    let run = run(&["hangs_once"], &["--hang-after", "2"]);
    assert!(run.is_success, "{}", run.output);
    assert!(run.has_line("FLAKY planted::hangs_once"), "{}", run.output);
}

/// The process takes other tests with it. They run all the same, and are no suspects for long.
#[test]
fn what_aborts_is_found_and_the_others_run() {
    let run = run(&["aborts_always", "passes", "takes_a_while"], &[]);
    assert!(!run.is_success);
    assert_eq!(run.last_line(), "2 passed, 1 failed, 0 skipped");
    assert!(run.kept("failed/planted.aborts_always.txt").contains("about to abort"));
    assert!(!run.output.contains("FLAKY"), "{}", run.output);
}

#[test]
fn what_aborts_once_is_flaky() {
    let run = run(&["aborts_once"], &[]);
    assert!(run.is_success, "{}", run.output);
    assert!(run.has_line("FLAKY planted::aborts_once"), "{}", run.output);
    assert!(run.kept("flaky/planted.aborts_once.txt").contains("signal: 6"));
}

#[test]
fn it_says_where_the_time_went() {
    let run = run(&["passes", "takes_a_while"], &["--alone", "passes"]);
    let end = |line: &str| run.output.lines().any(|told| told.ends_with(line));
    assert!(end(" s  planted: 1 test") && end(" s  planted, alone: 1 test"), "{}", run.output);
    let times = run.kept("times");
    assert!(times.contains(" s  planted: 1 test\n") && times.contains(" s  all of it\n"), "{times}");
    let at = |name: &str| times.find(&format!(" s  planted::{name}\n")).unwrap();
    assert!(at("takes_a_while") < at("passes"), "the slowest comes first: {times}");
    assert!(!run.output.contains("speed"), "nobody asked: {}", run.output);
}

/// What others do here while this runs is not for this test to say, so it calls every machine quiet, or none.
#[test]
fn what_is_too_slow_fails_on_a_quiet_machine_only() {
    let tests = ["takes_a_while"];
    let slow = run(&tests, &["--slowest-max", "0.1", "--whole-max", "0.1", "--others-max", "2"]);
    let busy = run(&tests, &["--slowest-max", "0.1", "--others-max", "0"]);
    let quick = run(&tests, &["--slowest-max", "3600", "--whole-max", "3600", "--others-max", "2"]);
    assert!(busy.is_success && busy.has_line("speed not judged: "), "{}", busy.output);
    assert!(quick.is_success && !quick.has_line("WARNING") && !quick.has_line("TOO SLOW"), "{}", quick.output);
    assert_eq!(slow.last_line(), "1 passed, 0 failed, 0 skipped");
    if Path::new("/proc/stat").exists() {
        assert!(!slow.is_success);
        assert!(slow.has_line("TOO SLOW planted::takes_a_while took "), "{}", slow.output);
        assert!(slow.has_line("WARNING: the whole run"), "{}", slow.output);
        assert!(quick.has_line("speed judged: "), "{}", quick.output);
    } else {
        assert!(slow.is_success && slow.has_line("speed not judged: this system"), "{}", slow.output);
    }
}

#[test]
fn of_too_many_failures_none_runs_again() {
    let run = run(&["fails_once", "fails_always"], &["--reruns-max", "1"]);
    assert!(!run.is_success);
    assert_eq!(run.last_line(), "0 passed, 2 failed, 0 skipped");
    assert!(!run.output.contains("running again"), "{}", run.output);
}

#[test]
fn without_a_test_a_run_does_not_succeed() {
    let run = run(&["nobody_has_this_name"], &[]);
    assert!(!run.is_success);
    assert!(run.has_line("no test ran"), "{}", run.output);
}

#[test]
fn what_was_built_is_read_from_cargos_messages() {
    let run = run(&["passes"], &[]);
    let built = run.folder.join("built.json");
    let write = |text: String| std::fs::write(&built, text).unwrap();
    let suite = |folder: &Path| {
        let mut suite = Command::new(env!("CARGO_BIN_EXE_suite"));
        suite.arg("--built").arg(folder.join("built.json")).arg("--keep").arg(folder);
        suite.args(["planted::passes", "--", "--ignored"]).env("PLANTED", folder).output().unwrap()
    };
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let artifact = |is_test: bool| {
        let executable = std::env::current_exe().unwrap();
        serde_json::json!({ "reason": "compiler-artifact", "manifest_path": manifest,
                            "profile": { "test": is_test }, "executable": executable })
    };
    write(format!("{}\nnoise\n{}\n", serde_json::json!({ "reason": "build-finished" }), artifact(true)));
    let ran = suite(&run.folder);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    write(format!("{}\n", artifact(false)));
    let ran = suite(&run.folder);
    assert!(!ran.status.success());
    assert!(String::from_utf8_lossy(&ran.stderr).contains("names no test binary"));
}
