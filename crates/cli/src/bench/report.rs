//! Results as a table, and as JSON.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use blockyard_device_cuda::driver_version;
use serde_json::json;

use crate::bench::measure::Measure;
use crate::device::{DeviceName, open_cuda};
use crate::output;

/// What was measured on.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) device: String,
    pub(crate) driver: Option<String>,
    pub(crate) processor: Option<String>,
    pub(crate) unix_seconds: u64,
    pub(crate) command: String,
}

/// What one contender needed for one thing.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) section: &'static str,
    pub(crate) what: String,
    pub(crate) contender: &'static str,
    pub(crate) nanos: Measure,
    pub(crate) turns: usize,
}

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) rounds: u32,
    pub(crate) rows: Vec<Row>,
}

impl Machine {
    pub(crate) fn of(device: DeviceName) -> anyhow::Result<Self> {
        let (device, driver) = match device {
            DeviceName::Virtual => ("virtual".to_owned(), None),
            DeviceName::Cuda(index) => {
                let version = driver_version()?;
                let driver = format!("for CUDA {}.{}", version / 1000, version % 1000 / 10);
                (open_cuda(index)?.name().to_owned(), Some(driver))
            }
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let command: Vec<String> = std::env::args_os()
            .enumerate()
            .map(|(index, argument)| match index {
                0 => "blockyard".to_owned(),
                _ => argument.to_string_lossy().into_owned(),
            })
            .collect();
        Ok(Self {
            device,
            driver,
            processor: processor(),
            unix_seconds: now.map_or(0, |now| now.as_secs()),
            command: command.join(" "),
        })
    }

    fn words(&self) -> String {
        let parts = [Some(&self.device), self.driver.as_ref(), self.processor.as_ref()];
        parts.into_iter().flatten().cloned().collect::<Vec<_>>().join(", ")
    }
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

impl Report {
    /// Ours in the same line of the table.
    pub(crate) fn ours(&self, row: &Row) -> Option<&Row> {
        self.rows.iter().find(|other| {
            other.section == row.section && other.what == row.what && other.contender == "blockyard"
        })
    }

    pub(crate) fn sections(&self) -> Vec<&'static str> {
        let mut sections: Vec<&'static str> = self.rows.iter().map(|row| row.section).collect();
        // Replays of one recording stand side by side while they are measured.
        let mut known = Vec::new();
        sections.retain(|section| {
            let is_new = !known.contains(section);
            known.push(*section);
            is_new
        });
        sections
    }

    /// A table of Markdown for each section.
    pub(crate) fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        output::line(out, &format!("{}; {} rounds; nanoseconds", self.machine.words(), self.rounds))?;
        output::line(out, &format!("`{}`", self.machine.command))?;
        for section in self.sections() {
            output::line(out, &format!("\n## {section}\n"))?;
            output::line(
                out,
                &format!("| {:24} | {:22} | {:>12} | {:>27} | {:>10} |", "", "", "median", "range", "ours x"),
            )?;
            output::line(out, "| --- | --- | ---: | ---: | ---: |")?;
            for row in self.rows.iter().filter(|row| row.section == section) {
                let Measure { median, least, most } = row.nanos;
                let times = self.ours(row).map_or(f64::NAN, |ours| median / ours.nanos.median);
                let range = format!("{least:.1} to {most:.1}");
                let Row { what, contender, .. } = row;
                output::line(
                    out,
                    &format!("| {what:24} | {contender:22} | {median:>12.1} | {range:>27} | {times:>10.2} |"),
                )?;
            }
        }
        out.flush()
    }

    pub(crate) fn json(&self) -> String {
        let rows: Vec<_> = self
            .rows
            .iter()
            .map(|row| {
                let Measure { median, least, most } = row.nanos;
                json!({
                    "section": row.section,
                    "what": row.what,
                    "contender": row.contender,
                    "turns": row.turns,
                    "nanoseconds": {"median": median, "least": least, "most": most},
                })
            })
            .collect();
        let Machine { device, driver, processor, unix_seconds, command } = &self.machine;
        let value = json!({
            "device": device,
            "driver": driver,
            "processor": processor,
            "unix_seconds": unix_seconds,
            "command": command,
            "rounds": self.rounds,
            "rows": rows,
        });
        format!("{value:#}\n")
    }
}
