//! Filling a budget of tokens with memories.

use proptest::{collection::vec, prelude::*};
use world::memory::recall::{Corpus, Memory, Query, Reason, Section, Selection, settled};

use super::{corpus, memory};
use crate::support::processor_time;

fn characters(memory: &Memory) -> u32 {
    u32::try_from(memory.text.chars().count()).unwrap()
}

fn select(corpus: &Corpus, asked: &str, budget: u32) -> Selection {
    corpus.select(&Query::of(asked), budget, characters)
}

/// The texts of a section.
fn texts<'a>(corpus: &'a Corpus, places: &[usize]) -> Vec<&'a str> {
    places.iter().map(|place| corpus.memory(*place).unwrap().text.as_str()).collect()
}

/// Memories of 20 characters each, of which none says what another says.
fn many(count: i64) -> Vec<Memory> {
    (0..count).map(|n| memory(n, &format!("About {n:0>4}, {:x>8}", n * 7919 % 9973))).collect()
}

#[test]
fn what_fits_is_all_there() {
    let corpus = Corpus::of(many(19));
    let all = select(&corpus, "anything", 19 * 20);
    assert_eq!((all.base, all.turn), ((0..16).collect(), (16..19).collect()));
    assert!(all.decisions.is_empty() && all.left_out == 0 && all.used == 380);
    assert!(select(&corpus, "anything", 19 * 20 - 1).left_out > 0);
}

