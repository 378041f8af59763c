//! The turn as clients see it, and its record.

use super::turn::AnswerTurn;
use crate::{
    prompt::{recall_report::KeptReport, shown::ShownSection},
    turns::{
        record::body_and_record,
        view::{PromptView, SectionView, Status, Trace, TurnView},
    },
};
use base::error::Result;

impl AnswerTurn<'_> {
    /// The answer's body, and the record that contains it together with the trace.
    pub(super) fn body_and_record(&self, status: Status, narrative: &str) -> Result<(Vec<u8>, String)> {
        let for_player = self.talk.caller.is_player();
        let view = TurnView {
            trigger: self.job.trigger(),
            narrative: narrative.to_owned(),
            mechanics: self.mechanics.clone(),
            prompt: (!for_player).then(|| self.prompt_view()),
            parent_turn_id: self.job.way.again().map(|again| again.parent),
            ..self.talk.view(status)
        };
        let cut = self.shown.sections().map(|section| (section.name, section.cut));
        let trace = Trace {
            lore: self.shown.lore().take(200).collect(),
            recall: self.shown.recall.as_ref().map(KeptReport::from),
            cut: cut.filter(|(_, cut)| !cut.is_empty()).collect(),
            ..self.talk.trace(self.shown.read_turn())
        };
        body_and_record(&view, for_player.then(|| self.prompt_view()), &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let view = |section: ShownSection<'_>| SectionView {
            name: section.name,
            tokens: section.tokens,
            hash: section.hash.to_owned(),
        };
        PromptView {
            cache: if self.hit { "hit" } else { "miss" },
            base_hash: self.shown.base_hash.as_ref().to_owned(),
            base_tokens: self.shown.base_tokens,
            sections: self.shown.sections().map(view).collect(),
        }
    }
}
