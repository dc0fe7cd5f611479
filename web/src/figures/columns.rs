//! The allocations of the shown run in columns, made in slices between other work of the page's thread.

use std::sync::Arc;

use blockyard_figure::{AddressMap, Allocations, Collector};
use blockyard_record::{PoolId, Recording};
use leptos::prelude::*;

use super::FigureSignals;
use crate::browser;
use crate::jobs;
use crate::ptr_eq::PtrEq;
use crate::session::Feature;

/// The allocations of a recording in columns, made for the figures and for the table of holders.
#[derive(Debug)]
pub(crate) struct Columns {
    pub(crate) recording: Arc<Recording>,
    pub(crate) allocations: Allocations,
    pub(crate) map: AddressMap,
    /// Whether any allocation has a stack.
    pub(crate) has_stacks: bool,
    /// Whether the program gave any allocation a name.
    pub(crate) has_names: bool,
    /// Whether any allocation is in another memory pool than the default pool.
    pub(crate) has_pools: bool,
}

/// How many events are read before the clock is read again.
const SLICE: usize = 4000;
/// The time after which the effects of a newly opened recording have begun to make its figures.
const FIGURES_BEGIN_MILLIS: i32 = 100;
/// How long the page's thread works on the columns at a time.
const SLICE_MILLIS: f64 = 5.0;

impl Feature<FigureSignals> {
    /// Makes the columns of the shown run, in slices between other work of the page's thread, unless they
    /// have been made.
    pub(crate) fn collect_allocations(self) {
        let recording = self.session.run.get_untracked().recording.clone();
        let is_made = self.last_columns.with_untracked(|columns| {
            columns.as_ref().is_some_and(|columns| Arc::ptr_eq(&columns.recording, &recording))
        });
        let is_begun = self.collector.with_value(|collector| {
            collector.as_ref().is_some_and(|collector| Arc::ptr_eq(collector.recording(), &recording))
        });
        if is_made || is_begun {
            return;
        }
        self.collector.set_value(Some(Collector::new(recording)));
        let _ = browser::after_millis(0, move || self.collect_more());
    }

    fn collect_more(self) {
        let Some(mut collector) = self.collector.try_update_value(Option::take).flatten() else {
            return;
        };
        let begun = browser::now_millis();
        let mut has_more = true;
        while has_more && browser::now_millis() - begun < SLICE_MILLIS {
            has_more = collector.advance(SLICE);
        }
        if has_more {
            self.collector.set_value(Some(collector));
            let _ = browser::after_millis(0, move || self.collect_more());
            return;
        }
        let recording = collector.recording().clone();
        // Another run may have been shown while the columns were made.
        if !Arc::ptr_eq(&recording, &self.session.run.get_untracked().recording) {
            return self.collect_allocations();
        }
        let allocations = collector.finish();
        let map = AddressMap::new(&allocations);
        let has_stacks = !recording.stacks().is_empty();
        let is_named = |row: usize| allocations.id(row).is_some_and(|id| recording.name(id).is_some());
        let has_names = (0..allocations.len()).any(is_named);
        let is_private = |row: usize| allocations.get(row).is_some_and(|it| it.pool_id != PoolId::DEFAULT);
        let has_pools = (0..allocations.len()).any(is_private);
        let columns = Columns { recording, allocations, map, has_stacks, has_names, has_pools };
        self.last_columns.set(Some(PtrEq::new(columns)));
        jobs::compare();
    }

    /// Asks the worker to compare the opened file: at once if no figure of allocations is being made, and
    /// otherwise once the figure is complete.
    pub(crate) fn compare_when_drawn(self) {
        let _ = browser::after_millis(FIGURES_BEGIN_MILLIS, move || {
            if self.collector.with_value(Option::is_none) {
                jobs::compare();
            }
        });
    }

    /// The columns of the shown run, if they have been made. Reads signals.
    pub(crate) fn columns(self) -> Option<PtrEq<Columns>> {
        let run = self.session.run.get();
        self.last_columns.get().filter(|columns| Arc::ptr_eq(&columns.recording, &run.recording))
    }
}
