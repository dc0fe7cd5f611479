//! The verdict about the run that is shown: when it is made, and when it is made again.

use blockyard_figure::{Blame, ColorBy, GroupKey, group_text};
use blockyard_lab::{CacheKeeper, Question, QuestionKind};
use blockyard_record::OomCause;
use leptos::prelude::*;

use super::{Answers, LabSignals};
use crate::session::Feature;

impl Feature<LabSignals> {
    /// Asks for the verdict under the conditions of the panel's fields.
    pub(super) fn make_verdict(self) {
        let Some(conditions) = self.read(QuestionKind::Verdict, self.own_conditions()) else { return };
        let asked = conditions.clone();
        self.send(Question::Verdict(conditions), None, move |of, answer| {
            self.take_answer(&of, answer);
            self.write_answers(&of, |answers| answers.verdict_for = asked.clone());
        });
    }

    /// Makes the verdict again if the last question was asked under other conditions than those of the
    /// verdict, or ended the verdict before it was made.
    pub(super) fn renew_verdict(self) {
        // Right after a question, a search of settings may have begun, and a verdict would end the search.
        if self.work.with_untracked(Option::is_none) && (self.is_verdict_due() || self.is_verdict_old()) {
            self.make_verdict();
        }
    }

    /// Makes the verdict after the question that is asked now, if the verdict is not made yet.
    pub(crate) fn want_verdict(self) {
        let run = self.session.run.get_untracked();
        self.write_answers(&run, |answers| answers.is_verdict_due |= answers.verdict.is_none());
    }

    pub(super) fn is_verdict_due(self) -> bool {
        untrack(|| self.answers()).is_some_and(|answers| answers.is_verdict_due)
    }

    /// Forgets the refusal of the settings, since the reader types other settings now.
    pub(crate) fn forget_refusal(self) {
        let of = self.session.run.get_untracked();
        let is_refused =
            |answers: Answers| answers.failed.is_some_and(|(kind, _)| kind == QuestionKind::WhatIf);
        if untrack(|| self.answers()).is_some_and(is_refused) {
            self.write_answers(&of, |answers| answers.failed = None);
        }
    }

    /// Whether the verdict has other conditions than the panel's fields.
    pub(crate) fn is_verdict_old(self) -> bool {
        let asked = self.own_conditions();
        let answers = untrack(|| self.answers());
        answers.is_some_and(|answers| {
            answers.verdict.is_some() && asked.is_ok_and(|asked| asked != answers.verdict_for)
        })
    }

    /// Shows the verdict about the run, and asks for it.
    pub(crate) fn ask_verdict(self) {
        self.open(QuestionKind::Verdict);
        self.ask();
    }

    /// What the verdict names as the cause: the line that grows most; or else, in a run that failed, the stream
    /// or the memory pool with the cached bytes that were missing, or the line that holds most. Reads signals.
    pub(crate) fn blame(self) -> Option<Blame> {
        let verdict = self.answers()?.verdict?;
        let found = &verdict.answer;
        let grows = found.findings.iter().find_map(|finding| finding.line.clone());
        if let Some(line) = grows {
            return Some(Blame { by: ColorBy::Line, group: Some(line), what: "grows" });
        }
        let run = self.session.run.get();
        let keeper = || {
            let key = match verdict.autopsy.as_ref()?.failure.cached_by? {
                CacheKeeper::Stream(stream) => GroupKey::Stream(stream),
                CacheKeeper::Pool { id, pool } => GroupKey::Pool(id, pool),
            };
            Some(group_text(&run.recording, key))
        };
        let (by, group, what) = match found.cause? {
            OomCause::CachedInAnotherStream => (ColorBy::Stream, keeper(), "keeps cached memory"),
            OomCause::WaitingForAnotherStream => (ColorBy::Stream, None, ""),
            OomCause::CachedInPrivatePool => (ColorBy::Pool, keeper(), "keeps cached memory"),
            // No allocation of this process is the cause.
            OomCause::MemoryOfOthers => return None,
            _ => (ColorBy::Line, Some(found.held.first()?.line.clone()), "holds most"),
        };
        Some(Blame { by, group, what })
    }
}
