//! What formulas mean: each part of the language with given dice.

use rules::dice::{DieKind, Verdict};

use crate::support::{canonical, parse, plain, roll, total};

/// Formula, given dice in the order of rolling, total.
const ROWS: &[(&str, &[u32], f64)] = &[
    // dice
    ("1d20+5", &[10], 15.0),
    ("d20", &[7], 7.0),
    ("D20", &[7], 7.0),
    ("2D6", &[3, 4], 7.0),
    ("d%", &[100], 100.0),
    ("2d%kh", &[12, 90], 90.0),
    ("1d1", &[1], 1.0),
    ("4dF", &[1, 2, 3, 3], 1.0),
    ("4df", &[1, 1, 1, 1], -4.0),
    ("3dc", &[2, 2, 1], 2.0),
    ("3dcc1", &[2, 2, 1], 2.0),
    ("3dcc0", &[2, 2, 1], 1.0),
    ("3dCC0", &[2, 2, 1], 1.0),
    ("-3d6", &[1, 2, 3], -6.0),
    // keep and drop
    ("4d6k", &[1, 6, 3, 4], 6.0),
    ("4d6kh", &[1, 6, 3, 4], 6.0),
    ("4d6kh3", &[1, 6, 3, 4], 13.0),
    ("4d6KH3", &[1, 6, 3, 4], 13.0),
    ("4d6kl", &[1, 6, 3, 4], 1.0),
    ("4d6kl2", &[1, 6, 3, 4], 4.0),
    ("4d6d", &[1, 6, 3, 4], 13.0),
    ("4d6d1", &[1, 6, 3, 4], 13.0),
    ("4d6dl2", &[1, 6, 3, 4], 10.0),
    ("4d6dh", &[1, 6, 3, 4], 8.0),
    ("3d6kh5", &[1, 2, 3], 6.0),
    ("3d6dl5", &[1, 2, 3], 0.0),
    ("3d6kh0", &[1, 2, 3], 0.0),
    ("5d6dl1kh2", &[1, 2, 3, 4, 5], 9.0),
    ("5d6kh4kl2", &[1, 2, 3, 4, 5], 5.0),
    ("5d6kh4dh1kl1", &[1, 2, 3, 4, 5], 2.0),
    ("1d20kh-1", &[10], 9.0),
    ("4dFkh2", &[1, 2, 3, 3], 2.0),
    // reroll
    ("2d6r", &[1, 5, 1], 6.0),
    ("2d6r2", &[2, 5, 6], 11.0),
    ("2d6r=2", &[2, 5, 6], 11.0),
    ("2d6r<3", &[2, 5, 1], 6.0),
    ("2d6r>=5", &[2, 5, 1], 3.0),
    ("2d6rr", &[1, 5, 1, 1, 3], 8.0),
    ("2d6rr<3", &[2, 5, 1, 2, 4], 9.0),
    ("3d6r1=1", &[1, 1, 4, 6], 11.0),
    ("3d6rr2<=2", &[1, 2, 1, 2, 2], 5.0),
    ("2dFr", &[1, 3, 1], 0.0),
    ("2dFr=(-1)", &[1, 3, 2], 1.0),
    ("2dFrr", &[1, 3, 1, 3], 2.0),
    // explode
    ("2d6x", &[6, 3, 6, 2], 17.0),
    ("2d6X", &[6, 3, 6, 2], 17.0),
    ("2d6xo", &[6, 6, 6, 6], 24.0),
    ("2d6x>4", &[5, 1, 6, 2], 14.0),
    ("1d20x10", &[10, 10, 3], 23.0),
    ("3d6x2=6", &[6, 6, 6, 6, 1], 25.0),
    ("2d6x0=6", &[6, 6], 12.0),
    ("10d10x10", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10, 1], 66.0),
    ("4d6xkh3", &[6, 1, 2, 3, 5], 14.0),
    ("4d6kh3x", &[6, 1, 2, 3, 5], 16.0),
    // counts
    ("5d10cs", &[10, 9, 1, 10, 3], 2.0),
    ("5d10cs6", &[6, 9, 1, 10, 6], 2.0),
    ("5d10cs>=6", &[6, 9, 1, 10, 3], 3.0),
    ("5d10cs<3", &[6, 9, 1, 10, 2], 2.0),
    ("5d10cf", &[1, 9, 1, 10, 3], 2.0),
    ("5d10cf<=3", &[1, 9, 1, 10, 3], 3.0),
    ("1d20df<5", &[4], -1.0),
    ("1d20df<5", &[5], 5.0),
    ("3d6df", &[1, 5, 6], 10.0),
    ("3d6df1", &[1, 5, 6], 10.0),
    ("5d10cs>7df", &[8, 9, 1, 2, 10], 1.0),
    ("5d10cs>7df=1", &[8, 9, 1, 2, 10], 2.0),
    ("5d10cf<3df", &[8, 9, 1, 2, 10], -2.0),
    ("3d6sf", &[1, 5, 6], 10.0),
    ("3d6sf<=2", &[2, 5, 6], 9.0),
    ("3d6cs>=5sf", &[2, 5, 6], 0.0),
    ("4d6even", &[1, 2, 4, 6], 3.0),
    ("4d6odd", &[1, 2, 4, 6], 1.0),
    ("1d20ms>12", &[15], 3.0),
    ("1d20ms>=12", &[10], -2.0),
    ("6d6ms12", &[3, 3, 3, 3, 3, 3], 6.0),
    ("1d100ms<50", &[30], 20.0),
    ("1d100ms<=50", &[70], -20.0),
    ("3d6kh2ms>=5", &[3, 3, 1], 1.0),
    // clamps
    ("3d6min3", &[1, 2, 6], 12.0),
    ("3d6max4", &[1, 2, 6], 7.0),
    ("3d6min2max5", &[1, 2, 6], 9.0),
    ("3d6min3cs>=3", &[1, 2, 6], 3.0),
    ("4d6min2dl1kh2", &[1, 1, 5, 6], 11.0),
    // pools
    ("{1d6, 2d8}", &[3, 4, 5], 12.0),
    ("{1d20, 1d20+5}kh", &[18, 10], 18.0),
    ("{1d20,1d20+5}kl", &[18, 10], 15.0),
    ("{4d6kh3, 3d6, 10}dl", &[6, 5, 4, 1, 1, 1, 2], 25.0),
    ("{1d20, 1d20, 1d20}cs>=10", &[9, 10, 11], 2.0),
    ("{1d20, 1d20, 1d20}cs10", &[9, 10, 11], 1.0),
    ("{1d20, 1d20, 1d20}cf<10", &[9, 10, 11], 1.0),
    ("{1d20, 1d20, 1d20}kh2cs>=10", &[9, 8, 11], 1.0),
    ("{{1d6, 1d6}kh, {1d6, 1d6}kl}", &[2, 5, 3, 4], 8.0),
    ("{1d6, 1d6}kh(1+1)", &[2, 5], 7.0),
    ("{3}", &[], 3.0),
    // computed counts, faces and targets
    ("(2d4)d6", &[1, 2, 4, 5, 6], 15.0),
    ("1d(1d20)", &[12, 7], 7.0),
    ("(1+1)d(2*3)", &[2, 3], 5.0),
    ("(min(2,3))d6", &[2, 3], 5.0),
    ("(@level - 5)d6", &[], 0.0),
    ("1d@level", &[5], 5.0),
    ("3d12cs<=(@prof)", &[3, 4, 1], 2.0),
    ("3d12cs<=@prof", &[3, 4, 1], 2.0),
    ("1d20ms>(4d6)", &[1, 2, 3, 4, 15], 5.0),
    ("4d6kh(1+2)", &[1, 6, 3, 4], 13.0),
    ("(@prof)d6", &[1, 2, 3], 6.0),
    ("((((1d4))))d6", &[1, 2], 2.0),
    // arithmetic
    ("7/2", &[], 3.5),
    ("-7 % 3", &[], -1.0),
    ("7 % -3", &[], 1.0),
    ("5 * -3", &[], -15.0),
    ("5 - - 3", &[], 8.0),
    ("--5", &[], 5.0),
    ("+-+5", &[], -5.0),
    ("2+3*4", &[], 14.0),
    ("(2+3)*4", &[], 20.0),
    ("10-4-3", &[], 3.0),
    ("100/5/2", &[], 10.0),
    ("20%7*2", &[], 12.0),
    ("0.5*3", &[], 1.5),
    ("0*-1", &[], 0.0),
    ("9007199254740992", &[], 9_007_199_254_740_992.0),
    // functions
    ("max(1d6, 4)", &[2], 4.0),
    ("min(1d6,4,3)", &[5], 3.0),
    ("floor(7/2)", &[], 3.0),
    ("ceil(7/2)", &[], 4.0),
    ("round(2.5)", &[], 3.0),
    ("round(-2.5)", &[], -2.0),
    ("round(0.49999999999999994)", &[], 0.0),
    ("abs(-3)", &[], 3.0),
    ("sign(-3)", &[], -1.0),
    ("sqrt(16)", &[], 4.0),
    ("cbrt(27)", &[], 3.0),
    ("pow(2, 10)", &[], 1024.0),
    ("trunc(-2.7)", &[], -2.0),
    ("exp(0)", &[], 1.0),
    ("log(1)", &[], 0.0),
    ("log2(8)", &[], 3.0),
    ("log10(1000)", &[], 3.0),
    ("hypot(3, 4)", &[], 5.0),
    ("clz32(1)", &[], 31.0),
    ("imul(3, 5)", &[], 15.0),
    ("clamp(1d20, 5, 15)", &[18], 15.0),
    ("clamp(1d20, 5, 15)", &[2], 5.0),
    // variables
    ("1d20 + @abilities.dex.mod + @prof", &[10], 15.0),
    ("@prof-1", &[], 2.0),
    ("ceil(@classes.rogue.levels / 2)", &[], 2.0),
    ("(ceil(@classes.rogue.levels / 2))d6", &[3, 4], 7.0),
    // white space, text
    (" \t1d6\u{a0}+\u{3000}2\n", &[3], 5.0),
    ("1d8[fire] + 2d6 [cold] - 1[luck]", &[3, 1, 2], 5.0),
    ("1d20 + 5 # to hit", &[3], 8.0),
    ("1d20#", &[3], 3.0),
    ("(1d6+1)[both]", &[3], 4.0),
    ("((1d6)[a])[b]", &[3], 3.0),
    ("{1d6,2}[pool]", &[3], 5.0),
    ("max(1,2)[best]", &[], 2.0),
    ("@prof[proficiency]", &[], 3.0),
];

