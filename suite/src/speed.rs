//! The limits of time that a run of all tests must keep, and whether anybody can judge that: on a machine that other programs keep
//! busy, everything takes longer.

use std::{fmt, time::Duration};

use crate::run::{Status, TestResult};

/// What a run may take on a quiet machine.
pub(crate) struct Limits {
    /// Seconds that a test may take.
    pub slowest: Option<f64>,
    /// Seconds that the whole run should take at most.
    pub whole: Option<f64>,
    /// The share of the processors that others may use on a quiet machine.
    pub others: f64,
}

/// What a run's times say.
pub(crate) enum Speed {
    /// Nobody asked.
    NotAsked,
    NotJudged {
        /// The share of the processors that others used, if it is known.
        others: Option<f64>,
        others_max: f64,
    },
    Judged {
        others: f64,
        /// The tests over the limit, slowest first, and the limit in seconds.
        too_slow: Vec<(String, f64)>,
        slowest_max: Option<f64>,
        /// The limit for the whole run, if it took longer.
        whole_over: Option<f64>,
    },
}

/// Compares a run with its limits. `others` is the share of the processors that other programs used.
pub(crate) fn judge(results: &[TestResult], whole: Duration, others: Option<f64>, limits: &Limits) -> Speed {
    if limits.slowest.is_none() && limits.whole.is_none() {
        return Speed::NotAsked;
    }
    let Some(others) = others.filter(|others| *others < limits.others) else {
        return Speed::NotJudged { others, others_max: limits.others };
    };
    let is_too_slow = |result: &&TestResult| {
        result.status != Status::Skipped && limits.slowest.is_some_and(|most| result.seconds > most)
    };
    let mut too_slow: Vec<(String, f64)> =
        results.iter().filter(is_too_slow).map(|result| (result.name.clone(), result.seconds)).collect();
    too_slow.sort_by(|a, b| b.1.total_cmp(&a.1));
    let whole_over = limits.whole.filter(|most| whole.as_secs_f64() > *most);
    Speed::Judged { others, too_slow, slowest_max: limits.slowest, whole_over }
}

impl Speed {
    /// True if a test took longer than any may.
    pub(crate) fn is_too_slow(&self) -> bool {
        matches!(self, Self::Judged { too_slow, .. } if !too_slow.is_empty())
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked => Ok(()),
            Self::NotJudged { others: None, .. } => {
                writeln!(f, "speed not judged: this system does not say how busy other programs kept it")
            }
            Self::NotJudged { others: Some(others), others_max } => writeln!(
                f,
                "speed not judged: other programs used {:.0} % of the processors ({:.0} % or more is not quiet)",
                others * 100.0,
                others_max * 100.0,
            ),
            Self::Judged { others, too_slow, slowest_max, whole_over } => {
                writeln!(f, "speed judged: other programs used {:.0} % of the processors", others * 100.0)?;
                for (name, seconds) in too_slow {
                    let most = slowest_max.unwrap_or_default();
                    writeln!(f, "TOO SLOW {name} took {seconds:.1} s; a test may take {most:.0} s")?;
                }
                if let Some(most) = whole_over {
                    writeln!(f, "WARNING: the whole run should take at most {most:.0} s")?;
                }
                Ok(())
            }
        }
    }
}
