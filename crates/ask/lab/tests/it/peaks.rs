//! The peaks of a run under its own settings are those that PyTorch counted, in every answer that has them.

use std::path::Path;

use blockyard_lab::{Run, diff, verdict, what_if};
use blockyard_pytorch::{RecordedRun, stat_keys};
use blockyard_record::Bytes;

use crate::on;

const PROGRAMS: [&str; 7] = [
    "cudagraph_mlp",
    "gnn_random",
    "gnn_random.expandable_segments",
    "gnn_random.max_split_size_mb_128",
    "gpt2_varlen",
    "multistream",
    "resnet50_amp",
];

fn fixture(path: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures");
    std::fs::read(folder.join(path)).unwrap()
}

/// The highest peak allocated and peak reserved among all of PyTorch's statistics in a recording, since
/// programs reset their peaks.
fn counted(run: &RecordedRun) -> (Bytes, Bytes) {
    let all = run.checkpoints.iter().map(|(_, _, stats)| stats).chain(&run.final_stats);
    let all: Vec<_> = all.flatten().collect();
    let most = |name: &str| {
        let key = stat_keys().iter().position(|key| key.as_str() == name).unwrap();
        let values = all.iter().filter(|stat| stat.key == key).map(|stat| stat.value.unsigned_abs());
        Bytes::new(values.max().unwrap())
    };
    (most("allocated_bytes.all.peak"), most("reserved_bytes.all.peak"))
}

/// The peaks allocated and reserved by `what_if` and by `diff`, after the verdict's headline is compared with
/// them.
fn answered(run: &Run) -> [(Bytes, Bytes); 2] {
    let rows = what_if(run, &[run.conditions()], 0, &mut on).unwrap();
    let outcome = rows.baseline.outcome_at_lowest().unwrap();
    assert_eq!(rows.rows[0].outcome, rows.baseline.outcome);
    let told = verdict(run, &run.conditions(), &mut on).unwrap();
    let allocated = format!("at most {} are allocated, and ", outcome.peak_allocated);
    assert!(told.answer.headline.contains(&allocated), "{}", told.answer.headline);
    let same = diff(run, run, &mut on).unwrap();
    assert!(same.allocated.terms.is_empty() && same.reserved.terms.is_empty());
    [(outcome.peak_allocated, outcome.peak_reserved), (same.allocated.after, same.reserved.after)]
}

#[test]
fn recorded_programs_have_pytorchs_peaks() {
    for name in PROGRAMS {
        let recorded = RecordedRun::read(&fixture(&format!("programs/{name}.jsonl.gz"))).unwrap();
        let run = Run::from_recorded(&recorded, &mut on).unwrap();
        assert_eq!(answered(&run), [counted(&recorded); 2], "{name}");
    }
}

/// The peaks are right only with the addresses of the recorded segments: another order of addresses takes 14
/// MiB more.
#[test]
fn a_snapshot_has_pytorchs_peaks() {
    let runs = Run::read("", &fixture("snapshots/resnet50_amp.pickle.gz"), &mut on).unwrap();
    let peaks = (Bytes::new(1_781_156_352), Bytes::new(2_002_780_160));
    assert_eq!(answered(&runs[0]), [peaks; 2]);
    let recorded = RecordedRun::read(&fixture("programs/resnet50_amp.jsonl.gz")).unwrap();
    assert_eq!(counted(&recorded), peaks);
}
