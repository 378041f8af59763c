//! The Prometheus series. Labels are bounded: routes, codes, kinds and our own tools, never tenants or text.
//!
//! To add a series, add it here, increment it where the event happens, and add a row to `docs/operations.md`.

use std::sync::LazyLock;

use prometheus::{
    Encoder, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, TextEncoder,
    core::Collector,
};

#[expect(clippy::expect_used, reason = "names are literals, and a wrong one fails every test at once")]
fn registered<C: Collector + Clone + 'static>(made: prometheus::Result<C>) -> C {
    let series = made.expect("a valid series");
    prometheus::register(Box::new(series.clone())).expect("a series registered once");
    series
}

fn counter(name: &str, help: &str) -> IntCounter {
    registered(IntCounter::new(format!("tavernkeep_{name}"), help))
}

fn counters(name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
    registered(IntCounterVec::new(Opts::new(format!("tavernkeep_{name}"), help), labels))
}

fn gauge(name: &str, help: &str) -> IntGauge {
    registered(IntGauge::new(format!("tavernkeep_{name}"), help))
}

fn decimal(name: &str, help: &str) -> Gauge {
    registered(Gauge::new(format!("tavernkeep_{name}"), help))
}

fn seconds(name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
    let opts = HistogramOpts::new(format!("tavernkeep_{name}"), help).buckets(buckets.to_vec());
    registered(HistogramVec::new(opts, labels))
}

const FAST: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
const SLOW: &[f64] = &[0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 60.0];

/// Answers by method, route and status.
pub static REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("http_requests_total", "Answers by method, route and status", &["method", "route", "status"])
});
/// Time to answer by route.
pub static REQUEST_SECONDS: LazyLock<HistogramVec> =
    LazyLock::new(|| seconds("http_request_seconds", "Time to answer by route", &["route"], FAST));
/// Attempts to sign in to the editor.
pub static SIGN_INS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("sign_ins_total", "Attempts to sign in to the editor by outcome", &["outcome"]));
/// Visits to the table that began, by what they began with.
pub static VISITS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("visits_total", "Visits to the table that began, by what they began with", &["by"]));
/// Connections that were rejected because their address already held the allowed number.
pub static CONNECTIONS_REFUSED: LazyLock<IntCounter> =
    LazyLock::new(|| counter("connections_refused_total", "Connections rejected because their address held too many"));
/// Lines of the log that could not be written.
pub static LOG_LINES_LOST: LazyLock<IntCounter> =
    LazyLock::new(|| counter("log_lines_lost_total", "Lines of the log that could not be written"));
/// Statements sent to the database inside tenant transactions.
pub static STATEMENTS: LazyLock<IntCounter> =
    LazyLock::new(|| counter("db_statements_total", "Statements inside tenant transactions, without BEGIN and COMMIT"));
/// Retried writes.
pub static WRITES_REPEATED: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("db_writes_repeated_total", "Retried writes by reason", &["reason"]));
/// Rows, or parts of them, that could not be read and were left out.
pub static ROWS_UNREADABLE: LazyLock<IntCounter> = LazyLock::new(|| {
    counter("db_rows_unreadable_total", "Stored rows, or parts of them, that could not be read and were left out")
});
/// Connections of the pool.
pub static POOL: LazyLock<IntGauge> = LazyLock::new(|| gauge("db_pool_connections", "Open database connections"));
/// How far this machine's clock is ahead of the database's.
pub static CLOCK_AHEAD: LazyLock<Gauge> = LazyLock::new(|| {
    decimal("clock_ahead_seconds", "Seconds by which this machine's clock is ahead of the database's, which counts")
});
/// Callers that wait for a connection.
pub static POOL_WAITING: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("db_pool_waiting", "Callers that wait for a database connection"));
/// Requests that are being worked on.
pub static REQUESTS_IN_WORK: LazyLock<IntGauge> = LazyLock::new(|| {
    gauge(
        "requests_in_work",
        "Requests being worked on, without streams, running turns, waiting requests and requests whose body is still arriving",
    )
});
/// Requests that wait for somebody else.
pub static REQUESTS_WAITING: LazyLock<IntGauge> = LazyLock::new(|| {
    gauge(
        "requests_waiting",
        "Requests that wait for a model's endpoint or a frontend, or for another large request of their tenant",
    )
});
/// Bytes of request bodies in memory.
pub static BODY_BYTES: LazyLock<IntGauge> = LazyLock::new(|| gauge("body_bytes", "Bytes of request bodies in memory"));
/// Work that was rejected because too much was under way.
pub static REFUSED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "refused_total",
        "Work rejected at admission by the exhausted resource: requests, waiting, turns, bodies, connections",
        &["reason"],
    )
});
/// Ended turns.
pub static TURNS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("turns_total", "Ended turns by kind and status", &["kind", "status"]));
/// Duration of turns.
pub static TURN_SECONDS: LazyLock<HistogramVec> =
    LazyLock::new(|| seconds("turn_seconds", "Duration of turns by kind", &["kind"], SLOW));
