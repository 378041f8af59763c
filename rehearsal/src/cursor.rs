//! The position in a script: which step answers the next request.
//!
//! It must only depend on the last user message, the model and its own position.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::reply::Reply;
use crate::script::{Script, Then, When};

/// The script's decision about a request.
pub(crate) enum Decision {
    /// No step applies, so the persona answers.
    Persona,
    /// This reply.
    Reply(Arc<Reply>),
    /// The script has run out, and that is an error.
    Exhausted,
}

struct Pending {
    when: Option<When>,
    sticky: bool,
    reply: Arc<Reply>,
}

/// A script and the position in it.
pub(crate) struct Cursor {
    steps: VecDeque<Pending>,
    then: Then,
    last: Option<Arc<Reply>>,
}

impl Cursor {
    /// Begins at the script's first step.
    pub(crate) fn new(script: Script) -> Self {
        let steps = script.steps.into_iter().map(|step| Pending {
            when: step.when,
            sticky: step.sticky,
            reply: Arc::new(step.reply),
        });
        Self { steps: steps.collect(), then: script.then, last: None }
    }

    /// Decides about a request, and uses up the step that answers it.
    pub(crate) fn next(&mut self, last_user: &str, model: &str) -> Decision {
        let applies = |step: &Pending| step.when.as_ref().is_none_or(|when| when.matches(last_user, model));
        if let Some(at) = self.steps.iter().position(applies)
            && let Some(reply) = self.take(at)
        {
            self.last = Some(Arc::clone(&reply));
            return Decision::Reply(reply);
        }
        match (self.then, &self.last) {
            (Then::Error, _) => Decision::Exhausted,
            (Then::RepeatLast, Some(reply)) => Decision::Reply(Arc::clone(reply)),
            (Then::RepeatLast, None) | (Then::Default, _) => Decision::Persona,
        }
    }

    fn take(&mut self, at: usize) -> Option<Arc<Reply>> {
        if self.steps.get(at)?.sticky {
            return self.steps.get(at).map(|step| Arc::clone(&step.reply));
        }
        self.steps.remove(at).map(|step| step.reply)
    }
}
