//! `memory.toml`, written again. Comments and the person's own keys stay.

use std::fmt;

use blockyard_answers::GuardHolder;
use blockyard_record::Bytes;
use blockyard_workload::parse_size;
use toml_edit::{Array, ArrayOfTables, InlineTable, Item, Table, Value, value};

use super::file::{BASELINE, PROGRAM, VERSION};
use super::{Baseline, GuardFile, GuardFileError, ProgramEntry, Tolerance};

impl fmt::Display for GuardFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.document.fmt(f)
    }
}

impl GuardFile {
    /// Replaces the entry with the same program, arguments and GPU, or adds the entry at the end. A person's
    /// own keys stay, and so does each value that means the same.
    ///
    /// # Errors
    ///
    /// [`GuardFileError`] if `program` is not a list of tables; then the file does not change.
    pub fn set(&mut self, entry: &ProgramEntry) -> Result<(), GuardFileError> {
        let is_same = |known: &ProgramEntry| {
            (&known.program, &known.arguments, &known.gpu) == (&entry.program, &entry.arguments, &entry.gpu)
        };
        let place = self.entries().iter().position(is_same);
        let known = place.and_then(|place| self.entries().get(place)).cloned();
        if !self.document.contains_key("version") {
            self.document.insert("version", value(VERSION));
        }
        let item = self.document.entry(PROGRAM).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        let tables = item.as_array_of_tables_mut().ok_or_else(|| GuardFileError::Kind {
            place: "`program`".to_owned(),
            kind: "list of `[[program]]`".to_owned(),
        })?;
        let place = place.unwrap_or(tables.len());
        if place >= tables.len() {
            tables.push(Table::new());
        }
        if let Some(table) = tables.get_mut(place) {
            write_terms(table, entry, known.as_ref());
            if let Some(baseline) = &entry.baseline {
                write_baseline(table, baseline);
            }
        }
        let entries = self.read_entries()?;
        self.set_entries(entries);
        Ok(())
    }
}

/// Writes the terms of the entry; a value that the file already has in other words is left as it is written.
fn write_terms(table: &mut Table, entry: &ProgramEntry, known: Option<&ProgramEntry>) {
    let is_new = known.is_none();
    if is_new {
        table.insert(PROGRAM, value(&entry.program));
        if !entry.arguments.is_empty() {
            table.insert("arguments", value(entry.arguments.iter().collect::<Array>()));
        }
        table.insert("gpu", value(&entry.gpu));
    }
    let known = known.cloned().unwrap_or_default();
    if let Some(steps) = entry.iterations.filter(|_| is_new || known.iterations != entry.iterations) {
        put(table, "steps", value(i64::from(steps)));
    }
    if let Some(conf) = entry.conf.as_ref().filter(|_| is_new || known.conf != entry.conf) {
        put(table, "conf", value(conf));
    }
    if let Some(budget) = entry.budget.filter(|_| is_new || known.budget != entry.budget) {
        put(table, "budget", size(budget));
    }
    if is_new || known.tolerance != entry.tolerance {
        let tolerance = match entry.tolerance {
            Tolerance::Bytes(bytes) => size(bytes),
            share @ Tolerance::Share(_) => value(share.to_string()),
        };
        put(table, "tolerance", tolerance);
    }
}

/// Replaces the value of a key, and keeps the comments of the key.
fn put(table: &mut Table, key: &str, item: Item) {
    match table.get_mut(key) {
        Some(place) => *place = item,
        None => drop(table.insert(key, item)),
    }
}

/// A size as a person writes it, if that text is the same number of bytes; else the number of bytes.
fn size(bytes: Bytes) -> Item {
    let text = bytes.to_string();
    match parse_size(&text) {
        Ok(read) if read == bytes => value(text),
        _ => self::bytes(bytes),
    }
}

/// A number of bytes, with a comment for people.
fn bytes(size: Bytes) -> Item {
    let mut number = number(size);
    number.decor_mut().set_suffix(comment(size));
    Item::Value(number)
}

/// The largest number of a file.
fn number(size: Bytes) -> Value {
    Value::from(i64::try_from(size.get()).unwrap_or(i64::MAX))
}

fn comment(size: Bytes) -> String {
    format!("  # {size}")
}

fn write_baseline(table: &mut Table, baseline: &Baseline) {
    let is_table = table.get(BASELINE).is_some_and(Item::is_table);
    if !is_table {
        let mut new = Table::new();
        new.decor_mut()
            .set_prefix("\n# What the program took; `blockyard guard --update` writes this table.\n");
        table.insert(BASELINE, Item::Table(new));
    }
    let Some(own) = table.get_mut(BASELINE).and_then(Item::as_table_mut) else { return };
    put(own, "torch", value(&baseline.torch));
    put(own, "exact", value(baseline.is_exact));
    put(own, "peak_allocated", bytes(baseline.peak_allocated));
    put(own, "peak_reserved", bytes(baseline.peak_reserved));
    if baseline.iteration_peaks.is_empty() {
        own.remove("peak_by_step");
    } else {
        let rows = baseline.iteration_peaks.iter().map(|size| (number(*size), comment(*size)));
        put(own, "peak_by_step", list(rows));
    }
    let rows = baseline.holders.iter().map(|row| (Value::InlineTable(holder(row)), comment(row.bytes)));
    put(own, "holders", list(rows));
    let listed = baseline.holders.iter().map(|holder| holder.bytes).sum::<Bytes>();
    put(own, "further_lines", value(i64::try_from(baseline.further).unwrap_or(i64::MAX)));
    // The rest is negative where the lines hold blocks that wait for another stream: PyTorch does not count
    // these as allocated.
    let rest = i128::from(baseline.peak_allocated.get()).saturating_sub(i128::from(listed.get()));
    let rest = i64::try_from(rest).unwrap_or(i64::MAX);
    let mut rest_value = Value::from(rest);
    if let Ok(size) = u64::try_from(rest) {
        rest_value.decor_mut().set_suffix(comment(Bytes::new(size)));
    }
    put(own, "everything_else", Item::Value(rest_value));
}

fn holder(holder: &GuardHolder) -> InlineTable {
    let mut table = InlineTable::new();
    table.insert("bytes", number(holder.bytes));
    table.insert("at", holder.at.as_str().into());
    for (key, text) in [("function", &holder.function), ("code", &holder.code)] {
        if !text.is_empty() {
            table.insert(key, text.into());
        }
    }
    table
}

/// A list with a value in each line, and a comment after each.
fn list(rows: impl Iterator<Item = (Value, String)>) -> Item {
    let mut array = Array::new();
    let mut before = String::new();
    for (mut row, comment) in rows {
        row.decor_mut().set_prefix(format!("{before}\n    "));
        array.push_formatted(row);
        before = comment;
    }
    if !array.is_empty() {
        array.set_trailing_comma(true);
        array.set_trailing(format!("{before}\n"));
    }
    Item::Value(Value::Array(array))
}