/// Running turns.
pub static TURNS_RUNNING: LazyLock<IntGauge> = LazyLock::new(|| gauge("turns_running", "Running turns"));
/// Clients that listen to running turns.
pub static TURN_LISTENERS: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("turn_listeners", "Clients that listen to a running turn"));
/// Orphaned turns that the sweeper reverted.
pub static TURNS_SWEPT: LazyLock<IntCounter> =
    LazyLock::new(|| counter("turns_swept_total", "Turns reverted after their server died"));
/// Turns that are being reverted, or wait for it.
pub static TURNS_REVERTING: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("turns_reverting", "Turns that are being reverted, or wait for it, in the whole database"));
/// Those whose revert failed at least once.
pub static TURNS_REVERTS_FAILING: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("turns_reverts_failing", "Turns whose revert failed and is retried"));
/// The age of the oldest of them.
pub static TURNS_REVERTING_OLDEST: LazyLock<IntGauge> = LazyLock::new(|| {
    gauge("turns_reverting_oldest_seconds", "How long ago the revert of the oldest such turn was requested")
});
/// Steps of reverting turns.
pub static REVERT_STEPS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("turn_revert_steps_total", "Steps of reverting turns by outcome: done, failed", &["outcome"])
});
/// Reported actions.
pub static ACTIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("actions_total", "Actions of characters by source: report, command, encounter, table", &["source"])
});
/// Attempts at reactions.
pub static REACTIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "reactions_total",
        "Attempts at reactions by kind and outcome: done, retry, postponed, dead, cancelled",
        &["kind", "outcome"],
    )
});
/// Reactions that wait.
pub static REACTIONS_WAITING: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("reactions_waiting", "Reactions that wait, in the whole database"));
/// The time for which the oldest due reaction has waited.
pub static REACTIONS_OLDEST: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("reactions_oldest_seconds", "How long the oldest due reaction has waited"));
/// Reactions that failed too often.
pub static REACTIONS_DEAD: LazyLock<IntGauge> = LazyLock::new(|| {
    gauge("reactions_dead", "Reactions that failed too often and wait for a person, in the whole database")
});
/// Replies by what became of them.
pub static REPLIES: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("replies_total", "Replies of reactions by outcome: delivered, withheld, expired", &["outcome"])
});
/// Completed erasures.
pub static ERASURES: LazyLock<IntCounter> =
    LazyLock::new(|| counter("erasures_total", "Completed erasures of players and users"));
/// Rows that erasures deleted or redacted.
pub static ERASED_ROWS: LazyLock<IntCounter> =
    LazyLock::new(|| counter("erased_rows_total", "Rows that erasures deleted or redacted"));
/// Deleted campaigns that still have rows.
pub static CAMPAIGNS_LEAVING: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("campaigns_leaving", "Deleted campaigns that still have rows, at most 100"));
/// Those whose last attempt failed.
pub static CAMPAIGNS_STUCK: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("campaigns_stuck", "Deleted campaigns whose last attempt to delete rows failed"));
/// Deleted rows of deleted campaigns.
pub static CAMPAIGN_ROWS_REMOVED: LazyLock<IntCounter> =
    LazyLock::new(|| counter("campaign_rows_removed_total", "Rows of deleted campaigns that this server deleted"));
/// Model calls.
pub static LLM_CALLS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("llm_calls_total", "Model calls by outcome", &["outcome"]));
/// Models that could not answer and were replaced.
pub static LLM_FALLBACKS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "llm_fallbacks_total",
        "Model calls that went to a fallback, by the reason why the model before could not answer",
        &["reason"],
    )
});
/// Duration of model calls.
pub static LLM_SECONDS: LazyLock<HistogramVec> =
    LazyLock::new(|| seconds("llm_call_seconds", "Duration of model calls", &["outcome"], SLOW));
