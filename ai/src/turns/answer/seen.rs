//! The turn as clients see it, and its record.

use super::turn::AnswerTurn;
use crate::turns::{
    record::body_and_record,
    view::{PromptView, SectionView, Status, Trace, TurnView},
};
use base::error::Result;
use world::campaigns::prompt_section::Section;

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
        let lore = self.base.segments.iter().flat_map(|s| s.lore.iter()).chain(&self.text.lore);
        let cut = self.base.segments.iter().map(|s| (s.section.name(), s.cut.as_str()));
        let trace = Trace {
            lore: lore.take(200).collect(),
            cut: cut.chain([(Section::Turn.name(), self.text.cut.as_str())]).filter(|(_, c)| !c.is_empty()).collect(),
            ..self.talk.trace(self.text.without_words())
        };
        body_and_record(&view, for_player.then(|| self.prompt_view()), &trace)
    }

    fn prompt_view(&self) -> PromptView {
        let view = |name, tokens, hash: &str| SectionView { name, tokens, hash: hash.to_owned() };
        let base = self.base.listed().map(|s| view(s.section.name(), s.tokens, &s.hash));
        let talk = [
            view(Section::History.name(), self.transcript.tokens, &self.transcript.hash),
            view(Section::Turn.name(), self.text.tokens, &self.text.hash),
        ];
        let late = self.reminders.iter().map(|reminder| view(reminder.name, reminder.tokens, &reminder.hash));
        PromptView {
            cache: if self.hit { "hit" } else { "miss" },
            base_hash: self.base.hash.as_ref().to_owned(),
            base_tokens: self.base.tokens,
            sections: base.chain(talk).chain(late).collect(),
        }
    }
}
