//! Rejected formulas: the position, the kind and the hint.

use rules::dice::{Formula, FormulaErrorKind as Kind, Given, Limits, OutOfDice, no_variables};

use crate::support::{error, parse};

/// Formula, kind, position in characters, a part of the hint (or nothing).
const ROWS: &[(&str, Kind, usize, &str)] = &[
    // empty
    ("", Kind::Empty, 0, "1d20 + 5"),
    ("  \u{2003}", Kind::Empty, 0, "1d20 + 5"),
    ("# only a comment", Kind::Empty, 0, "1d20 + 5"),
    // not a formula
    ("/r 1d20", Kind::Syntax, 0, "Leave the command out"),
    ("/roll 1d20", Kind::Syntax, 0, "Leave the command out"),
    ("!roll 1d20", Kind::Syntax, 0, "Leave the command out"),
    ("roll 1d20", Kind::Syntax, 0, "Leave the command out"),
    ("[[1d20]]", Kind::Syntax, 0, "[[ ]]"),
    ("\u{feff}1d20", Kind::Syntax, 0, "byte order mark"),
    ("1d20 to hit", Kind::Syntax, 5, "[flavour]"),
    ("fireball", Kind::Syntax, 0, "@abilities.dex.mod"),
    ("\"1d20\"", Kind::Syntax, 0, "quotes"),
    ("1d20 \"hit\"", Kind::Syntax, 5, "[flavour]"),
    ("advantage", Kind::Syntax, 0, "2d20kh"),
    ("1d20adv", Kind::Modifier, 4, "2d20kh"),
    ("1d20 advantage", Kind::Syntax, 5, "2d20kh"),
    ("1d20dis", Kind::Modifier, 4, "2d20kl"),
    ("1d20 disadvantage", Kind::Syntax, 5, "2d20kl"),
    // incomplete or unbalanced
    ("()", Kind::Syntax, 1, "missing"),
    ("1d20 +", Kind::Syntax, 6, "missing term"),
    ("1d20 + # hit", Kind::Syntax, 7, "missing term"),
    ("1d4]", Kind::Syntax, 3, "opening"),
    ("1d4[fire", Kind::Syntax, 3, "Add `]`"),
    ("1d4))", Kind::Syntax, 3, "opening"),
    ("((1d4)", Kind::Syntax, 0, "Add `)`"),
    ("(1d4 # x", Kind::Syntax, 0, "Add `)`"),
    ("{1d4, 1d6", Kind::Syntax, 0, "Add `}`"),
    ("{1d4)", Kind::Syntax, 4, "opening"),
    ("max(1, 2", Kind::Syntax, 3, "Add `)`"),
    ("{}", Kind::Syntax, 1, "missing"),
    ("{1d4,}", Kind::Syntax, 5, "missing"),
    ("max(, 2)", Kind::Syntax, 4, "missing"),
    ("1d4[a][b]", Kind::Syntax, 6, "into one"),
    ("1d4[]", Kind::Syntax, 3, "1d8[fire]"),
    ("1d4[[a]]", Kind::Syntax, 4, "plain text"),
    ("[fire]1d4", Kind::Syntax, 0, "follows"),
    ("1d6, 2", Kind::Syntax, 3, "Commas"),
    ("* 3", Kind::Syntax, 0, ""),
    ("3 * / 2", Kind::Syntax, 4, ""),
    // numbers
    (".5", Kind::Syntax, 0, "0.5"),
    ("1d4 + .5", Kind::Syntax, 6, "0.5"),
    ("5.", Kind::Syntax, 1, "5.0"),
    ("1.2.3", Kind::Syntax, 3, "one point"),
    ("1e5", Kind::Syntax, 1, "1000"),
    ("2(3)", Kind::Syntax, 1, "multiplication"),
    ("2**3", Kind::Syntax, 2, "pow"),
    ("2^3", Kind::Syntax, 1, "pow"),
    ("7//2", Kind::Syntax, 2, "floor"),
    ("1d6 \u{2212} 1", Kind::Syntax, 4, "minus"),
    ("\u{2212}1", Kind::Syntax, 0, "minus"),
    ("2 \u{d7} 3", Kind::Syntax, 2, "multiplication sign"),
    ("\u{663}d6", Kind::Syntax, 0, ""),
    ("1d6\u{200b}", Kind::Syntax, 3, ""),
    ("\u{1f3b2}", Kind::Syntax, 0, ""),
    // dice
    ("d", Kind::Faces, 1, "1d20"),
    ("2d", Kind::Faces, 2, "1d20"),
    ("2 d 10", Kind::Syntax, 2, "2d10"),
    ("2d 10", Kind::Faces, 2, "2d10"),
    ("2 d10", Kind::Syntax, 2, "2d10"),
    ("d 10", Kind::Faces, 1, "2d10"),
    ("(1 + 1) d10", Kind::Syntax, 8, "2d10"),
    ("4d6 kh3", Kind::Syntax, 4, "without a space"),
    ("1d0", Kind::Faces, 2, ""),
    ("1d-6", Kind::Faces, 2, "at least 1"),
    ("1d6.5", Kind::Faces, 2, ""),
    ("1d(1-1)", Kind::Faces, 2, ""),
    ("1d(0.5)", Kind::Faces, 2, ""),
    ("1d1000000001", Kind::Faces, 2, ""),
    ("1dz", Kind::Faces, 2, "Fate"),
    ("0d6", Kind::Count, 0, "at least 1"),
    ("1.5d6", Kind::Count, 0, "floor"),
    ("(-3)d6", Kind::Count, 0, "max"),
    ("(1/2)d6", Kind::Count, 0, "floor"),
    ("200000d6", Kind::TooManyDice, 0, "fewer"),
    ("1000d6", Kind::TooManyDice, 0, "fewer"),
    ("(1000)d6", Kind::TooManyDice, 0, "fewer"),
    ("min(2,3)d6", Kind::Syntax, 8, "(min(2, 3))d6"),
    ("@prof d6", Kind::Syntax, 6, "2d10"),
    ("1d6[fire]d6", Kind::Syntax, 9, "(@prof)d6"),
    // modifiers
    ("4d6e6", Kind::Modifier, 3, "`x`"),
    ("4d6!", Kind::Modifier, 3, "`x`"),
    ("4d6!>4", Kind::Modifier, 3, "`x`"),
    ("4d6>=5", Kind::Modifier, 3, "cs>=5"),
    ("4d6>5", Kind::Modifier, 3, "cs>5"),
    ("4d6 >= 5", Kind::Syntax, 4, "cs>=5"),
    ("2d6ro<3", Kind::Modifier, 4, "`rr`"),
    ("4d6p1", Kind::Modifier, 3, "dl2"),
    ("4d6f1", Kind::Modifier, 3, "cf<=1"),
    ("4d6foo", Kind::Modifier, 3, "cf<=1"),
    ("4d6zz", Kind::Modifier, 3, "[flavour]"),
    ("4d6min", Kind::Modifier, 6, "min3"),
    ("4d6max+1", Kind::Modifier, 6, "max3"),
    ("4d6min1.5", Kind::Modifier, 3, ""),
    ("4d6ms", Kind::Modifier, 5, "ms>=12"),
    ("4d6ms=12", Kind::Modifier, 5, "ms>=12"),
    ("4d6ms>12kh", Kind::Modifier, 8, "before it"),
    ("4d6cs>", Kind::Modifier, 6, "cs>=(-1)"),
    ("4dFr=-1", Kind::Modifier, 5, "r>=(-1)"),
    ("4d6cs3>2", Kind::Modifier, 6, "cs>=5"),
    ("4d6kh1.5", Kind::Modifier, 3, ""),
    ("4d6kh(-1)", Kind::Modifier, 3, ""),
    ("4d6c1", Kind::Modifier, 3, "[flavour]"),
    ("4dFcs1", Kind::Modifier, 3, "Fate dice"),
    ("4dFx", Kind::Modifier, 3, "Fate dice"),
    ("3dckh", Kind::Modifier, 3, "Coins"),
    ("3dcc", Kind::Modifier, 4, "c1"),
    ("3dcc2", Kind::Modifier, 3, "c1"),
    ("10d10cs>=8x", Kind::Modifier, 10, "Write `x` first"),
    ("5d10cs6xo=6", Kind::Modifier, 7, "5d10xocs>=8"),
    ("5d10cs>=8r<2x10", Kind::Modifier, 12, "`x` first"),
    ("{1d6,1d6}x", Kind::Modifier, 9, "pool"),
    ("{1d6,1d6}cs", Kind::Modifier, 11, "{1d20, 1d20}cs>=10"),
    // functions
    ("MAX(1d4,2)", Kind::UnknownFunction, 0, "write max"),
    ("foo(1)", Kind::UnknownFunction, 0, ""),
    ("random()", Kind::UnknownFunction, 0, "Roll a die"),
    ("floor(1, 2)", Kind::Arguments, 0, ""),
    ("pow(2)", Kind::Arguments, 0, ""),
    ("clamp(1, 2)", Kind::Arguments, 0, ""),
    ("2 + atan2(1, 2, 3)", Kind::Arguments, 4, ""),
    // variables
    ("1d20 + @nothing", Kind::UnknownVariable, 7, "exists"),
    ("@", Kind::Syntax, 1, "@abilities"),
    ("@a.", Kind::Syntax, 3, "@abilities"),
    ("@a..b", Kind::Syntax, 3, "@abilities"),
    ("@infinite", Kind::NotFinite, 0, ""),
    // arithmetic
    ("1/0", Kind::DivisionByZero, 1, "max(1"),
    ("10 % 0", Kind::DivisionByZero, 3, "max(1"),
    ("1d6 / (1d6 - 1)", Kind::DivisionByZero, 4, "max(1"),
    ("sqrt(-1)", Kind::NotFinite, 0, ""),
    ("log(0)", Kind::NotFinite, 0, ""),
    ("pow(10, 400)", Kind::NotFinite, 0, ""),
    // endless
    ("1d1x", Kind::TooManyDice, 0, "x3=6"),
    ("1d6x>0", Kind::TooManyDice, 0, "x3=6"),
    ("1d1rr", Kind::TooManyDice, 0, "x3=6"),
    ("999d6x>0x>0", Kind::TooManyDice, 0, "x3=6"),
];

