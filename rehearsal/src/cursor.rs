//! Where a script stands: which step answers the next request.
//!
//! It must never look at anything but the last user message, the model and its own position.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::reply::Reply;
use crate::script::{Script, Then, When};

/// What the script says about one request.
pub(crate) enum Decision {
    /// Nothing: the persona answers.
    Persona,
    /// This reply.
    Reply(Arc<Reply>),
    /// It has run out, and that is an error.
    Exhausted,
}

struct Pending {
    when: Option<When>,
    sticky: bool,
    reply: Arc<Reply>,
}

/// A script in use.
pub(crate) struct Cursor {
    steps: VecDeque<Pending>,
    then: Then,
    last: Option<Arc<Reply>>,
}

impl Cursor {
    /// Starts a script at its first step.
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
