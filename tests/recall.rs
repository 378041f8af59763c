//! Memory by relevance: the ranking, and how well it finds what answers a question. `recall/selection.rs` is about filling a budget,
//! `recall/search.rs` about searching over REST and in the editor, `recall/prompt.rs` about prompts, `recall/tool.rs` about the tool,
//! and `recall/gone.rs` about memories that are there no more.

mod gone;
mod prompt;
mod search;
mod selection;
mod tool;

use base::fold;
use entity::memory::Source;
use proptest::{collection::vec, prelude::*};
use serde_json::json;
use uuid::Uuid;
use world::memory::recall::{
    Corpus, Memory, Query, Score,
    evaluate::{self, PLAY_LOG, Set},
};

use crate::support::{Server, World};

const BOB: &str = "/npcs/innkeeper_bob/memories";
/// A memory, a question that names it with other spelling, and a word that they share.
const HORSE: [(&str, &str, &str); 3] = [
    ("Alyce left her grey horse in my stable.", "What became of the gray hors that Alice left?", "horse"),
    ("Alice hat ihr graues Pferd in meinem Stall gelassen.", "Was wurde aus dem grauen Pferd von Alyce?", "pferd"),
    ("アリスは灰色の馬をうちの馬小屋に預けた。", "アリスが預けた灰色の馬はどうなった?", "灰色の馬"),
];

async fn noted(world: &World<'_>, path: &str, player: &str, text: &str) -> String {
    world.post(path, json!({ "player_id": player, "text": text })).await.expect(201).id()
}

/// Memories of a holder about Alice, written straight into the table. Each has its number in place of `#`.
async fn many(server: &Server, world: &World<'_>, path: &str, count: i32, text: &str) {
    let path = path.strip_suffix("/memories").unwrap();
    let [holder, player, campaign]: [Uuid; 3] = [
        world.get(path).await.expect(200).id().parse().unwrap(),
        world.get("/characters/player_alice").await.expect(200).id().parse().unwrap(),
        world.get("").await.expect(200).id().parse().unwrap(),
    ];
    sqlx::query(
        "INSERT INTO memory (tenant_id, id, campaign_id, holder_type, holder_id, subject_id, text, source) \
         SELECT $1, uuid7(), $2, $7, $3, $4, replace($6, '#', n::text), 'editor' FROM generate_series(1, $5) AS n",
    )
    .bind(world.client.tenant)
    .bind(campaign)
    .bind(holder)
    .bind(player)
    .bind(count)
    .bind(text)
    .bind(if path.starts_with("/npcs") { "npc" } else { "owner" })
    .execute(&mut server.owner().await)
    .await
    .unwrap();
}

/// A memory; the number is its place and makes its id.
pub fn memory(seq: i64, text: &str) -> Memory {
    Memory {
        id: Uuid::from_u64_pair(0, seq.unsigned_abs()),
        version: 1,
        seq,
        text: text.to_owned(),
        game_time: None,
        source: Source::Personal,
        is_pinned: false,
    }
}

pub fn corpus(texts: &[&str]) -> Corpus {
    Corpus::of((0..).zip(texts).map(|(seq, text)| memory(seq, text)))
}

/// The texts with a score, the best first.
fn ranked<'a>(texts: &[&'a str], asked: &str) -> Vec<&'a str> {
    corpus(texts).rank(&Query::of(asked)).best_first().map(|place| texts[place]).collect()
}

fn best<'a>(texts: &[&'a str], asked: &str) -> &'a str {
    ranked(texts, asked).first().copied().unwrap_or_default()
}

/// Rows that have nothing to do with any question here, so that rows do not lie beside each other.
const OTHERS: [&str; 5] = ["Xyqq vvk.", "Qwwz kkp.", "Zxxq jjv.", "Vqqk zzp.", "Kzzw qqj."];

/// The texts far apart, so that none is a neighbour of another.
fn apart<'a>(texts: &[&'a str]) -> Vec<&'a str> {
    texts.iter().flat_map(|text| std::iter::once(*text).chain(OTHERS)).collect()
}

#[test]
fn the_play_log_is_found_again() {
    let sets: Vec<Set> = PLAY_LOG.iter().map(|text| Set::read(text).unwrap()).collect();
    let found = evaluate::evaluate(&sets, &[evaluate::DECISIVE]);
    let asked: usize = found.languages.values().map(|results| results.questions).sum();
    assert_eq!((found.rows, asked), (1449, 482));
    for (language, floor) in [("English", 0.93), ("German", 0.97), ("Japanese", 0.88)] {
        let results = &found.languages[language];
        assert_eq!(results.empty, 0, "{language}: questions without any answer");
        assert!(results.any_recall() >= 0.95, "{language}: {} {:#?}", results.any_recall(), results.missed);
        let share = results.found[&evaluate::DECISIVE].share / results.questions as f64;
        assert!(share >= floor, "{language}: {share} of the evidence");
    }
}

