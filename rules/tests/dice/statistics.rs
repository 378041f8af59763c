//! Statistics: known values, and agreement with enumeration and with rolls.

use std::time::{Duration, Instant};

use rand::{SeedableRng, rngs::SmallRng};
use rules::dice::{Formula, FormulaErrorKind as Kind, Given, Method, Random, Statistics, no_variables};

use crate::support::{parse, variables};

fn analyze(formula: &str) -> Statistics {
    parse(formula).analyze(&variables, 1).unwrap_or_else(|error| panic!("{formula}: {error}"))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs().max(1.0)
}

/// Formula, least, greatest, mean, deviation.
type Row = (&'static str, Option<f64>, Option<f64>, f64, f64);

/// All of these are exact.
const KNOWN: &[Row] = &[
    ("5", Some(5.0), Some(5.0), 5.0, 0.0),
    ("1d20+5", Some(6.0), Some(25.0), 15.5, 5.766_281_297_335_398),
    ("2d6", Some(2.0), Some(12.0), 7.0, 2.415_229_457_698_24),
    ("-2d6", Some(-12.0), Some(-2.0), -7.0, 2.415_229_457_698_24),
    ("1d6-1d6", Some(-5.0), Some(5.0), 0.0, 2.415_229_457_698_24),
    ("4d6kh3", Some(3.0), Some(18.0), 12.244_598_765_432_098, 2.846_844_445_311_5),
    ("2d20kh", Some(1.0), Some(20.0), 13.825, 4.711_090_638_058_241),
    ("2d20kl", Some(1.0), Some(20.0), 7.175, 4.711_090_638_058_241),
    ("1d20df<5", Some(-1.0), Some(20.0), 9.8, 6.794_115_100_585_211),
    ("1d6x", Some(1.0), None, 4.2, 3.261_901_286_060_018),
    ("-1d6x", None, Some(-1.0), -4.2, 3.261_901_286_060_018),
    ("1d6xo", Some(1.0), Some(12.0), 4.083_333_333_333_333, 2.832_107_577_994_404_5),
    ("1d6r", Some(1.0), Some(6.0), 3.916_666_666_666_666_5, 1.479_019_945_774_904),
    ("1d6rr", Some(2.0), Some(6.0), 4.0, std::f64::consts::SQRT_2),
    ("4dF", Some(-4.0), Some(4.0), 0.0, 1.632_993_161_855_452),
    ("3dcc1", Some(0.0), Some(3.0), 1.5, 0.866_025_403_784_438_6),
    ("10d10cs>=8", Some(0.0), Some(10.0), 3.0, 1.449_137_674_618_943_8),
    ("{1d20, 1d20}kh", Some(1.0), Some(20.0), 13.825, 4.711_090_638_058_241),
    ("max(1d20, 1d20)", Some(1.0), Some(20.0), 13.825, 4.711_090_638_058_241),
    ("(1d4)d6", Some(1.0), Some(24.0), 8.75, 4.754_383_941_865_305),
    ("1d6/2", Some(0.5), Some(3.0), 1.75, 0.853_912_563_829_966_5),
    ("floor(1d6/2)", Some(0.0), Some(3.0), 1.5, 0.957_427_107_756_338_1),
    ("100d6", Some(100.0), Some(600.0), 350.0, 17.078_251_276_599_33),
    ("999d6", Some(999.0), Some(5994.0), 3496.5, 53.979_162_646_339_745),
];

#[test]
fn statistics_are_known() {
    for (formula, min, max, mean, deviation) in KNOWN {
        let s = analyze(formula);
        assert_eq!((s.method, s.min, s.max), (Method::Exact, *min, *max), "{formula}");
        assert!(close(s.mean, *mean) && close(s.standard_deviation, *deviation), "{formula}: {s:?}");
        let sum: f64 = s.distribution.iter().map(|(_, p)| p).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{formula}: {sum}");
    }
}

/// The distribution by enumerating every combination of dice, for formulas that roll `dice` dice with these faces.
fn enumerate(formula: &Formula, faces: &[u32]) -> Vec<(f64, f64)> {
    let combinations: u32 = faces.iter().product();
    let mut totals: Vec<f64> = (0..combinations)
        .map(|mut index| {
            let given: Vec<u32> = faces
                .iter()
                .map(|f| {
                    let value = index % f + 1;
                    index /= f;
                    value
                })
                .collect();
            formula.total(&mut Given::new(&given), &variables).expect("a total")
        })
        .collect();
    totals.sort_by(f64::total_cmp);
    totals.chunk_by(|a, b| a == b).map(|c| (c[0], c.len() as f64 / f64::from(combinations))).collect()
}

#[test]
fn exact_statistics_are_those_of_every_combination() {
    let cases: &[(&str, &[u32])] = &[
        ("3d6dl1", &[6, 6, 6]),
        ("4d6kh3", &[6; 4]),
        ("4d6kh3kl2", &[6; 4]),
        ("5d4dl1dh2", &[4; 5]),
        ("4d6min2max5kh2", &[6; 4]),
        ("4d6kh2min4", &[6; 4]),
        ("4d6kh2cs>=4", &[6; 4]),
        ("4d6kl3min3kh2", &[6; 4]),
        ("3d6cs>=4df", &[6; 3]),
        ("3d6cf<=2sf", &[6; 3]),
        ("3d6sf<=2", &[6; 3]),
        ("3d6even", &[6; 3]),
        ("3d6oddkh0", &[6; 3]),
        ("3d6ms<10", &[6; 3]),
        ("{1d6, 1d8, 1d4}kh2", &[6, 8, 4]),
        ("{1d6, 1d8, 4}dl1", &[6, 8]),
        ("{1d6, 1d6, 1d6}kh2", &[6; 3]),
        ("{2d4, 1d8}kl", &[4, 4, 8]),
        ("{1d6, 1d8, 1d4}kh2cs>=4", &[6, 8, 4]),
        ("{1d6, 1d8}cs>=4", &[6, 8]),
        ("{1d6, 1d6, 1d6}kl2kh", &[6; 3]),
        ("1d6 * 1d8 - 1d4 / 2", &[6, 8, 4]),
        ("1d20 % 7 + 1d4", &[20, 4]),
        ("clamp(1d20 - 5, 0, 1d10)", &[20, 10]),
        ("min(1d6, 1d8, 5) + max(1d4, 2)", &[6, 8, 4]),
        ("pow(1d4, 2) - abs(1d6 - 3)", &[4, 6]),
        ("2d6kh(@prof - 2) + @level", &[6, 6]),
        ("3d6cs>=(1d6)", &[6; 4]),
        ("1d20ms>(1d6)", &[6, 20]),
        ("4dFkh2", &[3; 4]),
        ("0.1 * 1d6 + 0.1 * 1d6", &[6, 6]),
    ];
    for (formula, faces) in cases {
        let s = analyze(formula);
        assert_eq!(s.method, Method::Exact, "{formula}");
        let expected = enumerate(&parse(formula), faces);
        if *formula != "0.1 * 1d6 + 0.1 * 1d6" {
            assert_eq!(s.distribution.len(), expected.len(), "{formula}");
        }
        for (total, _) in &s.distribution {
            let near =
                |list: &[(f64, f64)]| -> f64 { list.iter().filter(|(v, _)| close(*v, *total)).map(|(_, p)| p).sum() };
            assert!((near(&s.distribution) - near(&expected)).abs() < 1e-12, "{formula}: {total}");
        }
        assert!(close(s.min.expect("min"), expected.first().expect("some").0), "{formula}");
        assert!(close(s.max.expect("max"), expected.last().expect("some").0), "{formula}");
    }
}

/// Whether rolls fit a distribution: a chi-square test over totals that are expected often enough.
fn fits(formula: &str, s: &Statistics, rolls: usize) {
    let parsed = parse(formula);
    let mut dice = Random(SmallRng::seed_from_u64(42));
    let mut totals: Vec<f64> = (0..rolls).map(|_| parsed.total(&mut dice, &variables).expect("a total")).collect();
    totals.sort_by(f64::total_cmp);
    let (mut sum, mut bins, mut rest) = (0.0, 0.0, (rolls as f64, rolls as f64));
    for (value, p) in s.distribution.iter().filter(|(_, p)| *p * rolls as f64 >= 10.0) {
        let expected = p * rolls as f64;
        let low = totals.partition_point(|t| *t < value - 1e-9);
        let seen = (totals.partition_point(|t| *t <= value + 1e-9) - low) as f64;
        sum += (seen - expected).powi(2) / expected;
        bins += 1.0;
        rest = (rest.0 - expected, rest.1 - seen);
    }
    if rest.0 >= 10.0 {
        sum += (rest.1 - rest.0).powi(2) / rest.0;
    }
    // About five standard deviations of a chi-square distribution.
    let limit = bins + 5.0 * f64::sqrt(2.0 * bins + 10.0) + 10.0;
    assert!(sum < limit, "{formula}: chi-square {sum} with {bins} bins");
}

#[test]
fn rolls_fit_exact_statistics() {
    for formula in [
        "1d20",
        "3d6",
        "8d6",
        "4d6kh3",
        "20d6kh10",
        "2d6x",
        "5d10x>=8",
        "3d6xo>=5",
        "4d6r<3",
        "4d6rr<3",
        "4d6r<3x",
        "4d6xr<2",
        "4d6xcs>=5",
        "4d6x>=5min2",
        "3d6xx",
        "4d6xox",
        "6d6r2<=3",
        "4d6x2=6",
        "4d6x3>=5",
        "4d6rr2<=2",
        "4d6xo1=6",
        "4d6min2x3=6",
        "4d6r1=1x",
        "4d6kh3x",
        "4d6kh2r<4",
        "4d6dl1r1x",
        "5d6r1kh3",
        "5d6rr<3dl2",
        "5d6rmin2kh3",
        "{2d6x, 3d4}kh",
        "{3d6, 3d6, 3d6, 3d6}kh2",
        "(2d4)d6",
        "1d(1d20)",
        "(1d3)d6x",
        "2d6x * 2 - 1d4r",
        "4dFr",
        "1d6x%4",
        "3d6x=5cs>4",
        "5d10cs>7df",
        "3d6x1=6cs>=5",
    ] {
        let s = analyze(formula);
        assert_eq!(s.method, Method::Exact, "{formula}");
        fits(formula, &s, 40_000);
    }
}

#[test]
fn what_cannot_be_reckoned_is_simulated() {
    for formula in ["200d20kh100", "1d1000000000", "999d100 * 999d100", "4d6xkh3r1x", "4d6cs=3min4kh1", "4d6r1=1kh2"] {
        let s = analyze(formula);
        assert_eq!(s.method, Method::Simulated, "{formula}");
        assert!(s.distribution.len() <= 1_000, "{formula}");
        let sum: f64 = s.distribution.iter().map(|(_, p)| p).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{formula}: {sum}");
        assert_eq!(s, analyze(formula), "{formula}: the same seed, the same answer");
    }
    let s = analyze("1d1000000000");
    assert_eq!((s.min, s.max), (Some(1.0), Some(1e9)));
    assert!((s.mean / 5e8 - 1.0).abs() < 0.02, "{s:?}");
    let s = analyze("200d20kh100");
    assert_eq!((s.min, s.max), (Some(100.0), Some(2000.0)));
}

#[test]
fn formulas_that_can_fail_have_no_statistics() {
    let kind = |formula: &str| parse(formula).analyze(&variables, 1).err().map(|error| error.kind);
    assert_eq!(kind("1 / (1d6 - 1)"), Some(Kind::DivisionByZero));
    assert_eq!(kind("(1d6 - 2)d6"), Some(Kind::Count));
    assert_eq!(kind("1d(1d6 - 1)"), Some(Kind::Faces));
    assert_eq!(kind("@nothing"), Some(Kind::UnknownVariable));
    assert_eq!(kind("1d6x>0"), Some(Kind::TooManyDice));
    assert_eq!(kind("999d6x>1"), Some(Kind::TooManyDice));
    assert_eq!(kind("1d1rr"), Some(Kind::TooManyDice));
    assert_eq!(kind("sqrt(1d6 - 3)"), Some(Kind::NotFinite));
    assert_eq!(kind(&["(999)d6"; 11].join("+")), Some(Kind::TooManyDice));
    assert!(Formula::parse("@a").is_ok_and(|f| f.analyze(&no_variables, 1).is_err()));
}

#[test]
fn answers_are_json_as_the_api_wants_them() {
    let json = serde_json::to_string(&analyze("1d2x>5 + 0.5")).expect("JSON");
    assert_eq!(
        json,
        "{\"min\":1.5,\"max\":2.5,\"mean\":2,\"standard_deviation\":0.5,\"method\":\"exact\",\
         \"distribution\":[[1.5,0.5],[2.5,0.5]]}"
    );
    let json = serde_json::to_value(analyze("1d6x")).expect("JSON");
    assert_eq!(
        (&json["max"], &json["min"], &json["distribution"][0][0]),
        (&serde_json::json!(null), &1.into(), &1.into())
    );
}

/// Formulas of 1,000 bytes that need as much work as possible.
fn adversarial() -> Vec<String> {
    let fill = |unit: &str, separator: &str| {
        let count = (1_000 + separator.len()) / (unit.len() + separator.len());
        vec![unit; count].join(separator)
    };
    vec![
        fill("999d6", "+")[..59].to_owned(),
        format!("999d6{}", "even".repeat(248)),
        format!("999d6{}", "r".repeat(995)),
        format!("500d6{}", "x".repeat(900)),
        format!("999d6{}", "xo1=6".repeat(198)),
        format!("9d6{}", "x9=6".repeat(240)),
        format!("99d9{}", "kh50".repeat(240)),
        format!("999d6{}", "dl".repeat(490)),
        format!("999d9999kh500{}", "cs>5".repeat(240)),
        format!("{{{}}}kh9", fill("9d99", ",")[..900].trim_end_matches(|c| c != '9')),
        format!("{{{}}}kh9cs>5", fill("d9", ",")[..899].trim_end_matches(',')),
        format!("{{{}}}dl", fill("1d9999", ",")[..900].trim_end_matches(|c| c != '9')),
        fill("1d9999", "+"),
        fill("1d9999", "*"),
        fill("7d97", "*"),
        fill("9d9x>2", "+"),
        fill("1d99", "%"),
        format!("(((((9d9)d9)d9)d9)d9)d9+{}", fill("(d9)d(d9)", "+"))[..900].trim_end_matches(|c| c != ')').to_owned(),
        fill("(d99)d(d99)", "+"),
        fill("9d9cs>(d9)", "+"),
        fill("9d9x(d9)cs>(d9)r(d9)", "+"),
        format!("max({})", fill("1d9999", ",")[..900].trim_end_matches(|c| c != '9')),
        format!("hypot({})", vec!["d997"; 100].join(",")),
        fill("sqrt(1d9999)", "+"),
        fill("0.1*d9999", "+"),
        fill("99d99kh9", "+"),
        fill("99d6kh50", "+"),
        fill("999d9999", "+"),
        fill("d1000000000", "*"),
        format!("{}1{}", "-(".repeat(64), ")".repeat(64)),
        format!("{}1", "- ".repeat(499)),
        fill("1[a]", "+"),
        fill("{d6}kh", "+"),
        "(".repeat(1_000),
        "{".repeat(1_000),
        "9".repeat(1_000),
        fill("@level", "+"),
        format!("{}d20{}", "{".repeat(60), ",d20}kh".repeat(60)),
        format!("{}d20{}", "max(".repeat(60), ",d20)".repeat(60)),
        "5d3rr50<5*999d10kh9xo>2r*(min(999,abs(999d3)))d20%50d(1+abs(20d2xoeven))+50d(1+abs(99d100rr50<5))".to_owned(),
        "max((min(999,abs(50d(1+abs(9d9999x9=1cs>(d9))))))d6kh50,2d3rxosf<9)%3d(1+abs(999d9999sf<9r<3))".to_owned(),
        "(floor((99d6)/3))d6kh50+5d9999x60>1cs>(d9)+9d9999kh5".to_owned(),
        format!("{}5{}", "(".repeat(60), "d6)".repeat(60)),
        format!("{}2d2{}", "(".repeat(60), ")d2".repeat(60)),
        format!("{}2d2{}", "1d(".repeat(60), ")".repeat(60)),
    ]
}

/// Whether at least one of ten runs is within the limit, because other programs may slow the machine down.
fn within(limit: Duration, work: impl Fn()) -> Result<(), Duration> {
    let time = || {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let best = (0..10).try_fold(Duration::MAX, |best, _| {
        let best = best.min(time());
        if best <= limit { Err(()) } else { Ok(best) }
    });
    best.map_or(Ok(()), Err)
}

/// The time for rolling 999 dice `times` times, on this machine at this moment. Only a tenth of a second is measured and
/// extrapolated.
fn so_many_rolls(times: u32) -> Duration {
    let formula = Formula::parse("999d6").expect("it");
    let start = Instant::now();
    let mut rolled = 0;
    while start.elapsed() < Duration::from_millis(100) {
        let _ = formula.roll(&mut Random(SmallRng::seed_from_u64(1)), &variables);
        rolled += 1;
    }
    start.elapsed() * times / rolled
}

#[test]
fn every_formula_is_answered_soon() {
    let mut slow = Vec::new();
    for formula in adversarial() {
        assert!(formula.len() <= 1_000);
        let limit = so_many_rolls(20_000);
        let analysed = within(limit, || {
            let _ = Formula::parse(&formula).and_then(|f| f.analyze(&variables, 1));
        });
        let rolled = within(limit, || {
            let _ = Formula::parse(&formula).and_then(|f| f.roll(&mut Random(SmallRng::seed_from_u64(1)), &variables));
        });
        if let Err(took) = analysed.and(rolled) {
            slow.push((formula, took, limit));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
}
