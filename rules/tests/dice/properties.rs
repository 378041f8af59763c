//! Properties that hold for any text, and for any formula of a generated kind.

use proptest::prelude::*;
use rand::{SeedableRng, rngs::SmallRng};
use rules::dice::{Dice, Formula, Given, OutOfDice, Random, no_variables};

use crate::support::{parse, variables};

/// Random dice that remember their values.
struct Remembering {
    dice: Random<SmallRng>,
    shown: Vec<u32>,
}

impl Dice for Remembering {
    fn roll(&mut self, faces: u32) -> Result<u32, OutOfDice> {
        let value = self.dice.roll(faces)?;
        self.shown.push(value);
        Ok(value)
    }
}

fn random(seed: u64) -> Random<SmallRng> {
    Random(SmallRng::seed_from_u64(seed))
}

fn target() -> impl Strategy<Value = String> {
    prop_oneof![
        (prop_oneof![Just("<"), Just("<="), Just("="), Just(">="), Just(">"), Just("")], 1..9_u32)
            .prop_map(|(comparison, n)| format!("{comparison}{n}")),
        (1..4_u32).prop_map(|n| format!(">=({n} + @zero)")),
        Just(String::new()),
    ]
}

fn modifier() -> impl Strategy<Value = String> {
    let count = prop_oneof![Just(String::new()), (0..5_u32).prop_map(|n| n.to_string())];
    prop_oneof![
        3 => (prop_oneof![Just("k"), Just("kh"), Just("kl"), Just("d"), Just("dh"), Just("dl")], count)
            .prop_map(|(name, count)| format!("{name}{count}")),
        2 => (prop_oneof![Just("cs"), Just("cf"), Just("df"), Just("sf")], target()).prop_map(|(name, t)| format!("{name}{t}")),
        2 => (prop_oneof![Just("r"), Just("xo"), Just("x"), Just("rr")], 1..3_u32, 0..3_u32)
            .prop_map(|(name, limit, at)| format!("{name}{limit}={at}")),
        1 => prop_oneof![Just("r"), Just("xo"), Just("r<2"), Just("x"), Just("rr")].prop_map(str::to_owned),
        1 => (prop_oneof![Just("min"), Just("max")], 1..7_u32).prop_map(|(name, n)| format!("{name}{n}")),
        1 => prop_oneof![Just("even"), Just("odd")].prop_map(str::to_owned),
    ]
}

fn dice() -> impl Strategy<Value = String> {
    let faces = prop_oneof![2..13_u32, Just(20), Just(100)];
    (0..6_u32, faces, prop::collection::vec(modifier(), 0..4)).prop_map(|(count, faces, mut modifiers)| {
        // Dice explode before they are counted.
        let counted = modifiers.iter().position(|modifier| modifier.starts_with("cs"));
        if counted.is_some_and(|at| modifiers[at..].iter().any(|modifier| modifier.starts_with('x'))) {
            modifiers.sort_by_key(|modifier| !modifier.starts_with('x'));
        }
        let count = if count == 0 { String::new() } else { count.to_string() };
        format!("{count}d{faces}{}", modifiers.concat())
    })
}

