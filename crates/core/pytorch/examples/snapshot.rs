//! Opens snapshots and prints the time and the memory that opening took: `snapshot FILE...`.

use std::fs::File;
use std::ops::ControlFlow;
use std::time::Instant;

use blockyard_pytorch::snapshot;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for path in std::env::args().skip(1) {
        let begin = Instant::now();
        let file = snapshot::read(File::open(&path)?, &mut |_| ControlFlow::Continue(()))?;
        let entries: usize = file.devices.iter().map(|device| device.trace.len()).sum();
        eprintln!(
            "{path}: {entries} entries, {} stacks, {} frames, {:?} {}",
            file.stacks.len(),
            file.stacks.frame_count(),
            begin.elapsed(),
            peak()
        );
        for place in 0..file.devices.len() {
            let begin = Instant::now();
            let found =
                blockyard_pytorch::trace::record(&file, place, &path, &mut |_| ControlFlow::Continue(()))?;
            eprintln!(
                "  device {}: {} events, {} steps, {:?}, {:?} {}",
                found.device,
                found.recording.event_count(),
                found.recording.step_count(),
                found.recording.size(),
                begin.elapsed(),
                peak()
            );
            for note in found.notes {
                eprintln!("  note: {note}");
            }
        }
    }
    Ok(())
}

/// The line of `/proc/self/status` with the peak resident memory of the process; empty on other systems than
/// Linux.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned()
}
