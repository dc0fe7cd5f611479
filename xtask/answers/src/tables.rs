//! Tables of fields in the documents, each between two comments that name its type.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::WrittenFile;
use crate::fields::{Kind, Types};

const DOCUMENTS: [&str; 6] = [
    "docs/questions-json.md",
    "docs/snapshot-json.md",
    "docs/guard-json.md",
    "docs/dry-run-json.md",
    "docs/fit-json.md",
    "docs/programs-json.md",
];

/// The documents, with new tables.
pub(crate) fn files(types: &Types) -> Result<Vec<WrittenFile>> {
    let document = |path: &&str| {
        let text = std::fs::read_to_string(crate::root().join(path)).with_context(|| (*path).to_owned())?;
        Ok(WrittenFile { path: path.into(), text: with_tables(&text, types)? })
    };
    DOCUMENTS.iter().map(document).collect()
}

/// The document, in which the lines after each `<!-- fields of TYPE -->` are the table of that type.
fn with_tables(document: &str, types: &Types) -> Result<String> {
    let mut text = String::new();
    let mut shown = BTreeSet::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        text.push_str(line);
        text.push('\n');
        let name = line.strip_prefix("<!-- fields of ").and_then(|rest| rest.strip_suffix(" -->"));
        let Some(name) = name else { continue };
        shown.insert(name.to_owned());
        let mut rows = Vec::new();
        write_rows(types, name, "", &mut shown, &mut rows)?;
        text.push_str("| field | what it is |\n| --- | --- |\n");
        for (field, what) in rows {
            writeln!(text, "| `{field}` | {what} |")?;
        }
        lines
            .find(|line| *line == "<!-- end -->")
            .with_context(|| format!("the table of {name} has no end"))?;
        text.push_str("<!-- end -->\n");
    }
    Ok(text)
}

/// The rows of a type, with those of the types of its fields unless an earlier row has them.
fn write_rows(
    types: &Types,
    name: &str,
    before: &str,
    shown: &mut BTreeSet<String>,
    rows: &mut Vec<(String, String)>,
) -> Result<()> {
    let all = types.fields(name)?;
    for field in all.clone() {
        let end = if field.kind == Kind::Objects { "[]" } else { "" };
        let path = format!("{before}{}{end}", field.name);
        let words = field.of.as_deref().map(|of| types.words(of)).unwrap_or_default();
        let mut what = field.text.trim_end_matches('.').to_owned();
        if !words.is_empty() {
            let words: Vec<String> = words
                .iter()
                .map(|(word, text)| format!("`{word}` ({})", text.trim_end_matches('.')))
                .collect();
            write!(what, ": {}", words.join(", "))?;
        }
        let of = field.of.filter(|_| matches!(field.kind, Kind::Object | Kind::Objects));
        // The rows of settings have the fields of the run's own settings.
        let key = of.as_deref().map(|of| if of == "ComparedOutcome" { "SettingOutcome" } else { of });
        let is_same = match &of {
            Some(of) => types.fields(of)?.iter().all(|inner| all.contains(inner)),
            None => false,
        };
        let is_new = key.is_some_and(|key| shown.insert(key.to_owned())) && !is_same;
        if key.is_some() && !is_new {
            what.push_str("; its fields are above");
        }
        rows.push((path.clone(), what));
        if let Some(of) = of.filter(|_| is_new) {
            write_rows(types, &of, &format!("{path}."), shown, rows)?;
        }
    }
    Ok(())
}
