//! Any model reply: the planner's parser finds a plan or says why there is none, without a panic. A plan that it finds is also
//! found in any prose around it.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../ai/src/planner/plan.rs"]
mod plan;

fuzz_target!(|reply: &str| {
    match plan::parse(reply) {
        Ok(found) => {
            assert!(!found.command.is_empty() && found.command.chars().count() <= plan::COMMAND_CHARS_MAX);
            assert!(found.confidence.is_none_or(|c| (0.0..=1.0).contains(&c)));
            assert!(reply.chars().count() > plan::REPLY_CHARS_MAX - 10 || plan::parse(&format!("Well: {reply} Right?")) == Ok(found));
        }
        Err(why) => assert!(!why.as_str().is_empty()),
    }
});
