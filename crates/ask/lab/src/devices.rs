//! The devices of one snapshot beside each other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_record::{Bytes, joined};

use crate::lifetimes::lifetimes;
use crate::live::{BEFORE_RECORDING, WITHOUT_PROGRAM_LINE, WORKSPACES, holding_line};
use crate::{DeviceOfFile, Finding, FindingTopic, Run, VerdictAnswer};

/// What is known about all devices of a file.
#[derive(Debug)]
pub(crate) struct Devices {
    list: Vec<DeviceOfFile>,
    sentence: String,
}

/// Gives each run of a snapshot the devices beside it; they have these numbers.
pub(crate) fn set_devices(runs: &mut [Run], numbers: &[u32]) {
    let list: Vec<DeviceOfFile> = runs.iter().zip(numbers).map(|(run, number)| of(run, *number)).collect();
    let most = runs.iter().zip(&list).max_by_key(|(_, device)| (device.held, Reverse(device.device)));
    let least = runs.iter().zip(&list).min_by_key(|(_, device)| (device.held, device.device));
    let (Some(most), Some(least)) = (most, least) else { return };
    let has_requests = runs.iter().any(Run::has_requests);
    let sentence = format!("{}; {}", failed_text(&list, has_requests), held_text(most, least));
    let devices = Arc::new(Devices { list, sentence });
    let others: Vec<(u32, Run)> = numbers.iter().copied().zip(runs.iter().cloned()).collect();
    for (place, run) in runs.iter_mut().enumerate() {
        run.recorded.devices = Some(Arc::clone(&devices));
        if run.recorded_oom().is_some() {
            let others =
                others.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, other)| other);
            run.recorded.others = others.filter(|(_, run)| run.has_requests()).cloned().collect();
        }
    }
}

/// Adds the devices of the file to the verdict about one of them.
pub(crate) fn add_devices(answer: &mut VerdictAnswer, run: &Run) {
    let Some(devices) = &run.recorded.devices else { return };
    answer.devices.clone_from(&devices.list);
    answer.findings.insert(0, Finding::new(FindingTopic::Happened, &devices.sentence));
}

fn of(run: &Run, number: u32) -> DeviceOfFile {
    let (is_out_of_memory, held, _) = run.device_order();
    DeviceOfFile { device: u64::from(number), is_out_of_memory, held }
}

fn failed_text(devices: &[DeviceOfFile], has_requests: bool) -> String {
    let failed = devices.iter().filter(|device| device.is_out_of_memory);
    let failed: Vec<String> = failed.map(|device| device.device.to_string()).collect();
    let count = devices.len();
    match failed.as_slice() {
        [] if !has_requests => format!("the file has {count} devices and no requests"),
        [] => format!("none of the {count} devices of the file ran out of memory"),
        [one] => format!("of the {count} devices of the file device {one} ran out of memory"),
        several => format!("of the {count} devices of the file {} ran out of memory", joined(several)),
    }
}

fn held_text((run, most): (&Run, &DeviceOfFile), (other, least): (&Run, &DeviceOfFile)) -> String {
    let more = most.held.saturating_sub(least.held);
    if more.is_zero() {
        return format!("each holds {} at the end", most.held);
    }
    let lines = lines(other);
    let differs = |(line, bytes): (String, Bytes)| {
        let less = lines.get(&line).copied().unwrap_or_default();
        (bytes.saturating_sub(less), line)
    };
    let is_line = |(line, _): &(String, Bytes)| {
        !line.contains("without a stack") && ![WITHOUT_PROGRAM_LINE, WORKSPACES].contains(&line.as_str())
    };
    let line = self::lines(run).into_iter().filter(is_line).map(differs).max();
    let line = line.filter(|(bytes, _)| !bytes.is_zero());
    let line =
        line.map_or_else(String::new, |(bytes, line)| format!(", and `{line}` holds {bytes} more there"));
    format!(
        "at the end device {} holds most, {}, which is {more} more than device {}{line}",
        most.device, most.held, least.device
    )
}

/// The bytes that each line holds at the end of a run.
fn lines(run: &Run) -> BTreeMap<String, Bytes> {
    if let Some(state) = run.state() {
        return state.held().iter().map(|held| (held.line.clone(), held.bytes)).collect();
    }
    let mut lines: BTreeMap<String, Bytes> = BTreeMap::new();
    for life in lifetimes(run).iter().filter(|life| life.freed >= run.requests().len()) {
        let line = holding_line(&run.stack(life.request)).unwrap_or_else(|| BEFORE_RECORDING.to_owned());
        let sum = lines.entry(line).or_default();
        *sum = sum.saturating_add(life.size);
    }
    lines
}
