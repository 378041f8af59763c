//! A model that hangs, drips, breaks off, refuses and lies.

use std::time::Duration;

use rehearsal::{Reply, Script};
use serde_json::json;

use super::{account::balance, stage::Stage, work::Work};

fn every_fault() -> Vec<Reply> {
    vec![
        Reply::hang(),
        Reply::close(),
        Reply::text("A long story, told slowly.").chunk_bytes(4).chunk_delay_ms(200),
        Reply::text("It breaks off.").truncate_after_bytes(40),
        Reply::raw_body("{\"choices\": [{\"message\": {\"content\": "),
        Reply::raw_body("<html>Bad gateway</html>"),
        Reply::status(500),
        Reply::status(429).retry_after(1),
        Reply::status(503),
        Reply::repeat_bytes(20 << 20),
        Reply::tool("NPC_memorize", json!("not an object")),
        Reply::tool("drop_all_tables", json!({ "sure": true })),
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes: ./dev faults"]
async fn the_model_misbehaves() {
    let env = [("LLM_FIRST_TOKEN_TIMEOUT_MS", "700"), ("LLM_TIMEOUT_MS", "1500"), ("LLM_RETRIES", "1")];
    let stage = Stage::with(None, &env).await;
    let work = Work::begin(&stage).await;
    for _ in 0..3 {
        stage.model.set_script(Script::replies(every_fault()));
        // Everything that needs no model goes on meanwhile.
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    stage.model.set_script(Script::default());
    // A breaker that opened lets a probe through after fifteen seconds.
    work.goes_on().await;
    balance(&stage, work).await;
}
