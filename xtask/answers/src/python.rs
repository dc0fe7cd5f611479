//! The classes of the Python package's answers.

use std::fmt::Write as _;

use anyhow::Result;

use crate::WrittenFile;
use crate::fields::{Field, Kind, Types};

/// A class of the package.
struct Class {
    name: &'static str,
    /// The type that it reads.
    of: &'static str,
    /// What a user of Python must also know.
    says: &'static str,
    /// Fields that an answer of the package does not have.
    without: &'static [&'static str],
}

const fn class(name: &'static str, of: &'static str, says: &'static str) -> Class {
    Class { name, of, says, without: &[] }
}

/// A class comes after those that it names.
const CLASSES: &[Class] = &[
    class("Limit", "LimitAnswer", ""),
    class("FirstOom", "OutOfMemoryRequest", ""),
    class(
        "Outcome",
        "ComparedOutcome",
        "`fits` says whether the whole run fits, whatever the limit is; `depends_on_limit` whether the run goes out of memory at one bound of the limit only.",
    ),
    class("WhatIf", "WhatIfAnswer", ""),
    class("Search", "SearchAnswer", "`front` has the outcomes themselves."),
    class("Change", "ReplayedChange", ""),
    class("Autopsy", "AutopsyAnswer", ""),
    class("Finding", "VerdictSentence", ""),
    class("HoldingLine", "HoldingLineAnswer", ""),
    class("Verdict", "VerdictAnswer", ""),
    class("Bound", "BoundAnswer", ""),
    class("Growth", "GrowingSite", ""),
    class("Leaks", "LeaksAnswer", "True where anything grows."),
    class("AllocatorOutcome", "AllocatorOutcome", ""),
    class("ComparedAllocators", "AllocatorsAnswer", ""),
    class("DiffTerm", "DiffTerm", ""),
    class("PeakDiff", "PeakComparison", ""),
    class("Diff", "DiffAnswer", "True where a peak changed."),
    class(
        "Certificate",
        "CertificateAnswer",
        "True where every placement, and everything else, is identical.",
    ),
    class("Holder", "HolderAnswer", "`stack` is the stack as a text, a line a frame."),
    class("Moment", "MomentAnswer", ""),
    // `Device.at` and `Device.verify` answer these.
    Class { name: "Summary", of: "DeviceAnswer", says: "", without: &["at", "certificate"] },
];

/// The classes that read a type.
fn class_of(of: &str) -> Option<&'static str> {
    // The row of the run's own settings is one without a first difference.
    let of = if of == "SettingOutcome" { "ComparedOutcome" } else { of };
    CLASSES.iter().find(|class| class.of == of).map(|class| class.name)
}

/// `crates/wheel/python/blockyard/_answers.py`.
pub(crate) fn file(types: &Types) -> Result<WrittenFile> {
    let mut text = String::from(
        "\"\"\"What questions are answered with: dataclasses that read as sentences.\n\n\
         Sizes are bytes, requests and steps are counted from 1. `to_dict()` is the answer as the command prints it with `--json`.\n\n\
         `cargo xtask update answers` writes this file from the types of crates/answers; sentences are in `_sentences`.\n\
         \"\"\"\n\n\
         import dataclasses\n\
         from collections.abc import Callable\n\
         from typing import Any, TypeVar\n\n\
         from blockyard import _sentences\n\
         from blockyard._sentences import Answer as Answer\n\
         from blockyard._sentences import size as size\n\n\
         T = TypeVar(\"T\")\n\n\n\
         def _unless_none(of: Callable[[Any], T], raw: Any) -> T | None:\n    \
             return None if raw is None else of(raw)\n",
    );
    for class in CLASSES {
        write_class(&mut text, class, types)?;
    }
    Ok(WrittenFile { path: "crates/wheel/python/blockyard/_answers.py".into(), text })
}

fn write_class(text: &mut String, class: &Class, types: &Types) -> Result<()> {
    let Class { name, of, says, without } = class;
    let mut fields = types.fields(of)?;
    fields.retain(|field| !without.contains(&field.name.as_str()));
    let about = [types.text(of)?, (*says).to_owned()].join(" ");
    write!(
        text,
        "\n\n@dataclasses.dataclass(frozen=True, repr=False)\nclass {name}(_sentences.{name}Sentence):\n    \"\"\"{}\"\"\"\n\n",
        about.trim()
    )?;
    for field in &fields {
        writeln!(text, "    {}: {}\n    \"\"\"{}\"\"\"", field.name, python_type(name, field), field.text)?;
    }
    write!(
        text,
        "\n    @classmethod\n    def of(cls, raw: dict[str, Any]) -> \"{name}\":\n        read = cls.newest(raw)\n        return cls(\n            raw,\n"
    )?;
    for field in &fields {
        writeln!(text, "            {},", read(name, field))?;
    }
    text.push_str("        )\n");
    Ok(())
}

fn python_type(class: &str, field: &Field) -> String {
    if (class, field.name.as_str()) == ("Search", "front") {
        return "list[Outcome]".to_owned();
    }
    let of = field.of.as_deref().and_then(class_of);
    let plain = match field.kind {
        Kind::Integer => "int",
        Kind::Number => "float",
        Kind::Text => "str",
        Kind::Bool => "bool",
        Kind::Object => of.unwrap_or("dict[str, Any]"),
        Kind::Texts => "list[str]",
        Kind::Integers => "list[int]",
        Kind::Objects => match of {
            Some(of) => return format!("list[{of}]"),
            None => "list[dict[str, Any]]",
        },
        Kind::Rows => "list[list[int]]",
        Kind::Any => "Any",
    };
    // A list that is absent is an empty one, and an answer without a sentence gets one.
    let is_filled = field.name == "sentence";
    let is_list = matches!(field.kind, Kind::Texts | Kind::Integers | Kind::Objects | Kind::Rows);
    if field.is_optional && field.kind != Kind::Any && !is_list && !is_filled {
        format!("{plain} | None")
    } else {
        plain.to_owned()
    }
}

fn read(class: &str, field: &Field) -> String {
    let name = &field.name;
    if (class, name.as_str()) == ("Search", "front") {
        return "[Outcome.of(read[\"settings\"][index]) for index in read[\"front\"]]".to_owned();
    }
    let of = field.of.as_deref().and_then(class_of);
    match (field.kind, of) {
        (Kind::Object, Some(of)) if field.is_optional => {
            format!("_unless_none({of}.of, read.get(\"{name}\"))")
        }
        (Kind::Object, Some(of)) => format!("{of}.of(read[\"{name}\"])"),
        (Kind::Objects, Some(of)) => format!("[{of}.of(row) for row in read.get(\"{name}\") or []]"),
        (Kind::Texts | Kind::Integers | Kind::Objects | Kind::Rows, _) => {
            format!("read.get(\"{name}\") or []")
        }
        (Kind::Integer | Kind::Number | Kind::Text | Kind::Bool | Kind::Object | Kind::Any, _) => {
            format!("read.get(\"{name}\")")
        }
    }
}