#[test]
fn refusals_say_where_and_what_to_do() {
    let mut wrong = Vec::new();
    for (formula, kind, position, hint) in ROWS {
        let error = error(formula);
        let given = error.hint.as_deref().unwrap_or_default();
        let hinted = given.contains(hint) && given.is_empty() == hint.is_empty();
        if (&error.kind, error.position) != (kind, *position) || !hinted || error.message.is_empty() {
            wrong.push(format!("{formula:?}: {:?}: {error}", error.kind));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn long_and_deep_formulas_are_refused() {
    assert_eq!(error(&"1".repeat(1_001)).kind, Kind::TooLong);
    assert_eq!(error(&"1+".repeat(5_000)).kind, Kind::TooLong);
    let digits = error(&"9".repeat(1_000));
    assert_eq!(digits.kind, Kind::NotFinite);
    for bracket in ["(", "{", "max(", "d(", "1d6kh("] {
        let error = error(&bracket.repeat(1_000 / bracket.len()));
        assert_eq!((error.kind, error.message.contains("64")), (Kind::TooDeep, true), "{bracket}");
    }
    assert_eq!(error(&format!("{}1{}", "(".repeat(65), ")".repeat(65))).position, 64);
    assert!(Formula::parse(&format!("{}1", "-".repeat(999))).is_ok());
    assert!(Formula::parse(&format!("1{}", "+1".repeat(499))).is_ok());
}

#[test]
fn a_formula_has_ten_thousand_dice() {
    let ten = |rest: &str| format!("{}+{rest}", ["999d6"; 10].join("+"));
    assert!(Formula::parse(&ten("10d6")).is_ok());
    let error_at = error(&ten("11d6"));
    assert_eq!((error_at.kind, error_at.position), (Kind::TooManyDice, 60));
    // With explosions or computed counts this is only known at the roll.
    assert_eq!(error(&ten("10d6r1")).kind, Kind::TooManyDice);
    assert_eq!(error(&ten("(11)d6")).kind, Kind::TooManyDice);
}

#[test]
fn limits_can_be_set() {
    let limits = Limits {
        bytes_max: 20,
        depth_max: 2,
        faces_max: 20,
        dice_per_term_max: 3,
        dice_per_formula_max: 5,
        extra_dice_per_term_max: 1,
    };
    let kind = |formula: &str| {
        let parsed = match Formula::parse_within(formula, &limits) {
            Ok(parsed) => parsed,
            Err(error) => return Some(error.kind),
        };
        parsed.roll(&mut Given::new(&[1; 50]), &no_variables).err().map(|error| error.kind)
    };
    assert_eq!(kind("3d20 + 2d20"), None);
    assert_eq!(kind("4d20"), Some(Kind::TooManyDice));
    assert_eq!(kind("3d20 + 3d20"), Some(Kind::TooManyDice));
    assert_eq!(kind("2d6r"), Some(Kind::TooManyDice));
    assert_eq!(kind("1d6r"), None);
    assert_eq!(kind("1d100"), Some(Kind::Faces));
    assert_eq!(kind("((1))"), None);
    assert_eq!(kind("(((1)))"), Some(Kind::TooDeep));
    assert_eq!(kind("1 + 1 + 1 + 1 + 1 + 1"), Some(Kind::TooLong));
    let endless = Limits { depth_max: u32::MAX, bytes_max: usize::MAX, ..Limits::default() };
    let error = Formula::parse_within(&"(".repeat(1_000_000), &endless).expect_err("too deep");
    assert_eq!(error.kind, Kind::TooDeep);
}

#[test]
fn given_dice_must_fit() {
    let kind = |given: &[u32]| parse("2d6").roll(&mut Given::new(given), &no_variables).err().map(|error| error.kind);
    assert_eq!(kind(&[1, 6]), None);
    assert_eq!(kind(&[1]), Some(Kind::Dice(OutOfDice::TooFew { index: 1, faces: 6 })));
    assert_eq!(kind(&[1, 7]), Some(Kind::Dice(OutOfDice::OutOfRange { index: 1, value: 7, faces: 6 })));
    assert_eq!(kind(&[0, 1]), Some(Kind::Dice(OutOfDice::OutOfRange { index: 0, value: 0, faces: 6 })));
}

#[test]
fn positions_count_characters() {
    let error = error("1d6[ÄÖÜ🎲] + foo");
    assert_eq!(error.position, 12);
    assert_eq!(
        error.to_string(),
        "the word `foo` is not a dice term, a number or a function (at character 12); expected a number, dice, \
         a variable or a function. Write a character's value with @, such as @abilities.dex.mod; text goes into [flavour] or \
         after #."
    );
}
