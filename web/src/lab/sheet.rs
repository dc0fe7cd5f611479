//! Tables of answers, for the page and for files.

use std::fmt::Write as _;

use blockyard_record::{Bytes, frame_text, grouped, own_caller, own_line, own_operator};

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// A call site by its stack, innermost frame first.
    Site(Vec<String>),
    Count(u64),
    Bytes(Bytes),
    /// A difference in bytes.
    Change(i64),
    /// An empty cell.
    Nothing,
}

/// A table: the names of its columns, and its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sheet {
    pub(crate) head: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<Cell>>,
}

impl Cell {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn is_number(&self) -> bool {
        !matches!(self, Self::Text(_) | Self::Site(_))
    }

    /// The cell as the page shows it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Site(stack) => site_text(stack),
            Self::Count(count) => grouped(*count),
            Self::Bytes(bytes) => bytes.to_string(),
            Self::Change(change) => {
                let sign = if *change < 0 { "-" } else { "+" };
                format!("{sign}{}", Bytes::new(change.unsigned_abs()))
            }
            Self::Nothing => "-".to_owned(),
        }
    }

    /// The exact bytes, or the whole stack, for cells whose [`Cell::shown`] is shortened.
    pub(crate) fn exact(&self) -> Option<String> {
        match self {
            Self::Site(stack) => Some(stack.join("\n")),
            Self::Bytes(bytes) => Some(format!("{} bytes", grouped(bytes.get()))),
            Self::Change(change) => Some(format!("{} bytes", crate::numbers::grouped_signed(*change))),
            _ => None,
        }
    }

    fn in_json(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Site(stack) => quoted(&stack.join(" < ")),
            Self::Nothing => "null".to_owned(),
            number => number.in_csv(),
        }
    }

    fn in_csv(&self) -> String {
        match self {
            Self::Text(text) => in_quotes(text),
            Self::Site(stack) => in_quotes(&stack.join(" < ")),
            Self::Count(count) => count.to_string(),
            Self::Bytes(bytes) => bytes.get().to_string(),
            Self::Change(change) => change.to_string(),
            Self::Nothing => String::new(),
        }
    }
}

impl Sheet {
    /// The table as JSON: an object for each row, sizes in bytes.
    pub(crate) fn to_json(&self) -> String {
        let rows: Vec<String> = self
            .rows
            .iter()
            .map(|row| {
                let cells = self.head.iter().zip(row);
                let cells = cells.map(|(name, cell)| format!("{}: {}", quoted(name), cell.in_json()));
                format!("  {{{}}}", cells.collect::<Vec<_>>().join(", "))
            })
            .collect();
        format!("[\n{}\n]\n", rows.join(",\n"))
    }

    /// The table as CSV, sizes in bytes.
    pub(crate) fn to_csv(&self) -> String {
        let mut text = self.head.join(",");
        text.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(Cell::in_csv).collect();
            let _ = writeln!(text, "{}", cells.join(","));
        }
        text
    }
}

/// A call site in a few words: the operator that is called, the program's own line, and the line that called
/// it.
fn site_text(stack: &[String]) -> String {
    let Some(line) = own_line(stack) else { return "no stack was recorded".to_owned() };
    let caller =
        own_caller(stack).map(|caller| format!(" \u{2039} {}", frame_text(caller))).unwrap_or_default();
    let operator = own_operator(stack).map(|operator| format!("{operator} in ")).unwrap_or_default();
    format!("{operator}{}{caller}", frame_text(line))
}

/// A text as a cell of CSV.
fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// A text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter < ' ' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_file_has_bytes_and_quotes() {
        let sheet = Sheet {
            head: vec!["settings", "peak"],
            rows: vec![
                vec![Cell::text("a:\"1\",b:2"), Cell::Bytes(Bytes::mib(2))],
                vec![Cell::Nothing, Cell::Change(-3)],
            ],
        };
        assert_eq!(sheet.to_csv(), "settings,peak\n\"a:\"\"1\"\",b:2\",2097152\n,-3\n");
        assert_eq!(
            sheet.to_json(),
            "[\n  {\"settings\": \"a:\\\"1\\\",b:2\", \"peak\": 2097152},\n  {\"settings\": null, \"peak\": -3}\n]\n"
        );
        assert_eq!(quoted("a\tb\\"), "\"a\\u0009b\\\\\"");
    }
}
