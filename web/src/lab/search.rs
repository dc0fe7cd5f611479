//! The search for the best setting, whose parts the workers do side by side.

use blockyard_lab::{Conditions, QuestionKind, Row};
use blockyard_replay::Progress;
use blockyard_worker::questions::{LabReply, LabTask, SearchPart};
use leptos::prelude::*;

use super::{LabSignals, LabWork, SettingSearch};
use crate::ptr_eq::PtrEq;
use crate::run::Run;
use crate::session::Feature;

impl Feature<LabSignals> {
    /// Asks which settings are tried, and tries them.
    pub(super) fn search(self) {
        let Some(own) = self.read(QuestionKind::Search, self.own_conditions()) else { return };
        let of = self.begin(QuestionKind::Search);
        let asked = of.clone();
        self.do_part(&asked, SearchPart::Candidates(own.clone()), move |reply| {
            if let LabReply::Candidates(settings) = reply {
                self.try_settings(&of, &own, &settings);
            }
        });
    }

    fn do_part(self, of: &PtrEq<Run>, part: SearchPart, on_reply: impl Fn(LabReply) + 'static) {
        let task = LabTask::Search { run: self.asked_device(), part };
        self.put(QuestionKind::Search, of, &task, None, on_reply);
    }

    /// Tries all settings, each as a task for the pool of workers. Rows are shown as they arrive.
    fn try_settings(self, of: &PtrEq<Run>, own: &Conditions, settings: &[String]) {
        let mut all = vec![own.clone()];
        all.extend(settings.iter().map(|conf| own.and_conf(conf)));
        let total = all.len();
        let search = SettingSearch { rows: vec![None; total], found: None };
        self.write_answers(of, |answers| answers.search = Some(search));
        let progress = Progress { phase: "trying settings".to_owned(), done: 0, total: total as u64 };
        self.work.set(Some(LabWork { kind: QuestionKind::Search, progress }));
        for (index, conditions) in all.into_iter().enumerate() {
            let (of, own) = (of.clone(), own.clone());
            let asked = of.clone();
            self.do_part(&asked, SearchPart::Replay(conditions), move |reply| {
                if let LabReply::Row(row) = reply {
                    self.take_row(&of, &own, index, *row);
                }
            });
        }
    }

    fn take_row(self, of: &PtrEq<Run>, own: &Conditions, index: usize, row: Row) {
        let mut all = None;
        self.write_answers(of, |answers| {
            let Some(search) = &mut answers.search else { return };
            if let Some(slot) = search.rows.get_mut(index) {
                *slot = Some(row);
            }
            let mut rows = search.rows.iter().flatten().cloned();
            if search.rows.iter().all(Option::is_some)
                && let Some(baseline) = rows.next()
            {
                all = Some((Box::new(baseline), rows.collect()));
            }
            let (done, _) = search.progress();
            self.work.update(|work| {
                if let Some(work) = work {
                    work.progress.done = done as u64;
                }
            });
        });
        // Which of the rows is best depends on the run.
        let Some((baseline, rows)) = all else { return };
        let asked = of.clone();
        let part = SearchPart::Recommend { conditions: own.clone(), baseline, rows };
        self.do_part(of, part, move |reply| {
            if let LabReply::Recommended(found) = reply {
                self.write_answers(&asked, |answers| {
                    if let Some(search) = &mut answers.search {
                        search.found = Some(PtrEq::new(*found));
                    }
                });
                self.work.set(None);
                self.renew_verdict();
            }
        });
    }
}