#[test]
fn formulas_mean_what_they_say() {
    for (formula, given, expected) in ROWS {
        assert_eq!(total(formula, given), *expected, "{formula}");
    }
}

#[test]
fn canonical_forms_mean_the_same() {
    for (formula, given, expected) in ROWS {
        let written = canonical(formula);
        assert_eq!(total(&written, given), *expected, "{formula} is written {written}");
        assert_eq!(canonical(&written), written, "{formula}");
    }
}

#[test]
fn canonical_forms_are_short() {
    for (formula, expected) in [
        ("1d20+5", "1d20 + 5"),
        ("d20", "1d20"),
        (" 4D6K3 ", "4d6kh3"),
        ("((1d6))+(2*3)", "1d6 + 2 * 3"),
        ("(1+2)*3", "(1 + 2) * 3"),
        ("1-(2-3)", "1 - (2 - 3)"),
        ("1-(2*3)", "1 - 2 * 3"),
        ("-(1+2)", "-(1 + 2)"),
        ("-(-1)", "-(-1)"),
        ("--1", "1"),
        ("d%", "1d100"),
        ("4df", "4dF"),
        ("(2d4)D(6)r1<=(@x)", "(2d4)d(6)r1<=(@x)"),
        ("{1d6,2}K [a] # b", "{1d6, 2}kh[a]"),
        ("max( 1 ,2)", "max(1, 2)"),
        ("(1d6[a])[b]", "(1d6[a])[b]"),
        ("2*-3", "2 * -3"),
    ] {
        assert_eq!(canonical(formula), expected);
    }
}

