//! How much memory the reader of a watched program takes over hours: `cargo run --release -p blockyard-watch
//! --example hours [HOURS]`.
//!
//! A thread sends what a GPT on an H200 sends in this time, as fast as it is read: steps of 51 ms with 3,159
//! events. The reader is that of `blockyard watch`, and takes the last steps after each hundredth, as the page
//! does.

#![allow(clippy::print_stdout, reason = "what it prints is its result")]

use std::error::Error;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use blockyard_pytorch::snapshot::SnapshotFile;
use blockyard_watch::{Decoder, DeviceMemory, Event, FORMAT, Frame, Hello, StackFrame, StackText, Watched};

const EVENTS_A_STEP: u64 = 3_159;
const STEPS_AN_HOUR: u64 = 3_600_000 / 51;
const LINES: u32 = 50;

fn send(hours: u64, socket: &mut UnixStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut bytes = Vec::new();
    Frame::Hello(Hello { format: FORMAT, devices: vec!["a GPU".to_owned()], ..Hello::default() })
        .write(&mut bytes);
    let mut empty = Vec::new();
    SnapshotFile::default().write_pickle(&mut empty)?;
    Frame::Snapshot(empty).write(&mut bytes);
    for number in 1..=LINES {
        let frame = StackFrame { file: "train.py".to_owned(), name: "step".to_owned(), line: number };
        Frame::Stack { device: 0, stack: StackText { number, frames: vec![frame] } }.write(&mut bytes);
    }
    let segment = 64 << 30;
    let mut time_us = 1;
    let mut event = |action, size, stack| {
        time_us += 16;
        Event { action, addr: 1 << 40, size, time_us, stack, ..Event::default() }
    };
    let first = event(3, segment, 1);
    Frame::Events { device: 0, events: vec![first] }.write(&mut bytes);
    for number in 1..=hours * STEPS_AN_HOUR {
        // Of three events one allocates, and two free.
        for place in 0..EVENTS_A_STEP / 3 {
            let size = (1 << 20) + ((place * 7919) % 2048 + 1) * 512;
            let stack = u32::try_from(place)? % LINES + 1;
            let events = [(0, stack), (1, 0), (2, 0)].map(|(action, stack)| event(action, size, stack));
            Frame::Events { device: 0, events: events.to_vec() }.write(&mut bytes);
        }
        let memory = vec![DeviceMemory { available: 140 << 30, total: 141 << 30, limit: 0 }];
        Frame::Step { number, memory }.write(&mut bytes);
        socket.write_all(&bytes)?;
        bytes.clear();
    }
    Ok(())
}

/// The memory of this process in MiB, now and at most.
fn memory_mib() -> Result<[u64; 2], Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or_default() / 1024
    };
    Ok([of("VmRSS:"), of("VmHWM:")])
}

fn main() -> Result<(), Box<dyn Error>> {
    let hours = std::env::args().nth(1).map_or(Ok(8), |hours| hours.parse())?;
    let (mut reads, mut writes) = UnixStream::pair()?;
    let sender = std::thread::spawn(move || send(hours, &mut writes).map_err(|error| error.to_string()));
    let (mut watched, mut decoder, mut bytes) = (Watched::default(), Decoder::default(), vec![0; 1 << 18]);
    loop {
        let count = reads.read(&mut bytes)?;
        if count == 0 {
            break;
        }
        decoder.add(bytes.get(..count).unwrap_or_default());
        while let Some(frame) = decoder.next()? {
            let ends_step = matches!(frame, Frame::Step { .. });
            watched.apply(frame)?;
            if ends_step && watched.step % 100 == 0 {
                drop(watched.steps(watched.step.saturating_sub(20)));
            }
            if ends_step && watched.step % STEPS_AN_HOUR == 0 {
                let ([now, most], hour) = (memory_mib()?, watched.step / STEPS_AN_HOUR);
                println!(
                    "hour {hour}: {} events, {now} MiB, at most {most} MiB",
                    watched.step * EVENTS_A_STEP
                );
            }
        }
    }
    sender.join().map_err(|_| "the sender ended")??;
    println!("{} misfits", watched.misfits());
    Ok(())
}
