//! The memory of a device whose snapshot has no request: what a verdict can say without a replay.

use std::collections::BTreeMap;

use blockyard_pytorch::snapshot::{DeviceSnapshot, SnapshotFile};
use blockyard_record::{BlockState, Bytes, PoolId, StackId, counted};
use blockyard_rules::size::page_size;
use blockyard_rules::{AllocatorConfig, known_config};

use crate::gap::{findings as gap_findings, of_device};
use crate::live::{BEFORE_RECORDING, WITHOUT_PROGRAM_LINE, WORKSPACES, holding_line};
use crate::{Finding, FindingTopic, Gap, GapAtMoment, HoldingLine, VerdictAnswer, VerdictKind};

/// The memory of a device when its snapshot was taken.
///
/// allocated + pending + cached = reserved, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceState {
    /// Bytes of blocks in callers' hands.
    pub(crate) allocated: Bytes,
    /// Bytes of blocks whose free waits for another stream.
    pending: Bytes,
    reserved: Bytes,
    segments: usize,
    /// Cached bytes that `empty_cache` gives back: segments without an active block, and whole pages of cached
    /// blocks in expandable segments.
    returnable: Bytes,
    /// The segments of private pools, and their bytes. `empty_cache` gives back those of pools alone that nothing
    /// uses any more.
    private: (usize, Bytes),
    /// Cached bytes beside active blocks of the same segment.
    pinned: Bytes,
    /// The lines that hold allocated blocks, by descending bytes.
    held: Vec<HoldingLine>,
    /// Whether any block has a stack.
    has_stacks: bool,
    /// The warning about two settings that do not belong together.
    warning: Option<&'static str>,
    gap: GapAtMoment,
}

impl DeviceState {
    /// The lines that hold allocated blocks, by descending bytes.
    pub(crate) fn held(&self) -> &[HoldingLine] {
        &self.held
    }

    pub(crate) fn of(file: &SnapshotFile, device: &DeviceSnapshot) -> Self {
        let conf = file.conf_of(device);
        let release = file.release();
        let config = AllocatorConfig::parse(&known_config(conf, release).0, release).unwrap_or_default();
        let mut state =
            Self { segments: device.segments.len(), warning: config.warning_about_pair(), ..Self::default() };
        state.gap = of_device(device, &config);
        let mut lines: BTreeMap<String, (Bytes, u64)> = BTreeMap::new();
        let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
        state.has_stacks = blocks
            .filter(|block| block.state == BlockState::Allocated)
            .any(|block| block.stack != StackId::EMPTY);
        for segment in &device.segments {
            state.reserved = state.reserved.saturating_add(segment.size);
            let is_private = segment.pool_id != PoolId::DEFAULT;
            if is_private {
                state.private =
                    (state.private.0.saturating_add(1), state.private.1.saturating_add(segment.size));
            }
            // A segment begins with a page.
            let page = page_size(segment.pool, &config);
            let (mut active, mut pages, mut end) = (Bytes::ZERO, Bytes::ZERO, 0_u64);
            for block in &segment.blocks {
                let begin = end;
                end = end.saturating_add(block.size.get());
                match block.state {
                    BlockState::Allocated => {
                        state.allocated = state.allocated.saturating_add(block.size);
                        let stack = file.stacks.frame_texts(block.stack);
                        let line = holding_line(&stack).unwrap_or_else(|| {
                            if state.has_stacks {
                                BEFORE_RECORDING.to_owned()
                            } else {
                                format!("blocks of {}, without a stack", block.size)
                            }
                        });
                        let (bytes, blocks) = lines.entry(line).or_default();
                        *bytes = bytes.saturating_add(block.size);
                        *blocks = blocks.saturating_add(1);
                    }
                    BlockState::PendingFree => state.pending = state.pending.saturating_add(block.size),
                    BlockState::Inactive => {
                        pages = pages.saturating_add(whole_pages(begin, end, page));
                        continue;
                    }
                    BlockState::Unmapped => continue,
                }
                active = active.saturating_add(block.size);
            }
            let cached = segment.size.saturating_sub(active);
            let given = if is_private {
                Bytes::ZERO
            } else if segment.is_expandable {
                pages
            } else if active.is_zero() {
                cached
            } else {
                Bytes::ZERO
            };
            state.returnable = state.returnable.saturating_add(given);
            if !active.is_zero() {
                state.pinned = state.pinned.saturating_add(cached.saturating_sub(given));
            }
        }
        let held = lines.into_iter().map(|(line, (bytes, blocks))| HoldingLine {
            bytes,
            blocks,
            ..HoldingLine::new(line)
        });
        state.held = held.collect();
        state.held.sort_by(|one, other| other.bytes.cmp(&one.bytes).then_with(|| one.line.cmp(&other.line)));
        state
    }

