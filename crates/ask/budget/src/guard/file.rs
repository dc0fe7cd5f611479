//! `memory.toml`: read for the guard. Its fields are in `docs/guard-file.md`.

use blockyard_answers::GuardHolder;
use blockyard_record::Bytes;
use blockyard_workload::parse_size;
use thiserror::Error;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use super::{Baseline, ProgramEntry, Tolerance};

/// The version of the file that is read and written.
pub(crate) const VERSION: i64 = 1;
pub(crate) const PROGRAM: &str = "program";
pub(crate) const BASELINE: &str = "baseline";
/// The keys of an entry.
const KEYS: [&str; 9] =
    [PROGRAM, "arguments", "gpu", "steps", "conf", "budget", "tolerance", "lines", BASELINE];
/// The keys at the top.
const TOP_KEYS: [&str; 2] = ["version", PROGRAM];

/// Why a text is not a file of the guard.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GuardFileError {
    /// The text is not TOML.
    #[error("{0}")]
    Toml(String),
    /// A later version wrote the file.
    #[error(
        "the file has version {0}, and this command reads version {VERSION}: a newer Blockyard reads the file"
    )]
    Version(i64),
    /// A value has another kind.
    #[error("{place} is not a {kind}")]
    Kind {
        /// The place of the value, from the top of the file.
        place: String,
        /// The kind that the value should have.
        kind: String,
    },
    /// An entry has no program.
    #[error("entry {0} has no `program`")]
    NoProgram(usize),
    /// Two entries have the same program, arguments and GPU.
    #[error("two entries are for `{0}`")]
    Twice(String),
}

/// The file, with the comments and the keys that a person wrote.
#[derive(Clone, Debug)]
pub struct GuardFile {
    pub(crate) document: DocumentMut,
    entries: Vec<ProgramEntry>,
}

/// A file without entries.
impl Default for GuardFile {
    fn default() -> Self {
        Self { document: HEAD.parse().unwrap_or_default(), entries: Vec::new() }
    }
}

impl GuardFile {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// [`GuardFileError`] if the text is not TOML, if a later version wrote the file, or if an entry is not
    /// valid.
    pub fn parse(text: &str) -> Result<Self, GuardFileError> {
        let document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
            GuardFileError::Toml(error.to_string().trim().to_owned())
        })?;
        if let Some(version) = document.get("version") {
            let version = version.as_integer().ok_or_else(|| kind("version", "number"))?;
            if version > VERSION {
                return Err(GuardFileError::Version(version));
            }
        }
        let mut file = Self { document, entries: Vec::new() };
        file.entries = file.read_entries()?;
        Ok(file)
    }

    /// The entries, in the order of the file.
    pub fn entries(&self) -> &[ProgramEntry] {
        &self.entries
    }

    /// Keys that the guard does not read, as a person's own keys or misspelled keys, each once, in their
    /// order.
    pub fn unread_keys(&self) -> Vec<String> {
        let top = self.document.iter().map(|(key, _)| key).filter(|key| !TOP_KEYS.contains(key));
        let own = self.tables().into_iter().flat_map(ArrayOfTables::iter).flat_map(Table::iter);
        let own = own.map(|(key, _)| key).filter(|key| !KEYS.contains(key));
        let mut keys: Vec<String> = Vec::new();
        for key in top.chain(own) {
            if keys.iter().all(|known| known != key) {
                keys.push(key.to_owned());
            }
        }
        keys
    }

    pub(crate) fn tables(&self) -> Option<&ArrayOfTables> {
        self.document.get(PROGRAM).and_then(Item::as_array_of_tables)
    }

    pub(crate) fn read_entries(&self) -> Result<Vec<ProgramEntry>, GuardFileError> {
        let Some(item) = self.document.get(PROGRAM) else { return Ok(Vec::new()) };
        let tables = item.as_array_of_tables().ok_or_else(|| kind("program", "list of `[[program]]`"))?;
        let mut entries: Vec<ProgramEntry> = Vec::new();
        for (place, table) in tables.iter().enumerate() {
            let entry = entry(table, place.saturating_add(1))?;
            let is_same = |known: &ProgramEntry| {
                (&known.program, &known.arguments, &known.gpu)
                    == (&entry.program, &entry.arguments, &entry.gpu)
            };
            if entries.iter().any(is_same) {
                return Err(GuardFileError::Twice(format!("{} on {}", entry.command(), entry.gpu)));
            }
            entries.push(entry);
        }
        Ok(entries)
    }

    pub(crate) fn set_entries(&mut self, entries: Vec<ProgramEntry>) {
        self.entries = entries;
    }
}

/// The text of a new file.
const HEAD: &str = "\
# What programs take of a GPU's memory, held by `blockyard guard`. Sizes are bytes.
version = 1
";

fn kind(place: &str, kind: &str) -> GuardFileError {
    GuardFileError::Kind { place: format!("`{place}`"), kind: kind.to_owned() }
}

/// Reads the values of one table, and names the place in errors.
struct Fields<'a> {
    table: &'a dyn TableLike,
    place: String,
}