/// Tokens, as the provider counted them.
pub static LLM_TOKENS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("llm_tokens_total", "Tokens by kind: prompt, cached, completion", &["kind"]));
/// Endpoints whose breaker is open.
pub static BREAKERS_OPEN: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("llm_breakers_open", "Model endpoints whose breaker is open"));
/// Model replies that could not be parsed.
pub static PARSE_ERRORS: LazyLock<IntCounter> =
    LazyLock::new(|| counter("reply_parse_errors_total", "Model replies whose tool calls could not be parsed"));
/// Tool calls.
pub static TOOL_CALLS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("tool_calls_total", "Tool calls by tool and status", &["tool", "status"]));
/// Dice rolls.
pub static DICE_ROLLS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("dice_rolls_total", "Dice rolls by source: server, frontend, manual, seeded", &["source"])
});
/// Caught panics.
pub static PANICS: LazyLock<IntCounter> =
    LazyLock::new(|| counter("panics_total", "Caught panics of requests and turns; each is a bug in the server"));
/// Fair dice counters that were spent without a result.
pub static DICE_SPENT: LazyLock<IntCounter> =
    LazyLock::new(|| counter("dice_spent_total", "Fair dice counters that were spent because their request failed"));
/// Events from frontends.
pub static SESSION_EVENTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "session_events_total",
        "Events from frontends by type: chat_message, dice_roll, message_deleted, combat_state, world_state, other",
        &["type"],
    )
});
/// Game masters' turns, by what their prompt contained.
pub static SESSION_CONTEXTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "session_contexts_total",
        "Game masters' turns by what their prompt contained: overview, delta",
        &["context"],
    )
});
/// Connected frontends.
pub static BRIDGE_CONNECTIONS: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("bridge_connections", "Frontends connected to this server"));
/// Frames on the bridge.
pub static BRIDGE_FRAMES: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("bridge_frames_total", "Frames by direction (in, out) and type", &["direction", "type"]));
/// Requests to frontends.
pub static BRIDGE_REQUESTS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "bridge_requests_total",
        "Requests to frontends by type and outcome: answered, silent, gone, refused, invalid",
        &["type", "outcome"],
    )
});
/// Why bridge connections ended.
pub static BRIDGE_CLOSED: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("bridge_closed_total", "Ended bridge connections by reason", &["reason"]));
/// Outcomes of the rules.
pub static RULES_RESOLVED: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "rules_resolved_total",
        "Outcomes of the rules by tool: success, failure, impossible, no_check",
        &["tool", "outcome"],
    )
});
/// Encounters created, ended and committed.
pub static ENCOUNTERS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("encounters_total", "Encounters by what was done: created, ended, committed", &["event"])
});
/// Actions in encounters.
pub static ENCOUNTER_ACTIONS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("encounter_actions_total", "Actions in encounters by kind", &["action"]));
/// Texts that the planner got.
pub static PLANNER_REQUESTS: LazyLock<IntCounter> =
    LazyLock::new(|| counter("planner_requests_total", "Players' texts that the planner got"));
/// Plans that could not be parsed.
pub static PLANNER_PARSE_FAILED: LazyLock<IntCounter> =
    LazyLock::new(|| counter("planner_parse_failed_total", "Model replies that contain no plan"));
/// What the planner did with texts.
pub static PLANNER_DECISIONS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "planner_decisions_total",
        "Texts by result: executed, needs_clarification, planned, shadow, timeout, unavailable, fallback, failed, \
         or the reason for rejection: parse, allowlist, predicate, arg_validation, unsupported",
        &["decision"],
    )
});
/// Look-ups in the plan cache.
pub static PLANNER_CACHE: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("planner_cache_total", "Plans by hit or miss", &["result"]));
/// How long players waited for the planner.
pub static PLANNER_SECONDS: LazyLock<HistogramVec> =
    LazyLock::new(|| seconds("planner_seconds", "Time from a player's text to its outcome", &["decision"], SLOW));
/// Players' commands.
pub static COMMANDS: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "commands_total",
        "Players' commands by command, origin (direct, planner) and status",
        &["command", "origin", "status"],
    )
});
/// Look-ups in the prompt cache.
pub static PROMPT_CACHE: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("prompt_cache_total", "Base prompts by hit or miss", &["result"]));
/// Look-ups of the memories that are chosen from.
pub static CORPORA: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters(
        "recall_corpora_total",
        "Memories to choose from by how they were had: cached, renewed or read",
        &["result"],
    )
});
/// Rebuilt prompt segments.
pub static SEGMENTS_BUILT: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("prompt_segments_built_total", "Prompt segments built by section", &["section"]));
/// Bytes of cached prompts.
pub static PROMPT_CACHE_BYTES: LazyLock<IntGauge> =
    LazyLock::new(|| gauge("prompt_cache_bytes", "Bytes of cached prompts"));
