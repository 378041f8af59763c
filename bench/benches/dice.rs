//! Compares our dice with two other crates in the same run: `cargo bench -p bench --bench dice`.
//!
//! One element is one formula: parsed and rolled, or only rolled. Each engine gets a fast generator of its own kind. Ours and
//! tyche's report each die; `total` is ours without the report. caith cannot keep a parsed formula, so it is in the first
//! group only. Only ours has `analyze` and `fair`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::{SeedableRng, rngs::SmallRng};
use rules::dice::{FairSeed, Formula, Random, Roll, no_variables};
use tyche::dice::roller::FastRand;

/// The same formula as written for ours, tyche and caith.
const FORMULAS: [(&str, &str, &str); 5] = [
    ("1d20+5", "1d20+5", "1d20+5"),
    ("4d6kh3", "4d6kh3", "4d6 K3"),
    ("8d6", "8d6", "8d6"),
    ("10d10x10", "10d10x10", "10d10 ie10"),
    ("2d20kh1+7", "2d20kh1+7", "2d20 K1+7"),
];

fn random() -> Random<SmallRng> {
    Random(SmallRng::seed_from_u64(7))
}

fn parse_and_roll(c: &mut Criterion) {
    let mut group = c.benchmark_group("parse+roll");
    group.throughput(Throughput::Elements(1));
    for (ours, theirs, caiths) in FORMULAS {
        group.bench_function(format!("{ours}/rules"), |b| {
            let mut dice = random();
            b.iter(|| Formula::parse(black_box(ours)).and_then(|f| f.roll(&mut dice, &no_variables)).map(|r| r.total));
        });
        group.bench_function(format!("{ours}/tyche"), |b| {
            let mut roller = FastRand::default();
            b.iter(|| {
                let expression: tyche::Expr = black_box(theirs).parse().ok()?;
                expression.eval(&mut roller).ok()?.calc().ok()
            });
        });
        group.bench_function(format!("{ours}/caith"), |b| {
            b.iter(|| caith::Roller::new(black_box(caiths)).and_then(|r| r.roll()).is_ok());
        });
    }
    group.finish();
}

fn roll(c: &mut Criterion) {
    let mut group = c.benchmark_group("roll");
    group.throughput(Throughput::Elements(1));
    for (ours, theirs, _) in FORMULAS {
        let (Ok(formula), Ok(expression)) = (Formula::parse(ours), theirs.parse::<tyche::Expr>()) else { continue };
        group.bench_function(format!("{ours}/rules, reported"), |b| {
            let (mut dice, mut roll) = (random(), Roll::default());
            b.iter(|| formula.roll_into(&mut dice, &no_variables, &mut roll).map(|()| roll.total));
        });
        group.bench_function(format!("{ours}/rules, total"), |b| {
            let mut dice = random();
            b.iter(|| formula.total(&mut dice, &no_variables));
        });
        group.bench_function(format!("{ours}/tyche"), |b| {
            let mut roller = FastRand::default();
            b.iter(|| expression.eval(&mut roller).ok()?.calc().ok());
        });
    }
    group.finish();
}

fn analyze(c: &mut Criterion) {
    let mut group = c.benchmark_group("analyze");
    for text in ["20d6kh10", "4d6kh3", "8d6", "10d10x10", "2d20kh1+7", "999d6", "{4d6kh3, 4d6kh3, 4d6kh3}kh2"] {
        let Ok(formula) = Formula::parse(text) else { continue };
        group.bench_function(text, |b| b.iter(|| formula.analyze(&no_variables, 1)));
    }
    group.finish();
}

fn fair(c: &mut Criterion) {
    let seed = FairSeed::new(&[7; 32], "tavern");
    let mut group = c.benchmark_group("fair");
    group.throughput(Throughput::Elements(1));
    for text in ["1d20+5", "8d6"] {
        let Ok(formula) = Formula::parse(text) else { continue };
        let (mut roll, mut counter) = (Roll::default(), 0);
        group.bench_function(text, |b| {
            b.iter(|| {
                counter += 1;
                formula.roll_into(&mut seed.roll(counter), &no_variables, &mut roll).map(|()| roll.total)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, parse_and_roll, roll, analyze, fair);
criterion_main!(benches);
