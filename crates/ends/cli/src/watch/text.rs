//! The lines of `blockyard watch`.

use std::collections::BTreeMap;
use std::sync::Arc;

use blockyard_lab::Forecast;
use blockyard_record::{Bytes, counted, grouped, signed};
use blockyard_watch::DeviceStep;

use super::live::LiveProgram;
use super::status::Status;

/// Prints lines to standard error, each with the name of the process, and tells the page.
#[derive(Clone, Debug, Default)]
pub(super) struct Say {
    name: String,
    /// `None` where no page is served.
    pub(super) live: Option<Arc<LiveProgram>>,
    /// What the other ranks may ask for.
    pub(super) status: Arc<Status>,
}

impl Say {
    /// Says under the name of a process; empty for the only one.
    pub(super) fn of(name: &str, live: Option<Arc<LiveProgram>>) -> Self {
        let name = if name.is_empty() { String::new() } else { format!("{name} ") };
        Self { name, live, ..Self::default() }
    }

    /// The name of the process, or nothing.
    pub(super) fn name(&self) -> &str {
        self.name.trim_end()
    }

    pub(super) fn line(&self, text: &str) {
        eprintln!("[watch] {}{text}", self.name);
    }

    /// A line that the page keeps among the notes.
    pub(super) fn note(&self, text: &str) {
        self.line(text);
        if let Some(live) = &self.live {
            live.note(text);
        }
    }
}

/// The line of a step.
pub(super) fn step(number: u64, step: &DeviceStep, has_several: bool) -> String {
    let device = if has_several { format!(" cuda:{}", step.device) } else { String::new() };
    let head = format!("step {}{device}: ", grouped(number));
    if step.has_gap {
        return format!("{head}not known, since events were lost");
    }
    let peaks = format!("peak {} allocated, {} reserved", step.peak_allocated, step.peak_reserved);
    let growth = match step.growth {
        None => String::new(),
        Some(0) => "; kept as much as before".to_owned(),
        Some(growth) => {
            let line = step.growing_line.as_ref().filter(|_| growth > 0);
            let line =
                line.map_or_else(String::new, |(line, more)| format!(", {} of {line}", Bytes::new(*more)));
            let growth = signed(growth, |bytes| Bytes::new(bytes).to_string());
            format!("; {growth} to the step before{line}")
        }
    };
    format!("{head}{peaks}{growth}")
}

/// The line of a step of several ranks: the least and the most of each peak, and which rank has the most.
pub(super) fn ranks(number: u64, ranks: &BTreeMap<String, Vec<DeviceStep>>) -> String {
    let all = || ranks.iter().flat_map(|(name, steps)| steps.iter().map(move |step| (name, step)));
    let range = |of: fn(&DeviceStep) -> Bytes| {
        let known = || all().filter(|(_, step)| !step.has_gap).map(|(name, step)| (of(step), name));
        match (known().min(), known().max_by_key(|(bytes, _)| *bytes)) {
            (Some((least, _)), Some((most, name))) if least < most => format!("{least} to {most} ({name})"),
            (Some((least, _)), _) => least.to_string(),
            _ => "not known".to_owned(),
        }
    };
    let grew = all().filter(|(_, step)| step.growth.is_some_and(|growth| growth > 0));
    let grew = grew.max_by_key(|(_, step)| step.growth).map_or_else(
        || if all().any(|(_, step)| step.growth.is_some()) { "; none grew" } else { "" }.to_owned(),
        |(name, step)| {
            let line = step.growing_line.as_ref();
            let line =
                line.map_or_else(String::new, |(line, more)| format!(", {} of {line}", Bytes::new(*more)));
            let growth = Bytes::new(step.growth.unwrap_or(0).unsigned_abs());
            format!("; grew most: {name} by {growth}{line}")
        },
    );
    format!(
        "step {}, {}: peak {} allocated, {} reserved{grew}",
        grouped(number),
        counted(ranks.len(), "rank"),
        range(|step| step.peak_allocated),
        range(|step| step.peak_reserved),
    )
}

/// The line of a failed request.
pub(super) fn out_of_memory(device: usize, size: Bytes, step: u64) -> String {
    format!("out of memory in step {}: cuda:{device} had no {size}", grouped(step.saturating_add(1)))
}

/// The line of lost events.
pub(super) fn gap(device: usize, lost: u64) -> String {
    format!("{} events of cuda:{device} were lost; the next step begins anew", grouped(lost))
}

/// The line about the comparison with PyTorch's snapshots.
pub(super) fn compared(compared: u64, different: u64) -> String {
    let all = counted(usize::try_from(compared).unwrap_or(usize::MAX), "snapshot");
    let differ =
        if different == 0 { "none differs".to_owned() } else { format!("{} differ", grouped(different)) };
    format!("{all} of PyTorch's compared with the events: {differ}")
}

/// The forecast of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DeviceForecast {
    pub(super) device: u32,
    /// `None` where its steps are not equal.
    pub(super) own: Option<Forecast>,
    /// Where a step fails: the setting under which the program goes on, and what becomes of it.
    pub(super) setting: Option<(String, Forecast)>,
}