    /// What holds most, as the end of a sentence: memory from before the recording, if it is the most, and the
    /// line that holds most.
    fn most_held(&self) -> String {
        let is_line = |held: &&HoldingLine| {
            ![BEFORE_RECORDING, WITHOUT_PROGRAM_LINE, WORKSPACES].contains(&held.line.as_str())
        };
        let before = self.held.first().filter(|held| held.line == BEFORE_RECORDING);
        let before = before.map(|held| format!("{} were allocated before the recording began", held.bytes));
        let line = self.held.iter().find(is_line).map(|held| {
            let line = if self.has_stacks {
                format!("`{}` holds", held.line)
            } else {
                format!("{} hold", held.line)
            };
            format!("{line} {} in {}", held.bytes, counted(held.blocks, "block"))
        });
        let parts: Vec<String> = before.into_iter().chain(line).collect();
        if parts.is_empty() { String::new() } else { format!("; {}", parts.join("; ")) }
    }

    /// What the snapshot says without a trace.
    pub(crate) fn verdict(&self, conf: &str) -> VerdictAnswer {
        let headline = if self.reserved.is_zero() {
            "the snapshot is empty: nothing was reserved when it was taken, and no request was recorded"
                .to_owned()
        } else {
            format!(
                "the snapshot has no requests, only a moment: {} are allocated and {} reserved{}",
                self.allocated,
                self.reserved,
                self.most_held()
            )
        };
        let cached = self.reserved.saturating_sub(self.allocated).saturating_sub(self.pending);
        let pending = if self.pending.is_zero() {
            String::new()
        } else {
            format!(", {} freed but in use by another stream", self.pending)
        };
        let mut findings = Vec::new();
        if !self.reserved.is_zero() {
            let text = format!(
                "{} are reserved in {}: {} allocated{pending}, {cached} cached",
                self.reserved,
                counted(self.segments, "segment"),
                self.allocated
            );
            findings.push(about(FindingTopic::Happened, text));
        }
        if self.private.0 > 0 {
            let text = format!(
                "{} of them in {} are in private pools, of CUDA graphs or `torch.cuda.MemPool`",
                self.private.1,
                counted(self.private.0, "segment")
            );
            findings.push(about(FindingTopic::Happened, text));
        }
        if !cached.is_zero() {
            let pinned = if self.pinned.is_zero() {
                String::new()
            } else {
                format!("; {} stay, beside live blocks of the same segments", self.pinned)
            };
            let text = format!(
                "`torch.cuda.empty_cache()` would give back {} of the cached bytes{pinned}",
                self.returnable
            );
            findings.push(about(FindingTopic::Helps, text));
        }
        findings.extend(self.warning.map(|text| about(FindingTopic::Helps, text.to_owned())));
        let needs = if self.reserved.is_zero() {
            "what a run allocates is in a snapshot that is taken after it"
        } else {
            "why the memory is held, and whether it grows, needs the trace"
        };
        let text = format!(
            "{needs}: `torch.cuda.memory._record_memory_history()` before the run switches the trace on"
        );
        findings.push(about(FindingTopic::Certainty, text));
        let gap = Gap { at_peak: self.gap.clone(), at_failure: None, own: None, remedies: Vec::new() };
        findings.extend(gap_findings(&gap));
        findings.sort_by_key(|finding| finding.about);
        VerdictAnswer {
            held: self.held.clone(),
            gap: Some(gap).filter(|gap| !gap.at_peak.reserved.is_zero()),
            ..VerdictAnswer::new(conf, VerdictKind::StateOnly, headline, findings)
        }
    }
}

/// The bytes of the pages that lie whole between two places of a segment.
pub(crate) fn whole_pages(begin: u64, end: u64, page: Bytes) -> Bytes {
    let page = page.get().max(1);
    let (first, last) = (begin.div_ceil(page), end.checked_div(page).unwrap_or_default());
    Bytes::new(last.saturating_sub(first).saturating_mul(page))
}

fn about(topic: FindingTopic, text: String) -> Finding {
    Finding::new(topic, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_pages_between_two_places_count() {
        let page = Bytes::mib(20);
        let mib = |mib: u64| Bytes::mib(mib).get();
        assert_eq!(whole_pages(mib(8), mib(40), page), page);
        assert_eq!(whole_pages(mib(20), mib(60), page), Bytes::mib(40));
        assert_eq!(whole_pages(mib(21), mib(39), page), Bytes::ZERO);
    }
}
