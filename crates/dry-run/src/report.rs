//! What a run took, and how sure that is.

use std::collections::BTreeSet;

use blockyard_record::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The bytes of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// Most bytes of allocated blocks at one time.
    pub peak_allocated: Bytes,
    /// Most bytes of segments at one time.
    pub peak_reserved: Bytes,
    /// Bytes of allocated blocks at the end.
    pub allocated: Bytes,
    /// All statistics that PyTorch has, by its names.
    pub stats: Map<String, Value>,
}

/// Something that makes what follows an estimate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Note {
    /// "function", "read" or "estimate".
    pub kind: String,
    /// The function that nobody wrote.
    #[serde(default)]
    pub name: String,
    /// What was assumed.
    #[serde(default)]
    pub text: String,
    /// Bytes that the host read.
    #[serde(default)]
    pub bytes: u64,
    /// The program's file; empty where the line is not known.
    #[serde(default)]
    pub file: String,
    /// The line in this file.
    #[serde(default)]
    pub line: u32,
}

impl Note {
    /// A sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let what = match self.kind.as_str() {
            "function" => {
                format!("{} was called, of which only the name is known here: it did nothing", self.name)
            }
            "read" => format!(
                "the program reads {} {} that a kernel would have computed: {}",
                self.bytes,
                if self.bytes == 1 { "byte" } else { "bytes" },
                if self.text.is_empty() { "taken to be 0" } else { &self.text }
            ),
            _ => self.text.clone(),
        };
        if self.line == 0 { what } else { format!("{}:{}: {what}", self.file, self.line) }
    }
}

/// What a run took.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The program's exit status; 128 and the signal's number for a crash.
    pub status: i32,
    /// The exception that ended the program.
    pub error: Option<String>,
    /// By device; empty where the program used none, or where the process crashed.
    pub devices: Vec<DeviceReport>,
    /// Whether the process ended before the statistics were written.
    pub is_cut: bool,
    /// Why numbers may be estimates.
    pub notes: Vec<Note>,
}

/// What the runner writes.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Counted {
    error: Option<String>,
    #[serde(default)]
    devices: Vec<Map<String, Value>>,
    fault: Option<String>,
}

impl Report {
    /// The report of what the runner and the libraries wrote.
    pub(crate) fn of(status: i32, counted: Option<&str>, lines: &str) -> Self {
        let found: Option<Counted> = counted.and_then(|text| serde_json::from_str(text).ok());
        let is_cut = found.is_none();
        let found = found.unwrap_or_default();
        let mut notes: Vec<Note> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let unread = lines.lines().count().saturating_sub(notes.len());
        if unread > 0 {
            notes.push(Note {
                kind: "estimate".to_owned(),
                text: format!("{unread} lines of the run's own report are damaged"),
                ..Note::default()
            });
        }
        if let Some(fault) = found.fault {
            let text = format!("the statistics were not read: {fault}");
            notes.push(Note { kind: "estimate".to_owned(), text, ..Note::default() });
        }
        let devices = found.devices.into_iter().map(device).collect();
        Self { status, error: found.error, devices, is_cut, notes }
    }

    /// Whether nothing was assumed.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.notes.is_empty() && !self.is_cut
    }

    /// The report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let device = |device: &DeviceReport| {
            json!({
                "peak_allocated": device.peak_allocated.get(),
                "peak_reserved": device.peak_reserved.get(),
                "allocated": device.allocated.get(),
                "stats": device.stats,
            })
        };
        let note = |note: &Note| json!({"kind": note.kind, "text": note.sentence(), "file": note.file, "line": note.line});
        json!({
            // One order of addresses was run: bytes of segments may differ under a driver's own.
            "exact": if self.is_exact() { "but for the driver's addresses" } else { "no" },
            "status": self.status,
            "error": self.error,
            "devices": self.devices.iter().map(device).collect::<Vec<_>>(),
            "notes": self.notes.iter().map(note).collect::<Vec<_>>(),
        })
    }

    /// Notes of one kind, by sentence.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let seen: BTreeSet<String> = self.notes.iter().map(Note::sentence).collect();
        seen.into_iter().collect()
    }
}

fn device(stats: Map<String, Value>) -> DeviceReport {
    let bytes = |name: &str| Bytes::new(stats.get(name).and_then(Value::as_u64).unwrap_or(0));
    DeviceReport {
        peak_allocated: bytes("allocated_bytes.all.peak"),
        peak_reserved: bytes("reserved_bytes.all.peak"),
        allocated: bytes("allocated_bytes.all.current"),
        stats,
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn a_report_says_what_was_assumed() {
        let counted = r#"{"error": null, "devices": [{"allocated_bytes.all.peak": 1024, "reserved_bytes.all.peak": 2097152}]}"#;
        let exact = Report::of(0, Some(counted), "");
        assert!(exact.is_exact());
        assert_eq!(exact.devices[0].peak_reserved.get(), 2_097_152);
        let lines = "{\"kind\":\"read\",\"bytes\":4,\"file\":\"a.py\",\"line\":3}\n{\"kind\":\"function\",\"name\":\"cusolverX\"}\n{damaged";
        let marked = Report::of(0, Some(counted), lines);
        assert!(!marked.is_exact());
        assert_eq!(marked.notes.len(), 3);
        assert!(marked.notes[0].sentence().starts_with("a.py:3: the program reads 4 bytes"));
        let cut = Report::of(139, None, "");
        assert!(cut.is_cut && !cut.is_exact());
    }
}