impl DeviceForecast {
    /// Whether the other says the same about this device, without settings.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.device == other.device && forecast_kind(self.own.as_ref()) == forecast_kind(other.own.as_ref())
    }
}

/// The forecasts of all devices that have one.
pub(super) fn forecasts(all: &[DeviceForecast]) -> String {
    let text = |of: &DeviceForecast| {
        let name = if all.len() > 1 { format!("cuda:{}: ", of.device) } else { String::new() };
        let setting =
            of.setting.as_ref().map(|(conf, found)| setting(conf, found)).map(|text| format!("; {text}"));
        format!("{name}{}{}", forecast(of.own.as_ref()), setting.unwrap_or_default())
    };
    if all.is_empty() { forecast(None) } else { all.iter().map(text).collect::<Vec<_>>().join("; ") }
}

/// What becomes of the program under a setting.
fn setting(conf: &str, found: &Forecast) -> String {
    let name = if conf.is_empty() { "the default setting" } else { conf };
    match found {
        Forecast::Finishes => format!("with {name} no step fails"),
        Forecast::Passes { .. } => format!("with {name} {}", forecast(Some(found))),
        Forecast::Fails { iteration, is_estimate, .. } => {
            let about = if *is_estimate { "about " } else { "" };
            format!("{name} postpones it to {about}step {}", grouped(*iteration))
        }
    }
}

/// A forecast whose iterations are steps, as a sentence; `None` where the steps are not equal.
fn forecast(forecast: Option<&Forecast>) -> String {
    match forecast {
        None => "not periodic yet".to_owned(),
        Some(Forecast::Finishes) => "the memory repeats, and no later step fails".to_owned(),
        Some(Forecast::Passes { iteration }) => {
            format!("no step before step {} fails", grouped(iteration.saturating_add(1)))
        }
        Some(Forecast::Fails { iteration, size, line, is_estimate, .. }) => {
            let about = if *is_estimate { "about " } else { "" };
            let what = size.map_or_else(String::new, |size| {
                let line = line.as_ref().map_or_else(String::new, |line| format!(" for {line}"));
                format!(": {size}{line}")
            });
            format!("at this growth {about}step {} fails{what}", grouped(*iteration))
        }
    }
}

/// What forecasts say, without what changes from step to step.
pub(super) fn forecast_kinds(all: &[DeviceForecast]) -> Vec<String> {
    let kinds: Vec<String> = all.iter().map(|of| forecast_kind(of.own.as_ref())).collect();
    if kinds.is_empty() { vec![forecast_kind(None)] } else { kinds }
}

/// Estimates that differ in their second digit are the same.
fn forecast_kind(of: Option<&Forecast>) -> String {
    match of {
        Some(Forecast::Passes { .. }) => "passes".to_owned(),
        Some(Forecast::Fails { iteration, is_estimate: true, .. }) => {
            let unit = 10_u64.saturating_pow(iteration.checked_ilog10().unwrap_or(0));
            format!("about {}", iteration / unit * unit)
        }
        of => forecast(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_says_peaks_and_growth() {
        let mut of = DeviceStep {
            peak_allocated: Bytes::mib(100),
            peak_reserved: Bytes::mib(120),
            growth: Some(3 << 20),
            growing_line: Some(("main train.py:45".to_owned(), 4 << 20)),
            ..DeviceStep::default()
        };
        assert_eq!(
            step(12, &of, false),
            "step 12: peak 100 MiB allocated, 120 MiB reserved; +3 MiB to the step before, 4 MiB of main train.py:45"
        );
        of.growth = Some(0);
        assert_eq!(
            step(12, &of, true),
            "step 12 cuda:0: peak 100 MiB allocated, 120 MiB reserved; kept as much as before"
        );
        of.has_gap = true;
        assert_eq!(step(12, &of, false), "step 12: not known, since events were lost");
    }

    #[test]
    fn a_forecast_names_the_step_the_request_and_the_line() {
        let fails = Forecast::Fails {
            iteration: 88,
            at_upper_bound: Some(88),
            size: Some(Bytes::mib(192)),
            line: Some("main train.py:45".to_owned()),
            is_estimate: false,
        };
        assert_eq!(forecast(Some(&fails)), "at this growth step 88 fails: 192 MiB for main train.py:45");
        assert_eq!(forecast_kind(Some(&fails)), forecast(Some(&fails)));
        assert_eq!(forecast(None), "not periodic yet");
        assert_eq!(forecast(Some(&Forecast::Finishes)), "the memory repeats, and no later step fails");
        let estimate = |iteration| Forecast::Fails {
            iteration,
            at_upper_bound: None,
            size: None,
            line: None,
            is_estimate: true,
        };
        assert_eq!(forecast(Some(&estimate(42_726))), "at this growth about step 42,726 fails");
        assert_eq!(forecast_kind(Some(&estimate(42_726))), forecast_kind(Some(&estimate(42_801))));
        assert_eq!(setting("", &Forecast::Finishes), "with the default setting no step fails");
        assert_eq!(setting("a:1", &estimate(42_801)), "a:1 postpones it to about step 42,801");
        let passes = Forecast::Passes { iteration: 2_999 };
        assert_eq!(setting("a:1", &passes), "with a:1 no step before step 3,000 fails");
    }
}
