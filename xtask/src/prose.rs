//! `cargo xtask prose`: lines of documents that are too long.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::workspace::Workspace;

/// The longest line of a document, as `max_width` of rustfmt.toml. Tables and code are not broken.
const MAX_COLUMNS: usize = 110;

/// Files that are not checked: records of their time, results that a command writes, and lessons, whose
/// paragraphs are lines.
const NOT_READ: [&str; 7] = [
    "docs/releases.md",
    "docs/benchmarks/",
    "docs/speed.md",
    "CHANGELOG.md",
    "web/lessons/",
    "web/src/view/teach/make_lesson/",
    "tests/",
];

/// Checks the lines of the repository's documents.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let mut found = Vec::new();
    for name in workspace.listed_files()? {
        if Path::new(&name).extension() != Some("md".as_ref())
            || NOT_READ.iter().any(|begin| name.starts_with(begin))
        {
            continue;
        }
        let Ok(text) = fs::read_to_string(workspace.root().join(&name)) else { continue };
        found.extend(long_lines(&text).into_iter().map(|number| format!("{name}:{number}")));
    }
    ensure!(found.is_empty(), "lines of more than {MAX_COLUMNS} columns:\n  {}", found.join("\n  "));
    Ok(())
}

/// The numbers of the lines that are too long.
fn long_lines(text: &str) -> Vec<usize> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for (number, line) in (1..).zip(text.lines()) {
        is_code ^= line.trim_start().starts_with("```");
        let is_broken = !is_code && !line.starts_with("    ") && !line.trim_start().starts_with('|');
        if is_broken && line.chars().count() > MAX_COLUMNS {
            found.push(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::long_lines;

    #[test]
    fn long_lines_are_found_and_tables_and_code_are_not() {
        let long = "word ".repeat(30);
        let text = format!("{long}\n| {long}\n    {long}\n```\n{long}\n```\nshort\n- {long}\n");
        assert_eq!(long_lines(&text), [1, 8]);
    }
}
