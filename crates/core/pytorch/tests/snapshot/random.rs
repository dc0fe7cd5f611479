//! Random traces that no allocator wrote: whatever they contain, the statistics of the recording add up.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::read;

const BASE: u64 = 0x7f00_0000_0000;
const MIB: u64 = 1 << 20;

/// Pseudo-random numbers, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[usize::try_from(self.below(all.len() as u64)).unwrap()]
    }
}

fn entry(numbers: &mut Numbers) -> Value {
    let action = numbers.of(&[
        "alloc",
        "alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "snapshot",
        "oom",
    ]);
    let addr =
        BASE + numbers.below(24) * MIB + if numbers.below(3) == 0 { numbers.below(8) * 512 } else { 0 };
    let size = match numbers.below(4) {
        0 => numbers.below(5000),
        1 => 2 * MIB,
        2 => 20 * MIB,
        _ => numbers.below(30) * MIB / 4,
    };
    let addr = if numbers.below(200) == 0 { u64::MAX - numbers.below(3) * 512 } else { addr };
    let addr_key = if action == "oom" { "device_free" } else { "addr" };
    json!({"action": action, addr_key: addr, "size": size, "stream": numbers.below(2), "time_us": 7})
}

/// Segments that do not overlap, with blocks that fill them.
fn segments(numbers: &mut Numbers) -> Vec<Value> {
    let mut segments = Vec::new();
    let mut addr = BASE;
    for _ in 0..numbers.below(4) {
        addr += numbers.below(3) * 2 * MIB;
        let size = *numbers.of(&[&(2 * MIB), &(8 * MIB), &(20 * MIB)]);
        let mut blocks = Vec::new();
        let mut at = addr;
        while at < addr + size {
            let length = (1 + numbers.below(9)) * MIB / 2;
            let length = length.min(addr + size - at);
            let state = numbers.of(&["inactive", "active_allocated", "active_pending_free"]);
            blocks.push(json!({"address": at, "size": length, "requested_size": length - 5, "state": state}));
            at += length;
        }
        segments.push(json!({
            "device": 0, "address": addr, "total_size": size, "stream": numbers.below(2),
            "is_expandable": numbers.below(2) == 0, "blocks": blocks,
        }));
        addr += size;
    }
    segments
}

#[test]
fn whatever_a_trace_says_the_recording_adds_up() {
    let mut misfits = 0;
    for seed in 0..3000 {
        let mut numbers = Numbers(seed);
        let trace: Vec<Value> = (0..numbers.below(60)).map(|_| entry(&mut numbers)).collect();
        let divisions = if numbers.below(3) == 0 { "roundup_power2_divisions:4" } else { "" };
        let value = json!({
            "segments": segments(&mut numbers),
            "device_traces": [trace],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": divisions},
        });
        let file = read(value.to_string().as_bytes()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for place in 0..file.devices.len() {
            let found =
                blockyard_pytorch::trace::record(&file, place, "", &mut |_| ControlFlow::Continue(()));
            let found = found.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"));
            let recording = found.recording;
            let end = recording.state_at(recording.event_count()).unwrap();
            let breakdown = end.breakdown();
            assert!(breakdown.active() <= breakdown.reserved(), "seed {seed}");
            misfits += usize::from(!found.misfits.sentences().is_empty());
            let run = blockyard_pytorch::trace::recorded_run(&file, place, "").unwrap();
            let before = blockyard_pytorch::trace::beginning(&file, place).unwrap();
            let _ = blockyard_pytorch::trace::requests_after(&run, before);
        }
    }
    assert!(misfits > 1000, "{misfits}");
}