#[test]
fn every_die_is_reported() {
    let rolled = roll("4d6r1kh2x + 1d20", &[1, 2, 6, 6, 3, 5, 4, 20]);
    let seen: Vec<_> = rolled.dice.iter().map(|d| (d.faces, d.value, d.kept, d.exploded, d.rerolled)).collect();
    assert_eq!(
        seen,
        [
            (6, 1, false, false, true),
            (6, 2, false, false, false),
            (6, 6, true, true, false),
            (6, 6, true, true, false),
            (6, 3, false, false, false),
            (6, 5, true, false, false),
            (6, 4, true, false, false),
            (20, 20, true, false, false),
        ]
    );
    assert_eq!(rolled.total, 41.0);
}

#[test]
fn of_equal_dice_the_first_is_kept() {
    let kept = |formula| roll(formula, &[4, 4, 2, 4]).dice.iter().map(|d| d.kept).collect::<Vec<_>>();
    assert_eq!(kept("4d6kh1"), [true, false, false, false]);
    assert_eq!(kept("4d6kh2"), [true, true, false, false]);
    assert_eq!(kept("4d6dl2"), [true, true, false, false]);
    assert_eq!(kept("4d6dh2"), [true, false, true, false]);
    assert_eq!(kept("4d6kl2"), [true, false, true, false]);
}

