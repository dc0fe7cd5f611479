//! Trials of a change: the run before and after the change. The reader may then make the change in the
//! workload.

use blockyard_figure::PlayerAction;
use blockyard_lab::{ChangeKind, Conditions, LabAnswer, Question, Row};
use blockyard_workload::edit::EditAction;
use blockyard_workload::{Request, TensorId};
use leptos::prelude::*;

use super::{LabSignals, SAMPLES, Trial};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Feature;

/// A trial's title, and its change if the workload can be changed in this way.
type TriedChange = (String, Option<ChangeKind>);

impl Feature<LabSignals> {
    /// Tries a change that an autopsy found, and shows the run before and after the change.
    pub(crate) fn try_change(self, change: &ChangeKind, title: String) {
        let Some((request, conditions)) = self.failure() else { return };
        let tried = Some(change.clone());
        let question = Question::Change { conditions, change: change.clone(), request, samples: SAMPLES };
        self.send(question, None, move |of, answer| {
            if let LabAnswer::WhatIf(mut found) = answer
                && let Some(after) = found.rows.pop()
            {
                self.take_trial(&of, (title.clone(), tried.clone()), found.baseline, after);
            }
        });
    }

    /// The request that the autopsy is about, counted from 1, and the conditions of the autopsy's replay.
    fn failure(self) -> Option<(u64, Conditions)> {
        let answers = untrack(|| self.answers())?;
        let autopsy = answers.autopsy?;
        (*autopsy).as_ref().map(|autopsy| (autopsy.failure.request.request, autopsy.conditions.clone()))
    }

    fn take_trial(self, of: &PtrEq<Run>, (title, change): TriedChange, before: Row, after: Row) {
        let rows = [&before, &after].map(|row| row.outcome_at_lowest().map_or(0, |outcome| outcome.requests));
        let requests = rows.into_iter().max().unwrap_or(0);
        let trial = PtrEq::new(Trial { title, change, before, after, requests });
        self.write_answers(of, |answers| answers.trial = Some(trial));
    }

    /// Changes the settings of the workload, and shows the run before and after the change.
    pub(crate) fn change_conf(self, conf: String) {
        let before = self.session.run.get_untracked();
        self.session.workload().set_conf(conf);
        let run = self.session.run.get_untracked();
        // If the run failed, there is nothing to compare. While a long run is under way, `run` is still the
        // former run; nothing is compared then, so that the worker of the long run has the processor for
        // itself.
        if run == before || run.workload.requests().is_empty() {
            return;
        }
        let info = before.recording.info();
        let own =
            Conditions { conf: info.conf.clone(), capacity: Some(info.capacity), ..Conditions::default() };
        let question = Question::WhatIf { conditions: vec![own], samples: SAMPLES };
        let title = "Before and after the change of settings".to_owned();
        self.send(question, None, move |of, answer| {
            if let LabAnswer::WhatIf(mut found) = answer
                && let Some(before) = found.rows.pop()
            {
                self.take_trial(&of, (title.clone(), None), before, found.baseline);
            }
        });
    }

    /// Makes a tried change in the workload. Undo restores the former workload.
    pub(crate) fn apply_change(self, change: &ChangeKind) {
        match change {
            ChangeKind::Setting(conf) => self.session.workload().set_conf(conf.clone()),
            // The exact size in bytes, since a shown size is rounded.
            ChangeKind::Limit(limit) => self.session.workload().set_capacity(format!("{} B", limit.get())),
            ChangeKind::FreeTensors { requests, .. } => {
                let run = self.session.run.get_untracked();
                let Some((failing, _)) = self.failure() else { return };
                // Requests are counted from 1.
                let Some(before) = usize::try_from(failing).ok().and_then(|failing| failing.checked_sub(1))
                else {
                    return;
                };
                self.session.dispatch(PlayerAction::SeekStep(before));
                for tensor in tensors_of(run.workload.requests(), requests) {
                    self.session.workload().act(EditAction::Free { tensor });
                }
                self.session.dispatch(PlayerAction::Forward);
            }
            // These changes are not a single edit of the text, and the panel offers no button for them.
            ChangeKind::DefaultPool | ChangeKind::OneStream | ChangeKind::Synchronize => {}
        }
    }

    /// Removes the shown trial.
    pub(crate) fn forget_trial(self) {
        let run = self.session.run.get_untracked();
        self.write_answers(&run, |answers| answers.trial = None);
    }
}

/// The tensors of these requests, which are counted from 1. Requests that allocate nothing are left out.
fn tensors_of<'a>(all: &'a [Request], requests: &'a [u64]) -> impl Iterator<Item = TensorId> + 'a {
    requests.iter().filter_map(|request| match all.get(usize::try_from(request.checked_sub(1)?).ok()?)? {
        Request::Allocate { tensor, .. } => Some(*tensor),
        _ => None,
    })
}
