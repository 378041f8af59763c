//! The fair stream: known answers from the Python program in docs/fair-dice.md, and equal frequency of all faces.

use rules::dice::{Dice, FairSeed, Formula, commitment, no_variables};

/// 00 01 02 … 1f.
fn server_seed() -> [u8; 32] {
    std::array::from_fn(|index| index as u8)
}

fn dice(client_seed: &str, counter: u64, faces: &[u32]) -> Vec<u32> {
    let mut dice = FairSeed::new(&server_seed(), client_seed).roll(counter);
    faces.iter().map(|faces| dice.roll(*faces).expect("never runs out")).collect()
}

#[test]
fn the_commitment_is_the_hash_of_the_seed() {
    let expected = "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd";
    assert_eq!(commitment(&server_seed()), expected);
    assert_eq!(FairSeed::new(&server_seed(), "any").commitment(), expected);
}

#[test]
fn known_answers() {
    assert_eq!(dice("tavern", 1, &[20, 6, 6, 6]), [1, 2, 6, 1]);
    assert_eq!(dice("tavern", 2, &[20; 12]), [11, 8, 15, 19, 2, 6, 6, 15, 7, 10, 5, 1]);
    assert_eq!(dice("", 0, &[6; 10]), [3, 5, 6, 3, 5, 5, 6, 3, 3, 4]);
    assert_eq!(
        dice("Grüße, 🎲", u64::MAX, &[100, 3, 2, 1_000_000_000, 2_147_483_647, 1]),
        [6, 3, 1, 981_139_148, 1_482_462_972, 1]
    );
    // Nearly a third of the words are skipped.
    assert_eq!(
        dice("tavern", 3, &[3_000_000_000; 6]),
        [2_373_431_193, 2_852_538_553, 1_464_955_188, 1_065_137_752, 1_786_166_668, 1_242_303_141]
    );
    let long = "x".repeat(100);
    assert_eq!(dice(&long, 7, &[10; 20]), [9, 4, 10, 8, 6, 5, 6, 9, 6, 9, 10, 5, 9, 10, 2, 7, 4, 3, 4, 2]);
}

#[test]
fn a_roll_can_be_worked_out_again() {
    let formula = Formula::parse("1d20 + 3d6").expect("a formula");
    let seed = FairSeed::new(&server_seed(), "tavern");
    let roll = |counter| formula.roll(&mut seed.roll(counter), &no_variables).expect("a roll");
    assert_eq!(roll(1).total, 10.0);
    assert_eq!(roll(1), roll(1));
    assert_ne!(roll(1).dice, roll(2).dice);
}

#[test]
fn secrets_are_not_shown() {
    let seed = FairSeed::new(&server_seed(), "tavern");
    let shown = format!("{seed:?} {:?}", seed.roll(1));
    assert_eq!(
        shown,
        "FairSeed { commitment: \"630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd\", .. } \
         FairDice { block: 0, .. }"
    );
}

#[test]
fn all_faces_come_alike() {
    for faces in [2, 3, 6, 10, 20, 100] {
        let rolls = 20_000;
        let mut seen = vec![0_u32; faces as usize];
        let mut dice = FairSeed::new(&server_seed(), "tavern").roll(99);
        for _ in 0..rolls {
            seen[dice.roll(faces).expect("a die") as usize - 1] += 1;
        }
        let expected = f64::from(rolls) / f64::from(faces);
        let sum: f64 = seen.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum();
        let freedom = f64::from(faces) - 1.0;
        assert!(sum < freedom + 5.0 * (2.0 * freedom).sqrt(), "d{faces}: chi-square {sum}");
    }
}
