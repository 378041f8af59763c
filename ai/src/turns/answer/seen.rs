//! The turn as clients see it, and its record.

use super::turn::AnswerTurn;
use crate::{
    prompt::{Cache, recall_report::KeptReport, shown::ShownSection},
    turns::{
        record::{Recorded, recorded},
        view::{PromptView, SectionView, Status, Trace, TurnView},
    },
};
use base::error::Result;

impl AnswerTurn<'_> {
    /// The turn and its record.
    pub(super) fn recorded(&self, status: Status, narrative: &str) -> Result<Recorded> {
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
        recorded(view, for_player.then(|| self.prompt_view()), &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let view = |section: ShownSection<'_>| SectionView {
            name: section.name.into(),
            tokens: section.tokens,
            hash: section.hash.to_owned(),
        };
        PromptView {
            cache: Cache::of(self.hit),
            base_hash: self.shown.base_hash.as_ref().to_owned(),
            base_tokens: self.shown.base_tokens,
            sections: self.shown.sections().map(view).collect(),
        }
    }
}