/// Formulas of all kinds. All of them can be parsed, and most can be rolled.
fn formula() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        4 => dice(),
        1 => (0..30_u32).prop_map(|n| n.to_string()),
        1 => (0..30_u32).prop_map(|n| format!("{n}.5")),
        1 => prop_oneof![Just("@prof"), Just("@abilities.dex.mod"), Just("4dF"), Just("3dFr"), Just("2dcc1"), Just("d%")]
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let operator = prop_oneof![Just("+"), Just("-"), Just(" * "), Just(" / "), Just(" % ")];
        let function = prop_oneof![Just("floor"), Just("abs"), Just("round"), Just("ceil"), Just("sign")];
        let keep = prop_oneof![Just(""), Just("kh"), Just("kl2"), Just("dl"), Just("dh2"), Just("cs>=5"), Just("khcf<5")];
        prop_oneof![
            3 => (inner.clone(), operator, inner.clone()).prop_map(|(a, o, b)| format!("{a}{o}{b}")),
            1 => inner.clone().prop_map(|a| format!("({a})")),
            1 => inner.clone().prop_map(|a| format!("-({a})[text]")),
            1 => (function, inner.clone()).prop_map(|(f, a)| format!("{f}({a})")),
            1 => prop::collection::vec(inner.clone(), 1..4).prop_map(|list| format!("max({})", list.join(", "))),
            1 => (prop::collection::vec(inner.clone(), 1..4), keep).prop_map(|(list, k)| format!("{{{}}}{k}", list.join(","))),
            1 => (inner.clone(), inner).prop_map(|(a, b)| format!("(min(abs(round({a})), 5))d(1 + abs(floor({b})))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(debug_assertions) { 400 } else { 4_000 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_text_is_too_strange(text in "\\PC{0,60}") {
        let _ = Formula::parse(&text);
    }

    #[test]
    fn no_soup_is_too_strange(text in "[0-9dDkhlrxoscfmin@a.#+*/%(){}\\[\\],<>= \u{2003}-]{0,80}") {
        match Formula::parse(&text) {
            Ok(formula) => {
                let rolled = formula.roll(&mut random(1), &variables);
                let statistics = formula.analyze(&variables, 1);
                if let (Ok(roll), Ok(s)) = (rolled, statistics) {
                    prop_assert!(s.min.is_none_or(|min| min <= roll.total + 1e-9), "{text}: {} {s:?}", roll.total);
                    prop_assert!(s.max.is_none_or(|max| max >= roll.total - 1e-9), "{text}: {} {s:?}", roll.total);
                }
            }
            Err(error) => prop_assert!(error.position <= text.chars().count(), "{text}: {error}"),
        }
    }

    #[test]
    fn rolls_agree_with_themselves_and_with_statistics(text in formula(), seed in any::<u64>()) {
        prop_assume!(text.len() <= 1_000);
        let formula = parse(&text);
        let mut dice = Remembering { dice: random(seed), shown: Vec::new() };
        let Ok(roll) = formula.roll(&mut dice, &variables) else { return Ok(()) };
        prop_assert!(roll.total.is_finite());
        // Rolling with the same given dice makes the same roll, uses all of them, and gives the same total without the
        // report.
        let mut given = Given::new(&dice.shown);
        prop_assert_eq!(formula.roll(&mut given, &variables), Ok(roll.clone()));
        prop_assert!(given.unused().is_empty());
        prop_assert_eq!(formula.total(&mut Given::new(&dice.shown), &variables), Ok(roll.total));
        prop_assert_eq!(roll.dice.len(), dice.shown.len());
        prop_assert!(roll.dice.iter().all(|die| !(die.kept && die.rerolled)));
        // The canonical form means the same, and is its own canonical form.
        let canonical = formula.to_string();
        if canonical.len() <= 1_000 {
            let again = parse(&canonical);
            prop_assert_eq!(again.total(&mut Given::new(&dice.shown), &variables), Ok(roll.total), "{}", canonical);
            prop_assert_eq!(again.to_string(), canonical);
        }
        if let Ok(s) = formula.analyze(&variables, seed) {
            let slack = 1e-9 * roll.total.abs().max(1.0);
            prop_assert!(s.min.is_none_or(|min| min <= roll.total + slack), "{}: {} {:?}", text, roll.total, s);
            prop_assert!(s.max.is_none_or(|max| max >= roll.total - slack), "{}: {} {:?}", text, roll.total, s);
            prop_assert!(s.distribution.len() <= 10_000);
            let sum: f64 = s.distribution.iter().map(|(_, p)| p).sum();
            prop_assert!((sum - 1.0).abs() < 1e-6, "{}: {}", text, sum);
            prop_assert!(s.distribution.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn what_is_kept_and_what_is_dropped_is_all(count in 1..40_u32, faces in 1..12_u32, n in 0..45_u32, seed in any::<u64>()) {
        let roll = |modifier: &str| {
            parse(&format!("{count}d{faces}{modifier}")).roll(&mut random(seed), &no_variables).expect("a roll")
        };
        let all = roll("").total;
        prop_assert_eq!(roll(&format!("kh{n}")).total + roll(&format!("dh{n}")).total, all);
        prop_assert_eq!(roll(&format!("kl{n}")).total + roll(&format!("dl{n}")).total, all);
        // Keeping some dice is the same as dropping the others, die by die.
        let rest = count.saturating_sub(n);
        prop_assert_eq!(roll(&format!("kh{n}")), roll(&format!("dl{rest}")));
        prop_assert_eq!(roll(&format!("kl{n}")), roll(&format!("dh{rest}")));
        let kept = roll(&format!("kh{n}"));
        prop_assert_eq!(kept.dice.iter().filter(|die| die.kept).count(), n.min(count) as usize);
        let lowest_kept = kept.dice.iter().filter(|die| die.kept).map(|die| die.value).min();
        let highest_gone = kept.dice.iter().filter(|die| !die.kept).map(|die| die.value).max();
        prop_assert!(lowest_kept.zip(highest_gone).is_none_or(|(low, high)| low >= high));
    }

    #[test]
    fn a_total_is_the_sum_of_what_its_dice_count(text in dice(), seed in any::<u64>()) {
        let Ok(roll) = parse(&text).roll(&mut random(seed), &variables) else { return Ok(()) };
        let sum: i32 = roll.dice.iter().filter(|die| die.kept).map(|die| die.counted).sum();
        prop_assert_eq!(roll.total, f64::from(sum), "{}: {:?}", text, roll);
        prop_assert!(roll.dice.iter().all(|die| (1..=die.faces.cast_signed()).contains(&die.value)));
    }
}
