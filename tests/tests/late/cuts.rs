//! Cuts through recordings of the real allocator.

use std::ops::ControlFlow;
use std::path::Path;

use blockyard_pytorch::RecordedRun;
use blockyard_record::Bytes;
use blockyard_replay::{Settings, open, verify};

use crate::truth::{Moment, moments};

fn read(name: &str) -> RecordedRun {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(format!("{name}.jsonl.gz"));
    RecordedRun::read(&std::fs::read(path).unwrap()).unwrap()
}

/// The recording without its operations and without the first `cut` entries.
fn cut_at(run: &RecordedRun, cut: usize) -> RecordedRun {
    let mut late = run.clone();
    late.operations.clear();
    late.meta.profile.clear();
    late.memory_summary = None;
    if let Ok(f) = std::env::var("FRACTION") {
        late.meta.config = format!("{},per_process_memory_fraction:{f}", late.meta.config);
    }
    late.trace = Some(run.trace.as_ref().unwrap()[cut..].to_vec());
    late.checkpoints.retain(|(_, at, _)| *at >= cut);
    for (_, at, _) in &mut late.checkpoints {
        *at -= cut;
    }
    late
}

#[derive(Debug, Default)]
struct Found {
    cuts: usize,
    blocks: usize,
    wrong: usize,
    open: usize,
    differing: usize,
}

fn check(name: &str, every: usize) {
    let run = read(name);
    let whole = verify(&run, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(whole.comparison.is_identical());
    let length = run.trace.as_ref().unwrap().len();
    let cuts: Vec<usize> = (0..length).step_by(every).collect();
    let moments = moments(&whole.recording, &cuts);
    let mut found = Found::default();
    for (cut, truth) in cuts.into_iter().zip(moments) {
        let late = cut_at(&run, cut);
        let settings = Settings {
            title: String::new(),
            config: late.meta.config.parse().unwrap(),
            capacity: late.meta.total_memory,
        };
        let opened = open(&late, &settings, &mut |_| ControlFlow::Continue(()));
        let opened = match opened {
            Ok(o) => o,
            Err(e) => {
                println!("{name} {cut} cannot open: {e}");
                continue;
            }
        };
        let ours = Moment::of(&opened.inferred.start);
        if opened.run.trace == late.trace {
            if ours.segments != truth.segments {
                println!(
                    "{name} {cut} SEGMENTS {:?} {:?}",
                    ours.segments.iter().find(|(a, s)| truth.segments.get(a) != Some(s)),
                    truth.segments.iter().find(|(a, s)| ours.segments.get(a) != Some(s))
                );
            }
            let keys = |m: &Moment| m.blocks.iter().map(|(a, (_, r, p))| (*a, *r, *p)).collect::<Vec<_>>();
            if keys(&ours) != keys(&truth) {
                println!("{name} {cut} BLOCKS");
            }
            let wrong: Vec<_> =
                ours.blocks.iter().filter(|(a, b)| truth.blocks.get(a).is_some_and(|t| t.0 != b.0)).collect();
            found.wrong += wrong.len();
            if let Some((a, b)) = wrong.first() {
                println!("{name} {cut} wrong {a:#x} {} true {}", b.0.get(), truth.blocks[a].0.get());
            }
        }
        found.blocks += ours.blocks.len();
        found.open += opened.rewound.as_ref().map_or(0, |r| r.sizes.open);
        found.cuts += 1;
        match verify(&late, &mut |_| ControlFlow::Continue(())) {
            Ok(v) => {
                if !v.comparison.is_identical() {
                    found.differing += 1;
                    println!("{name} {cut} DIFFERS {:?}", v.comparison.first_difference);
                }
            }
            Err(e) => {
                found.differing += 1;
                println!("{name} {cut} {e}");
            }
        }
    }
    let _ = Bytes::ZERO;
    println!("{name}: {found:?}");
}

#[test]
fn look() {
    let names = std::env::var("NAMES").unwrap_or_default();
    let every = std::env::var("EVERY").ok().and_then(|e| e.parse().ok()).unwrap_or(97);
    for name in names.split_whitespace() {
        check(name, every);
    }
}