#[test]
fn a_set_with_a_mistake_is_told_in_words() {
    for (set, says) in [
        ("{}", "missing field `worlds`"),
        (r#"{"worlds": [{"rows": [], "questions": []}]}"#, "no questions"),
        (
            r#"{"worlds": [{"rows": [], "questions": [{"text": "Who?", "evidence": [], "language": "English"}]}]}"#,
            "names no evidence",
        ),
        (
            r#"{"worlds": [{"rows": [], "questions": [{"text": "Who?", "evidence": ["x"], "language": "English"}]}]}"#,
            "`x`",
        ),
        (
            r#"{"worlds": [{"rows": [{"id": "a", "text": "1"}, {"id": "a", "text": "2"}], "questions": []}]}"#,
            "two rows have the id `a`",
        ),
    ] {
        let said = Set::read(set).unwrap_err();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn other_forms_and_misspelt_names_are_found() {
    for (asked, text) in [
        ("How is the horse you were lending me, Brambel?", "Alice lent Bob her grey mare Bramble two winters ago."),
        ("Did Elodie dance?", "Élodie danced on the table."),
        ("Was macht das Pferd des Wirtes?", "Adele lieh mir ihre Pferde."),
        ("Und die Fähren?", "Das Fährgeld kostet zwei Kupfer."),
        ("葦毛の馬は元気?", "アリスが葦毛の馬を貸してくれた。"),
        ("ボ", "ボブ"),
        ("Где лошадь?", "Алиса одолжила мне лошадь."),
        ("What about Soren?", "SØREN came home."),
        ("the ﬁsh", "Fish is dear."),
        ("DON'T", "don’t"),
    ] {
        let texts = apart(&["Bob sold ale.", text, "Something else happened by the lake."]);
        assert_eq!(best(&texts, asked), text, "{asked}");
    }
}

#[test]
fn a_day_in_the_worlds_calendar_finds_what_happened_on_it() {
    let mut memories: Vec<Memory> =
        (0..).zip(apart(&["Alice sang.", "Alice fought."])).map(|(n, text)| memory(n, text)).collect();
    memories[6].game_time = Some("Harvest Feast, year 2".to_owned());
    let corpus = Corpus::of(memories);
    assert_eq!(corpus.rank(&Query::of("What did I do at the harvest feast?")).best_first().next(), Some(6));
}

#[test]
fn stop_words_count_little() {
    let texts = apart(&["What did you do with all of it and where is the rest of it then?", "A cask of cider."]);
    assert_eq!(best(&texts, "And what did you do with all of the cider then?"), "A cask of cider.");
    // Alone they are better than nothing.
    assert_eq!(ranked(&texts, "and then?").len(), 5);
}

#[test]
fn whom_a_memory_is_about_counts() {
    let about = [
        "Alice owes for the window.",
        "Mallory owes for the window.",
        "Alice sang.",
        "Alice left.",
        "Mallory hid.",
        "Mallory ran.",
    ];
    let texts = apart(&about);
    assert_eq!(best(&texts, "What does Mallory owe for the window?"), "Mallory owes for the window.");
    let score = |asked: &str, place: usize| corpus(&texts).rank(&Query::of(asked)).score(place).unwrap().own;
    let (hers, neither) = (score("Mallory, window", 0), score("window", 0));
    assert!(hers < neither, "rows about somebody else count less: {hers} {neither}");
    let (his, neither) = (score("Mallory, window", 6), score("window", 6));
    let name_alone = score("Mallory", 6);
    assert!(his > neither * 1.3 && his > (neither + name_alone / 1.3) * 1.25, "{his} {neither} {name_alone}");
    // Two rows begin with Bob's name, which is too few.
    let texts =
        apart(&["Bob owes for the window.", "Bob sang.", "Alice owes for the window.", "Alice sang.", "Alice left."]);
    let score = |asked: &str, place: usize| corpus(&texts).rank(&Query::of(asked)).score(place).unwrap().own;
    assert_eq!(score("Bob, window", 12), score("window", 12));
}

#[test]
fn neighbours_of_what_is_found_are_found_too() {
    let texts =
        ["One.", "Two.", "Three.", "Four.", "The murder of the clerk.", "Five.", "Six.", "Seven.", "Eight.", "Nine."];
    let ranking = corpus(&texts).rank(&Query::of("the murdered clerk"));
    let near: Vec<f64> = (0..texts.len()).map(|place| ranking.score(place).map_or(0.0, |score| score.near)).collect();
    assert!(near[4] == 0.0 && near[3] == near[5] && near[2] == near[3] && near[1] == near[7], "{near:?}");
    assert!(near[3] > near[1] && near[0] > 0.0 && near[9] == 0.0, "{near:?}");
    assert!(near[0] == near[8], "{near:?}");
}

/// A corpus in which much has come and gone is read again, and ranks as before.
#[test]
fn a_corpus_does_not_grow_with_what_is_gone() {
    let mut corpus = corpus(&["The grey horse is lame.", "Cider costs two copper."]);
    let query = Query::of("How is the grey horse?");
    let (before, bytes) = (corpus.rank(&query).score(0), corpus.bytes());
    for n in 0..400 {
        let text: String = (0..200).map(|word| format!("w{}x ", n * 1000 + word)).collect();
        corpus = corpus.renewed(|_| true, [memory(10 + n, &text)]);
        corpus = corpus.renewed(|memory| memory.seq < 10, []);
        assert!(corpus.bytes() < bytes + 400_000, "{n}: {}", corpus.bytes());
    }
    assert_eq!(corpus.rank(&query).score(0), before);
}

/// Of equals the newest comes first.
#[test]
fn ties_go_to_the_newest() {
    let texts = apart(&["A red boat.", "A red boat."]);
    let order: Vec<usize> = corpus(&texts).rank(&Query::of("red boats")).best_first().take(2).collect();
    assert_eq!(order, [6, 0]);
}

#[test]
fn the_words_before_count_if_an_action_says_too_little() {
    let texts = apart(&["The horse is lame.", "Cider costs two copper."]);
    let first = |action: &str, earlier: Option<&str>| {
        let query = Query::of_action(action, earlier);
        corpus(&texts).rank(&query).best_first().next().map(|place| texts[place])
    };
    assert_eq!(first("Why?", Some("How is my horse?")), Some("The horse is lame."));
    for why in ["なぜ?", "どうして?", "なんで?", "为什么?", "어째서?", "¿por qué?"] {
        assert_eq!(first(why, Some("How is my horse?")), Some("The horse is lame."), "{why}");
    }
    // A name in the words before is no name in the action.
    let rows = [
        "Alice owes for cider.",
        "Alice sang.",
        "Alice ran.",
        "Mallory owes for cider.",
        "Mallory sang.",
        "Mallory ran.",
    ];
    let query = Query::of_action("Cider?", Some("I greet Mallory."));
    let ranking = corpus(&apart(&rows)).rank(&query);
    assert!(ranking.score(18).unwrap().own < 1.25 * ranking.score(0).unwrap().own);
    assert_eq!(first("What about cider prices?", Some("How is my horse?")), Some("Cider costs two copper."));
    assert_eq!(first("Why?", None), None);
}

#[test]
fn the_words_that_a_row_shares_are_named() {
    let corpus = corpus(&["Alice brought cider to the harbour.", "アリスが葦毛の馬を貸してくれた。"]);
    let words = |place: usize, asked: &str| corpus.shared_words(&Query::of(asked)).of(place);
    assert_eq!(words(0, "I bring the CIDER from the harbor to you."), ["cider", "harbor"]);
    assert_eq!(words(1, "「前に貸した葦毛の馬は元気？」"), ["貸し", "葦毛の馬"]);
    assert_eq!(words(0, "the and to cid"), Vec::<String>::new());
    assert_eq!(words(1, "馬を貸し、馬を"), ["馬を貸し", "馬を"]);
    assert_eq!(words(7, "cider"), Vec::<String>::new());
    // A player decides how long a word is and how many there are.
    let long = ["x".repeat(2000), "馬".repeat(2000), (0..400).map(|n| format!("w{n} ")).collect()];
    let corpus = self::corpus(&long.each_ref().map(String::as_str));
    for (place, asked) in long.iter().enumerate() {
        let named = corpus.shared_words(&Query::of(asked)).of(place);
        assert!((1..=20).contains(&named.len()) && named.iter().all(|word| word.chars().count() <= 50), "{named:?}");
    }
}

#[test]
fn texts_without_words_find_nothing_and_do_no_harm() {
    for asked in ["", " ", "\u{0}", "🐎🐎", "?!", "'''", "\u{301}", "\u{200d}"] {
        assert!(ranked(&["Alice sang.", "🐎", "", "...", "'s"], asked).is_empty(), "{asked:?}");
    }
    assert!(ranked(&[], "Alice").is_empty());
    assert_eq!(ranked(&["a"], "a"), ["a"]);
}

fn text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-f]{1,6}",
        Just("Alice".to_owned()),
        Just("Élodie's".to_owned()),
        Just("not".to_owned()),
        Just("12".to_owned()),
        "[アイウ馬酒金]{1,5}",
        "\\PC{0,4}",
    ];
    vec(word, 0..12).prop_map(|words| words.join(" "))
}