#[test]
fn dice_of_dropped_members_are_dropped() {
    let rolled = roll("{2d6, (1d4)d8, 3}kl2 + 1d4", &[1, 2, 2, 7, 8, 4]);
    assert_eq!(rolled.total, 10.0);
    let kept: Vec<_> = rolled.dice.iter().map(|d| d.kept).collect();
    assert_eq!(kept, [true, true, false, false, false, true]);
}

#[test]
fn dice_say_how_they_count() {
    let rolled = roll("3d6min3", &[1, 3, 6]);
    assert_eq!(rolled.dice.iter().map(|d| (d.value, d.counted)).collect::<Vec<_>>(), [(1, 3), (3, 3), (6, 6)]);
    let rolled = roll("4d10cs>7df=1", &[8, 1, 4, 10]);
    let verdicts: Vec<_> = rolled.dice.iter().map(|d| d.verdict).collect();
    assert_eq!(verdicts, [Verdict::Success, Verdict::Failure, Verdict::Missed, Verdict::Success]);
    assert_eq!(roll("1dF", &[1]).dice.first().map(|d| (d.kind, d.faces, d.value)), Some((DieKind::Fate, 3, -1)));
    assert_eq!(roll("1dc", &[1]).dice.first().map(|d| (d.kind, d.faces, d.value)), Some((DieKind::Coin, 2, 0)));
}

#[test]
fn flavours_carry_their_totals() {
    let rolled = roll("2d6[fire] + (1d8 + 2)[ cold ] # breath", &[3, 4, 5]);
    let seen: Vec<_> = rolled.flavours.iter().map(|f| (&*f.text, f.total, f.first_die, f.dice)).collect();
    assert_eq!(seen, [("fire", 7.0, 0, 2), ("cold", 7.0, 2, 1)]);
    let formula = parse("2d6[fire] + (1d8 + 2)[ cold ] #  breath ");
    assert_eq!(formula.comment(), Some("breath"));
    assert_eq!(formula.flavours().collect::<Vec<_>>(), ["fire", "cold"]);
    assert_eq!(parse("1d20 + @a.b + @c").variables().collect::<Vec<_>>(), ["a.b", "c"]);
    assert_eq!(parse("1d20 #  ").comment(), None);
}

#[test]
fn results_are_json_as_the_api_wants_them() {
    let rolled = roll("2d6x[fire] + 0.5", &[6, 1, 2]);
    let json = serde_json::to_value(&rolled).expect("JSON");
    assert_eq!(
        json,
        serde_json::json!({
            "total": 9.5,
            "dice": [
                { "faces": 6, "value": 6, "kept": true, "exploded": true },
                { "faces": 6, "value": 1, "kept": true },
                { "faces": 6, "value": 2, "kept": true },
            ],
            "flavors": [{ "text": "fire", "total": 9 }],
        })
    );
    let text = serde_json::to_string(&roll("3d6cs>4 + 1dF", &[6, 1, 5, 1])).expect("JSON");
    assert_eq!(
        text,
        "{\"total\":1,\"dice\":[{\"faces\":6,\"value\":6,\"counted\":1,\"kept\":true,\"success\":true},\
         {\"faces\":6,\"value\":1,\"counted\":0,\"kept\":true},\
         {\"faces\":6,\"value\":5,\"counted\":1,\"kept\":true,\"success\":true},\
         {\"faces\":3,\"value\":-1,\"kept\":true,\"kind\":\"fate\"}]}"
    );
}

#[test]
fn depth_of_fifty_works() {
    for depth in [50, 64] {
        let formula = format!("{}1d6{}", "(".repeat(depth), ")".repeat(depth));
        assert_eq!(plain(&formula, &[4]), 4.0);
        let formula = format!("{}1{}", "max(1,".repeat(depth), ")".repeat(depth));
        assert_eq!(plain(&formula, &[]), 1.0);
        let formula = format!("{}1d6{}", "{".repeat(depth), "}kh".repeat(depth));
        assert_eq!(plain(&formula, &[4]), 4.0);
    }
}
