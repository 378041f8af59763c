//! Measures memory by relevance, with the rows and questions of the play log: reading memories, and choosing some of them for an action.
//!
//! Beside it stands a floor: folding every text once, as a search without an index would at least have to.

use std::hint::black_box;

use base::fold::fold;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use entity::memory::Source;
use serde_json::Value;
use uuid::Uuid;
use world::memory::recall::{Corpus, Memory, Query, evaluate::PLAY_LOG};

/// The texts of a member of the play log's rows or questions.
fn texts(of: &str) -> Vec<String> {
    let logs = PLAY_LOG.iter().filter_map(|log| serde_json::from_str::<Value>(log).ok());
    logs.flat_map(|log| log["worlds"][0][of].as_array().cloned().unwrap_or_default())
        .filter_map(|item| item["text"].as_str().map(str::to_owned))
        .collect()
}

fn memories(count: usize) -> Vec<Memory> {
    let texts = texts("rows");
    let memory = |(seq, text): (i64, &String)| Memory {
        id: Uuid::from_u64_pair(0, seq.unsigned_abs()),
        version: 1,
        seq,
        // The log is repeated, but not word for word.
        text: format!("{text} {}", seq * 7919 % 9973),
        game_time: None,
        source: Source::Personal,
        is_pinned: false,
    };
    (0..).zip(texts.iter().cycle()).take(count).map(memory).collect()
}

/// The tokens of a line, nearly: counting them exactly is measured elsewhere, and remembered.
fn cost(memory: &Memory) -> u32 {
    u32::try_from(memory.text.len() / 4).unwrap_or(u32::MAX)
}

fn recall(c: &mut Criterion) {
    let queries: Vec<Query> = texts("questions").iter().map(|text| Query::of_action(text, None)).collect();
    for count in [2000, 20_000] {
        let read = memories(count);
        let corpus = Corpus::of(read.clone());
        println!("{count} memories: {} bytes for each", corpus.bytes() / count);
        let mut group = c.benchmark_group(format!("recall from {count} memories"));
        group.bench_function("fold every text (floor)", |b| {
            b.iter(|| read.iter().map(|memory| fold(&memory.text).len()).sum::<usize>());
        });
        group.bench_function("read", |b| {
            b.iter_batched(|| read.clone(), Corpus::of, BatchSize::LargeInput);
        });
        let mut asked = queries.iter().cycle();
        group.bench_function("choose 2,000 tokens", |b| {
            b.iter(|| asked.next().map(|query| corpus.select(black_box(query), 2000, cost)));
        });
        group.bench_function("renew after one change", |b| {
            let new = Memory { version: 2, ..read[count / 2].clone() };
            b.iter(|| corpus.renewed(|memory| memory.id != new.id, [new.clone()]));
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(50);
    targets = recall
}
criterion_main!(benches);