/// Prompts evicted because the journal moved on.
pub static PROMPT_CACHE_EVICTED: LazyLock<IntCounter> =
    LazyLock::new(|| counter("prompt_cache_evicted_total", "Cached prompts evicted by the journal's tail"));
/// Prompts that were too large for their model's context: `cut` until they fit, or `too_large` even so.
pub static PROMPTS_OVER_CONTEXT: LazyLock<IntCounterVec> = LazyLock::new(|| {
    counters("prompts_over_context_total", "Prompts that were larger than their model's context by result", &["result"])
});
/// Imports and dry runs that were accepted. Rejected ones only count as answers.
pub static IMPORTS: LazyLock<IntCounterVec> =
    LazyLock::new(|| counters("imports_total", "Accepted imports and dry runs by format", &["format", "dry_run"]));
/// Answers because of a rate limit.
pub static RATE_LIMITED: LazyLock<IntCounter> =
    LazyLock::new(|| counter("rate_limited_total", "Answers with status 429"));

/// All counters without labels.
const COUNTERS: &[&LazyLock<IntCounter>] = &[
    &STATEMENTS,
    &TURNS_SWEPT,
    &DICE_SPENT,
    &PANICS,
    &LOG_LINES_LOST,
    &ROWS_UNREADABLE,
    &ERASURES,
    &ERASED_ROWS,
    &CAMPAIGN_ROWS_REMOVED,
    &PARSE_ERRORS,
    &PROMPT_CACHE_EVICTED,
    &RATE_LIMITED,
    &PLANNER_REQUESTS,
    &PLANNER_PARSE_FAILED,
];
/// All gauges.
const GAUGES: &[&LazyLock<IntGauge>] = &[
    &BRIDGE_CONNECTIONS,
    &POOL,
    &POOL_WAITING,
    &REQUESTS_IN_WORK,
    &REQUESTS_WAITING,
    &BODY_BYTES,
    &TURNS_RUNNING,
    &TURN_LISTENERS,
    &BREAKERS_OPEN,
    &PROMPT_CACHE_BYTES,
    &CAMPAIGNS_LEAVING,
    &CAMPAIGNS_STUCK,
    &REACTIONS_WAITING,
    &REACTIONS_OLDEST,
    &REACTIONS_DEAD,
];
/// All counters with labels.
const LABELLED: &[&LazyLock<IntCounterVec>] = &[
    &REQUESTS,
    &TURNS,
    &LLM_CALLS,
    &LLM_FALLBACKS,
    &LLM_TOKENS,
    &TOOL_CALLS,
    &DICE_ROLLS,
    &RULES_RESOLVED,
    &SESSION_EVENTS,
    &SESSION_CONTEXTS,
    &BRIDGE_FRAMES,
    &BRIDGE_REQUESTS,
    &BRIDGE_CLOSED,
    &ENCOUNTERS,
    &ENCOUNTER_ACTIONS,
    &PLANNER_DECISIONS,
    &PLANNER_CACHE,
    &COMMANDS,
    &PROMPT_CACHE,
    &CORPORA,
    &SEGMENTS_BUILT,
    &PROMPTS_OVER_CONTEXT,
    &SIGN_INS,
    &VISITS,
    &IMPORTS,
    &ACTIONS,
    &REACTIONS,
    &REPLIES,
    &REFUSED,
];

/// Registers all series, so that the first scrape shows them.
pub fn register_all() {
    COUNTERS.iter().for_each(|counter| _ = LazyLock::force(counter));
    GAUGES.iter().for_each(|gauge| _ = LazyLock::force(gauge));
    LABELLED.iter().for_each(|vec| _ = LazyLock::force(vec));
    LazyLock::force(&CLOCK_AHEAD);
    for histogram in [&REQUEST_SECONDS, &TURN_SECONDS, &LLM_SECONDS, &PLANNER_SECONDS] {
        LazyLock::force(histogram);
    }
}

/// All series in Prometheus' text format.
#[must_use]
pub fn text() -> Vec<u8> {
    let mut out = Vec::new();
    // Writing to memory fails only for series that the registry would have rejected.
    let _ = TextEncoder::new().encode(&prometheus::gather(), &mut out);
    out
}
