//! The classes of the Python package's answers.

use std::fmt::Write as _;

use anyhow::Result;

use crate::WrittenFile;
use crate::fields::{Field, Kind, Types};

/// A class of the package.
struct Class {
    name: &'static str,
    /// The type that the class reads, or several types whose fields are in one object.
    of: &'static [&'static str],
    /// Further sentences for a user of Python.
    says: &'static str,
    /// Fields that an answer of the package does not have.
    without: &'static [&'static str],
}

const fn class(name: &'static str, of: &'static [&'static str], says: &'static str) -> Class {
    Class { name, of, says, without: &[] }
}

/// The fields that have a simpler type in Python than in JSON: the class, the field, its type, and the
/// expression that reads it.
const SIMPLER: &[(&str, &str, &str, &str)] = &[
    (
        "Search",
        "front",
        "list[Outcome]",
        "[Outcome.of(read[\"settings\"][index]) for index in read[\"front\"]]",
    ),
    ("FitRun", "outside", "dict[str, int]", "_by_holder(read[\"outside\"])"),
    ("FitRank", "outside", "dict[str, int]", "_by_holder(read[\"outside\"])"),
    ("FitSite", "growth", "str | None", "read[\"growth\"] and read[\"growth\"][\"kind\"]"),
    ("FitOnGpu", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("Fit", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitMapOnGpu", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitMap", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitSettingsOnGpu", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitSettings", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitLayoutsOnGpu", "gpu", "str", "read[\"gpu\"][\"id\"]"),
    ("FitLayouts", "gpu", "str", "read[\"gpu\"][\"id\"]"),
];

fn simpler(class: &str, field: &str) -> Option<(&'static str, &'static str)> {
    let found = SIMPLER.iter().find(|(of, name, ..)| (*of, *name) == (class, field));
    found.map(|(_, _, kind, read)| (*kind, *read))
}

/// The classes of the package. A class comes after the classes that it names.
const CLASSES: &[Class] = &[
    class("Limit", &["LimitAnswer"], ""),
    class("FirstOom", &["OutOfMemoryRequest"], ""),
    class(
        "Outcome",
        &["ComparedOutcome"],
        "`fits` says whether the whole run fits, whatever the limit is; `depends_on_limit` whether the run \
         goes out of memory at one bound of the limit only.",
    ),
    class("WhatIf", &["WhatIfAnswer"], ""),
    class("Search", &["SearchAnswer"], "`front` has the outcomes themselves."),
    class("Change", &["ChangeAnswer"], ""),
    class("Autopsy", &["AutopsyAnswer"], ""),
    class("Finding", &["FindingAnswer"], ""),
    class("HoldingLine", &["HoldingLineAnswer"], ""),
    class("Verdict", &["VerdictAnswer"], ""),
    class("Bound", &["BoundAnswer"], ""),
    class("Growth", &["GrowingCallSiteAnswer"], ""),
    class("Leaks", &["LeaksAnswer"], "True where anything grows."),
    class("AllocatorOutcome", &["AllocatorRowAnswer"], ""),
    class("ComparedAllocators", &["AllocatorsAnswer"], ""),
    class("DiffTerm", &["PeakChangeAnswer"], ""),
    class("PeakDiff", &["PeakDiffAnswer"], ""),
    class("Diff", &["DiffAnswer"], "True where a peak changed."),
    class(
        "Certificate",
        &["CertificateAnswer"],
        "True where every placement, and everything else, is identical.",
    ),
    class("Holder", &["HolderAnswer"], "`stack` is the stack as a text, a line a frame."),
    class("Moment", &["MomentAnswer"], ""),
    // `Device.at` and `Device.verify` return the fields that are left out.
    Class { name: "Summary", of: &["DeviceAnswer"], says: "", without: &["at", "certificate"] },
    class("FitHolder", &["FitHolder"], ""),
    class("FitFailedRequest", &["FitFailedRequest"], ""),
    class("FitContradiction", &["FitContradiction"], ""),
    class("FitGrowth", &["FitGrowth"], ""),
    class(
        "FitRun",
        &["FitProbe"],
        "Where the program does not fit, the peaks are those until it ran out. `outside` has the bytes that nvidia-smi would show beside the peak \
         reserved, by holder.",
    ),
    class("FitRank", &["FitRank"], "`outside` has the bytes by holder."),
    class(
        "FitSite",
        &["FitSite"],
        "`growth` is the rule in a word: \"constant\", \"linear\" or \"quadratic\".",
    ),
    class("FitTriedSetting", &["FitTriedSetting"], ""),
    class("FitOnGpu", &["FitLargestOnGpu"], "`gpu` is the GPU's short name."),
    class(
        "Fit",
        &["FitLargestAnswer", "FitCall"],
        "The answer is about the first GPU, whose short name is `gpu`.",
    ),
    class("FitRow", &["FitMapRow"], ""),
    class("FitMapOnGpu", &["FitMapOnGpu"], "`gpu` is the GPU's short name."),
    class(
        "FitMap",
        &["FitMapAnswer", "FitCall"],
        "The rows are those of the first GPU, whose short name is `gpu`.",
    ),
    class("FitSetting", &["FitSetting"], "`fits` is None where `error` says why no replay was made."),
    class("FitSettingsOnGpu", &["FitSettingsOnGpu"], "`gpu` is the GPU's short name."),
    class(
        "FitSettings",
        &["FitSettingsAnswer", "FitCall"],
        "The answer is about the first GPU, whose short name is `gpu`.",
    ),
    class("FitLayout", &["FitLayout"], ""),
    class("FitLayoutsOnGpu", &["FitLayoutsOnGpu"], "`gpu` is the GPU's short name."),
    class(
        "FitLayouts",
        &["FitLayoutsAnswer", "FitCall"],
        "The answer is about the first GPU, whose short name is `gpu`.",
    ),
];

/// The class that reads a type; `None` if no class does.
fn class_of(of: &str) -> Option<&'static str> {
    // The row of the run's own settings is one without a first difference.
    let of = if of == "SettingOutcome" { "ComparedOutcome" } else { of };
    CLASSES.iter().find(|class| class.of == [of]).map(|class| class.name)
}

/// `crates/ends/wheel/python/blockyard/_answers.py`.
pub(crate) fn file(types: &Types) -> Result<WrittenFile> {
    let mut text = String::from(
        "\"\"\"What questions are answered with: dataclasses that read as sentences.\n\n\
         Sizes are bytes, requests and steps are counted from 1. `to_dict()` is the answer as the command prints it with `--json`.\n\n\
         `cargo xtask update answers` writes this file from the types of crates/base/answers; sentences are in `_sentences`.\n\
         \"\"\"\n\n\
         import dataclasses\n\
         from collections.abc import Callable\n\
         from typing import Any, TypeVar\n\n\
         from blockyard import _sentences\n\
         from blockyard._sentences import Answer as Answer\n\
         from blockyard._sentences import size as size\n\n\
         T = TypeVar(\"T\")\n\n\n\
         def _unless_none(of: Callable[[Any], T], raw: Any) -> T | None:\n    \
             return None if raw is None else of(raw)\n\n\n\
         def _by_holder(rows: list[dict[str, Any]]) -> dict[str, int]:\n    \
             return {row[\"what\"]: row[\"bytes\"] for row in rows}\n",
    );
    for class in CLASSES {
        write_class(&mut text, class, types)?;
    }
    Ok(WrittenFile { path: "crates/ends/wheel/python/blockyard/_answers.py".into(), text })
}

fn write_class(text: &mut String, class: &Class, types: &Types) -> Result<()> {
    let Class { name, of, says, without } = class;
    let mut fields = Vec::new();
    for of in *of {
        fields.extend(types.fields(of)?);
    }
    fields.retain(|field| !without.contains(&field.name.as_str()));
    let about = of.first().map(|of| types.text(of)).transpose()?.unwrap_or_default();
    let about = [about, (*says).to_owned()].join(" ");
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
        "\n    @classmethod\n    def of(cls, raw: dict[str, Any]) -> \"{name}\":\n        read = \
         cls.newest(raw)\n        return cls(\n            raw,\n"
    )?;
    for field in &fields {
        writeln!(text, "            {},", read(name, field))?;
    }
    text.push_str("        )\n");
    Ok(())
}

fn python_type(class: &str, field: &Field) -> String {
    if let Some((kind, _)) = simpler(class, &field.name) {
        return kind.to_owned();
    }
    let of = field.of.as_deref().and_then(class_of);
    let plain = match field.kind {
        Kind::Integer => "int",
        Kind::Number => "float",
        Kind::Text => "str",
        Kind::Bool => "bool",
        Kind::Object => of.unwrap_or("dict[str, Any]"),
        Kind::Sizes => "dict[str, int]",
        Kind::Texts => "list[str]",
        Kind::Integers => "list[int]",
        Kind::Objects => match of {
            Some(of) => return format!("list[{of}]"),
            None => "list[dict[str, Any]]",
        },
        Kind::Rows => "list[list[int]]",
        Kind::Any => "Any",
    };
    // An absent list is read as an empty list, and an absent sentence is made by the package.
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
    if let Some((_, read)) = simpler(class, name) {
        return read.to_owned();
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
        (_, _) => {
            format!("read.get(\"{name}\")")
        }
    }
}