fn scores(corpus: &Corpus, asked: &str) -> Vec<(Uuid, Option<Score>)> {
    let ranking = corpus.rank(&Query::of(asked));
    corpus.memories().enumerate().map(|(place, memory)| (memory.id, ranking.score(place))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// What is gone leaves nothing behind, and what is not read again counts like what is.
    #[test]
    fn a_renewed_corpus_is_like_a_new_one(texts in vec(text(), 0..30), gone in vec(any::<bool>(), 30), more in vec(text(), 0..10), asked in text()) {
        let before = Corpus::of((0..).zip(&texts).map(|(seq, text)| memory(seq, text)));
        let added: Vec<Memory> = (100..).zip(&more).map(|(seq, text)| memory(seq, text)).collect();
        let stays = |memory: &Memory| !gone[usize::try_from(memory.seq).unwrap()];
        let renewed = before.renewed(stays, added.clone());
        let new = Corpus::of(before.memories().filter(|memory| stays(memory)).cloned().chain(added));
        prop_assert_eq!(scores(&renewed, &asked), scores(&new, &asked));
    }

    /// In which order rows come does not matter.
    #[test]
    fn the_order_of_reading_decides_nothing(texts in vec(text(), 0..30), asked in text()) {
        let memories: Vec<Memory> = (0..).zip(&texts).map(|(seq, text)| memory(seq, text)).collect();
        let forwards = Corpus::of(memories.iter().cloned());
        let backwards = Corpus::of(memories.into_iter().rev());
        prop_assert_eq!(scores(&forwards, &asked), scores(&backwards, &asked));
    }

    /// When a row was made moves only ties and neighbours.
    #[test]
    fn the_order_of_rows_moves_no_score_of_its_own(texts in vec(text(), 0..30), asked in text()) {
        let own = |corpus: &Corpus| {
            let ranking = corpus.rank(&Query::of(&asked));
            let mut all: Vec<(String, f64)> = corpus
                .memories()
                .enumerate()
                .map(|(place, memory)| (memory.text.clone(), ranking.score(place).map_or(0.0, |score| score.own)))
                .collect();
            all.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
            all
        };
        let forwards = Corpus::of((0..).zip(&texts).map(|(seq, text)| memory(seq, text)));
        let backwards = Corpus::of((0..).zip(texts.iter().rev()).map(|(seq, text)| memory(seq, text)));
        prop_assert_eq!(own(&forwards), own(&backwards));
    }

    /// A query and a row may be anything.
    #[test]
    fn no_text_is_too_strange(texts in vec("\\PC{0,40}|[\\u{0}-\\u{ffff}]{0,20}", 0..8), asked in "\\PC{0,40}|[\\u{0}-\\u{ffff}]{0,20}") {
        let corpus = Corpus::of((0..).zip(&texts).map(|(seq, text)| memory(seq, text)));
        let query = Query::of(&asked);
        let ranking = corpus.rank(&query);
        let found = corpus.select(&query, 20, |memory| u32::try_from(memory.text.len()).unwrap());
        prop_assert!(found.used <= 20);
        for place in ranking.best_first() {
            let score = ranking.score(place).unwrap();
            prop_assert!(score.own.is_finite() && score.near.is_finite() && score.own >= 0.0 && score.near >= 0.0);
            prop_assert!(corpus.shared_words(&query).of(place).iter().all(|word| !word.is_empty()));
        }
    }

    /// Leaving out marks twice leaves out no more.
    #[test]
    fn marks_are_left_out_once(text in "\\PC{0,20}") {
        let folded = fold::fold(&text);
        let plain = fold::without_marks(&folded);
        prop_assert_eq!(fold::without_marks(&plain), plain);
    }
}

#[test]
fn only_latin_and_greek_letters_lose_their_marks() {
    for (folded, plain) in [
        ("élan", "elan"),
        ("ἀλήθεια", "αληθεια"),
        ("øłđæ", "oldae"),
        ("が", "が"),
        ("й", "й"),
        ("한", "한"),
        ("ấ", "a"),
    ] {
        assert_eq!(fold::without_marks(folded), plain);
    }
}