#[test]
fn eight_new_memories_are_settled_together() {
    let counted: Vec<usize> = (0..=25).map(settled).collect();
    assert_eq!(counted[..9], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(counted[9..], [8, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16, 24, 24]);
    // Whatever is asked, 24 new memories change the base three times.
    let all = many(124);
    let base = |count: usize, asked: &str| {
        let corpus = Corpus::of(all[..count].iter().cloned());
        let base = select(&corpus, asked, 400).base;
        texts(&corpus, &base).join("\n")
    };
    let bases: Vec<String> = (100..=124).map(|count| base(count, &format!("About {count:0>4}"))).collect();
    assert!(bases.windows(2).filter(|pair| pair[0] != pair[1]).count() == 3);
}

/// Steps of eight stay steps of eight if the oldest memories are too many to be read.
#[test]
fn what_was_not_read_counts_as_settled() {
    for unread in 0..20 {
        let corpus = Corpus::of(many(100)).with_unread(unread);
        let found = select(&corpus, "nothing", 400);
        let newest = (100 + unread) % 8;
        let settled = found.base.last().map(|place| place + 1);
        assert_eq!((settled, found.left_out), (Some(100 - newest), 100 + unread - 20), "{unread}");
    }
    let few = Corpus::of(many(3)).with_unread(8);
    assert_eq!(select(&few, "nothing", 60).base, [0; 0]);
}

#[test]
fn each_share_has_its_limit() {
    let mut memories = many(100);
    for pinned in [3, 5, 50, 60, 97, 98, 99] {
        memories[pinned].is_pinned = true;
    }
    let corpus = Corpus::of(memories);
    let found = select(&corpus, "About 0020", 400);
    // A quarter for pinned memories, a twentieth for the newest that are settled, and as much for those that are not.
    assert_eq!(found.base, [50, 60, 95, 97, 98, 99]);
    assert!(found.turn.contains(&20) && found.turn.contains(&96) && found.used <= 400);
    let reason = |place: usize| found.decisions.iter().find(|d| d.memory == place).map(|d| (d.section, d.reason));
    assert_eq!(reason(50), Some((Some(Section::Base), Reason::Pinned)));
    assert_eq!(reason(95), Some((Some(Section::Base), Reason::Newest)));
    assert_eq!(reason(96), Some((Some(Section::Turn), Reason::Newest)));
    assert_eq!(reason(20), Some((Some(Section::Turn), Reason::Relevant)));
    let left_out = found.decisions.iter().filter(|decision| decision.section.is_none());
    assert!(left_out.clone().all(|decision| decision.reason == Reason::OverBudget && decision.score.is_some()));
    assert_eq!(left_out.count(), 50);
}

/// The newest memory is there even if it takes more than its share.
#[test]
fn the_newest_is_there_if_it_fits() {
    let mut memories = many(97);
    memories[96].text = format!("About 0096, {}", "and more ".repeat(8));
    assert!(select(&Corpus::of(memories.clone()), "About 0020", 400).turn.contains(&96));
    memories[96].text = "and more ".repeat(80);
    assert!(!select(&Corpus::of(memories), "About 0020", 400).turn.contains(&96));
}

/// Room that nothing relevant takes goes to the newest.
#[test]
fn what_has_nothing_to_do_with_the_action_fills_the_rest() {
    let corpus = Corpus::of(many(97));
    let found = select(&corpus, "🐎", 400);
    assert_eq!(found.used, 400);
    assert_eq!((found.base, found.turn), (vec![95], [(77..95).collect::<Vec<_>>(), vec![96]].concat()));
}

#[test]
fn what_says_the_same_again_is_left_out() {
    // Of each line one is taken.
    let lines: [&[&str]; 8] = [
        &[
            "Alice owes me 12 silver for the broken window of the taproom.",
            "Alice owes me 12 silver for the broken windows of the taproom.",
            "alice owes me 12 silver for the broken window of the taproom",
        ],
        &["Alice owes me 15 silver for the broken window of the taproom."],
        &["Mallory owes me 12 silver for the broken window of the taproom."],
        &["Alice owes me no 12 silver for the broken window of the taproom."],
        &["アリスは宿の窓を割ったので銀三枚を払うと約束した。", "アリスは宿の窓を割ったので銀三枚を払うと、約束した。"],
        &["アリスは宿の窓を割ったので銀五枚を払うと約束した。"],
        &["マロリは宿の窓を割ったので銀三枚を払うと約束した。"],
        &["アリスは宿の窓を割ったので銀三枚を払わないと約束した。"],
    ];
    let others: Vec<String> = (0..40).map(|n| format!("Nothing of note happened {n} days later.")).collect();
    let rows: Vec<&str> = lines.concat().into_iter().chain(others.iter().map(String::as_str)).collect();
    let corpus = corpus(&rows);
    let found = select(&corpus, "Who owes for the broken window of the taproom? 宿の窓を割ったアリスの銀", 800);
    let taken = texts(&corpus, &found.turn);
    for line in lines {
        assert_eq!(line.iter().filter(|text| taken.contains(text)).count(), 1, "{line:?}");
    }
    let echoes = found.decisions.iter().filter(|decision| decision.reason == Reason::Echo);
    assert_eq!(echoes.count(), 3);
}

/// A name is a name wherever it stands, and days differ too.
#[test]
fn what_differs_in_a_name_or_a_day_is_not_the_same() {
    let long = "carried a heavy sack of flour from the harbour up to the mill by the river and back";
    let is_echo = |one: Memory, other: Memory| {
        let corpus = Corpus::of(
            [one, other].into_iter().chain((2..40).map(|n| memory(n, &format!("Nothing happened {n} days later")))),
        );
        let found = select(&corpus, long, 400);
        found.decisions.iter().any(|decision| decision.memory < 2 && decision.reason == Reason::Echo)
    };
    for (one, other, expected) in [
        ("Jean-Luc", "Jean-Paul", false),
        ("Jean-Luc", "jean-luc", true),
        ("d'Alice", "d'Élise", false),
        ("昨日はAlice", "昨日はEmma", false),
        ("He must have", "He mustn't have", false),
    ] {
        assert_eq!(
            is_echo(memory(0, &format!("{one} {long}")), memory(1, &format!("{other} {long}"))),
            expected,
            "{one}, {other}"
        );
    }
    let on = |seq: i64, day: &str| Memory { game_time: Some(day.to_owned()), ..memory(seq, long) };
    assert!(is_echo(on(0, "3rd of Seedmoon"), on(1, "3rd of Seedmoon")));
    assert!(!is_echo(on(0, "3rd of Seedmoon"), on(1, "4th of Seedmoon")));
}

/// Whatever a tenant stores, choosing takes a small part of the time that reading took, and asks about few memories.
#[test]
fn hostile_rows_cost_no_more_than_others() {
    let same = "ab ".repeat(60);
    let kinds: [&dyn Fn(i64) -> String; 4] =
        [&|_| same.clone(), &|n| format!("{n} {same}"), &|n| format!("a{n}"), &|n| {
            format!("x {} y", "馬".repeat(usize::try_from(n % 30).unwrap()))
        }];
    for (kind, text) in kinds.iter().enumerate() {
        let begun = processor_time();
        let corpus = Corpus::of((0..20_000).map(|n| Memory { is_pinned: n % 2 == 0, ..memory(n, &text(n)) }));
        let read = processor_time();
        let mut asked = 0;
        let words: String = (0..2000).map(|n| format!("ab 馬馬 a{n} x ")).collect();
        let query = Query::of(&words);
        let found = corpus.select(&query, 2000, |memory| {
            asked += 1;
            characters(memory)
        });
        assert!(found.used <= 2000 && asked < 4000, "{kind}: {asked}");
        let (reading, choosing) = (read.saturating_sub(begun), processor_time().saturating_sub(read));
        assert!(choosing * 4 < reading, "{kind}: {choosing:?} after {reading:?}");
    }
}

/// What is left out of a query that occurs everywhere are its commonest terms.
#[test]
fn a_rare_word_counts_however_common_the_others_are() {
    let common: String = (100..160).map(|n| format!("w{n} ")).collect();
    let text = |n: i64| if n == 7000 { format!("{common}lighthouse") } else { common.clone() };
    let corpus = Corpus::of((0..15_000).map(|n| memory(n, &text(n))));
    let ranking = corpus.rank(&Query::of(&format!("{common}lighthouses")));
    assert_eq!(ranking.best_first().next(), Some(7000));
}

fn any_memory() -> impl Strategy<Value = (String, bool)> {
    (
        vec(prop_oneof!["[a-d]{1,5}", Just("Alice".to_owned()), Just("no".to_owned()), "[0-9]", "[馬酒]{1,3}"], 0..6),
        proptest::bool::weighted(0.2),
    )
        .prop_map(|(words, is_pinned)| (words.join(" "), is_pinned))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// A corpus that was renewed chooses like one that was read at once.
    #[test]
    fn what_a_corpus_was_before_decides_nothing(rows in vec(any_memory(), 1..60), asked in "[a-d 馬酒]{0,20}", known in 0usize..60, budget in 0u32..300) {
        let memories: Vec<Memory> =
            (0..).zip(&rows).map(|(seq, (text, is_pinned))| Memory { is_pinned: *is_pinned, ..memory(seq, text) }).collect();
        let (before, after) = memories.split_at(known.min(memories.len()));
        // Read newest first, and with one that is gone since.
        let gone = memory(-1, "abc 馬酒");
        let known = Corpus::of(before.iter().rev().cloned().chain([gone]));
        select(&known, &asked, budget);
        let renewed = known.renewed(|memory| memory.seq >= 0, after.iter().cloned());
        let (renewed, fresh) = (select(&renewed, &asked, budget), select(&Corpus::of(memories), &asked, budget));
        prop_assert_eq!((renewed.base, renewed.turn, renewed.used), (fresh.base, fresh.turn, fresh.used));
    }

    #[test]
    fn a_budget_holds(rows in vec(any_memory(), 0..60), asked in "[a-d 馬酒]{0,20}", other in "[a-d 馬酒]{0,20}", budget in 0u32..300) {
        let corpus = Corpus::of((0..).zip(&rows).map(|(seq, (text, is_pinned))| Memory { is_pinned: *is_pinned, ..memory(seq, text) }));
        let found = select(&corpus, &asked, budget);
        let cost: u32 = found.base.iter().chain(&found.turn).map(|place| characters(corpus.memory(*place).unwrap())).sum();
        prop_assert!(cost == found.used && cost <= budget);
        prop_assert_eq!(found.base.len() + found.turn.len() + found.left_out, corpus.len());
        // Each section is in order, and no memory stands in both.
        for section in [&found.base, &found.turn] {
            prop_assert!(section.is_sorted());
        }
        prop_assert!(found.base.iter().all(|place| !found.turn.contains(place)));
        // The base depends on no action.
        prop_assert_eq!(&found.base, &select(&corpus, &other, budget).base);
        let named = found.decisions.iter().filter(|decision| decision.section.is_some()).count();
        prop_assert!(found.decisions.is_empty() && found.left_out == 0 || named == found.base.len() + found.turn.len());
        // What is new is not in the base, unless it is pinned.
        let is_right = |place: &usize| *place < settled(corpus.len()) || corpus.memory(*place).unwrap().is_pinned;
        prop_assert!(found.base.iter().all(is_right));
    }
}