impl<'a> Fields<'a> {
    fn wrong(&self, key: &str, kind: &str) -> GuardFileError {
        GuardFileError::Kind { place: format!("`{key}` of {}", self.place), kind: kind.to_owned() }
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, GuardFileError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        item.as_str().map(Some).ok_or_else(|| self.wrong(key, "text in quotes"))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, GuardFileError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let number = item.as_integer().and_then(|number| u64::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.wrong(key, "whole number from 0 on"))
    }

    fn bytes(&self, key: &str) -> Result<Bytes, GuardFileError> {
        self.number(key)?.map(Bytes::new).ok_or_else(|| self.wrong(key, "whole number from 0 on"))
    }

    /// A size: bytes, or a text with a unit.
    fn size(&self, key: &str) -> Result<Option<Bytes>, GuardFileError> {
        let Some(item) = self.table.get(key) else { return Ok(None) };
        let Some(text) = item.as_str() else { return Ok(self.number(key)?.map(Bytes::new)) };
        parse_size(text).map(Some).map_err(|_error| self.wrong(key, "size such as \"60 GiB\""))
    }

    fn list(&self, key: &str) -> Result<Vec<&'a Value>, GuardFileError> {
        let Some(item) = self.table.get(key) else { return Ok(Vec::new()) };
        Ok(item.as_array().ok_or_else(|| self.wrong(key, "list"))?.iter().collect())
    }
}

fn entry(table: &Table, number: usize) -> Result<ProgramEntry, GuardFileError> {
    let place = format!("entry {number}");
    let fields = Fields { table, place };
    let program = fields.text(PROGRAM)?.ok_or(GuardFileError::NoProgram(number))?.to_owned();
    let arguments = fields.list("arguments")?.into_iter().map(|value| value.as_str().map(str::to_owned));
    let arguments: Option<Vec<String>> = arguments.collect();
    let tolerance = match (fields.text("tolerance"), fields.number("tolerance")) {
        (_, Ok(Some(bytes))) => Tolerance::Bytes(Bytes::new(bytes)),
        (Ok(Some(text)), _) => text.parse().map_err(|_error| {
            fields.wrong("tolerance", "share such as \"1%\" or a size such as \"64 MiB\"")
        })?,
        (Ok(None), _) => Tolerance::default(),
        (Err(error), _) => return Err(error),
    };
    let steps = fields.number("steps")?.map(u32::try_from).transpose();
    let steps = steps.ok().filter(|steps| *steps != Some(0));
    let lines = fields.number("lines")?.map_or(Ok(ProgramEntry::LINES), usize::try_from);
    let baseline = match table.get(BASELINE) {
        None => None,
        Some(item) => {
            let table = item.as_table_like().ok_or_else(|| fields.wrong(BASELINE, "table"))?;
            Some(baseline(&Fields { table, place: format!("the baseline of {program}") })?)
        }
    };
    Ok(ProgramEntry {
        arguments: arguments.ok_or_else(|| fields.wrong("arguments", "list of texts in quotes"))?,
        gpu: fields.text("gpu")?.unwrap_or(ProgramEntry::GPU).to_owned(),
        iterations: steps.ok_or_else(|| fields.wrong("steps", "whole number from 1 on"))?,
        conf: fields.text("conf")?.map(str::to_owned),
        budget: fields.size("budget")?,
        tolerance,
        lines: lines.map_err(|_error| fields.wrong("lines", "whole number from 0 on"))?,
        baseline,
        program,
    })
}

fn baseline(fields: &Fields<'_>) -> Result<Baseline, GuardFileError> {
    let steps = fields.list("peak_by_step")?.into_iter().map(Value::as_integer);
    let steps = steps.map(|bytes| bytes.and_then(|bytes| u64::try_from(bytes).ok()).map(Bytes::new));
    let steps: Option<Vec<Bytes>> = steps.collect();
    let mut holders = Vec::new();
    for value in fields.list("holders")? {
        let table = value.as_inline_table().ok_or_else(|| fields.wrong("holders", "list of tables"))?;
        holders.push(holder(&Fields { table, place: format!("a holder of {}", fields.place) })?);
    }
    let is_exact = match fields.table.get("exact") {
        None => true,
        Some(item) => item.as_bool().ok_or_else(|| fields.wrong("exact", "true or false"))?,
    };
    Ok(Baseline {
        torch: fields.text("torch")?.unwrap_or_default().to_owned(),
        is_exact,
        peak_allocated: fields.bytes("peak_allocated")?,
        peak_reserved: fields.bytes("peak_reserved")?,
        iteration_peaks: steps.ok_or_else(|| fields.wrong("peak_by_step", "list of whole numbers"))?,
        holders,
        further: fields.number("further_lines")?.unwrap_or(0),
    })
}

fn holder(fields: &Fields<'_>) -> Result<GuardHolder, GuardFileError> {
    let text = |key| Ok::<_, GuardFileError>(fields.text(key)?.unwrap_or_default().to_owned());
    Ok(GuardHolder {
        bytes: fields.bytes("bytes")?,
        at: text("at")?,
        function: text("function")?,
        code: text("code")?,
    })
}

#[cfg(test)]
mod tests;
