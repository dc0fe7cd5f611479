//! The classes of the Python package's answers.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;

use crate::WrittenFile;
use crate::fields::{Field, Kind, Types};

/// A class of the package.
struct Class {
    name: &'static str,
    /// The type that the class reads, or several types whose fields are in one object.
    of: &'static [&'static str],
    /// The classes that the class inherits from. Fields that one of them has are not written again.
    bases: &'static [&'static str],
    /// Further sentences for a user of Python.
    says: &'static str,
    /// Fields that an answer of the package does not have.
    without: &'static [&'static str],
}

const fn class(name: &'static str, of: &'static [&'static str], says: &'static str) -> Class {
    Class { name, of, bases: &[], says, without: &[] }
}

impl Class {
    /// The class with these base classes.
    const fn from(self, bases: &'static [&'static str]) -> Self {
        Self { bases, ..self }
    }

    /// The class without these fields.
    const fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }
}

/// The fields that have a simpler type in Python than in JSON: the class, the field, its type, and a name in
/// `_answer.py`. The name says how the value is read, where the type does not say it.
const SIMPLER: &[(&str, &str, &str, Option<&str>)] = &[
    ("Search", "front", "list[Outcome]", None),
    ("Change", "kind", "str", Some("WORD")),
    ("FitPeaks", "outside", "dict[str, int]", Some("BY_HOLDER")),
    ("FitSite", "growth", "str | None", Some("KIND")),
    ("FitConditions", "gpu", "str", Some("ID")),
    ("AddressRange", "allocated", "tuple[int, int]", Some("BOUNDS")),
    ("AddressRange", "reserved", "tuple[int, int]", Some("BOUNDS")),
    ("AddressRange", "allocated_at_end", "tuple[int, int]", Some("BOUNDS")),
    ("DeviceOutside", "parts", "dict[str, int]", Some("BY_HOLDER")),
    ("GuardReport", "failures", "list[str]", Some("KINDS")),
];

fn simpler(class: &str, field: &str) -> Option<(&'static str, Option<&'static str>)> {
    let found = SIMPLER.iter().find(|(of, name, ..)| (*of, *name) == (class, field));
    found.map(|(_, _, kind, read)| (*kind, *read))
}

/// The classes of the package. A class comes after the classes that it names.
const CLASSES: &[Class] = &[
    class("Limit", &["Limit"], ""),
    class("FirstOom", &["FirstOom"], ""),
    class(
        "Outcome",
        &["ComparedOutcome"],
        "`fits` says whether the whole run fits, whatever the limit is; `depends_on_limit` whether the run \
         goes out of memory at one bound of the limit only.",
    )
    .from(&["_answer.OutcomeBase"]),
    class("WhatIf", &["WhatIfAnswer"], ""),
    class("Search", &["SearchAnswer"], "`front` has the outcomes themselves.")
        .from(&["_answer.SearchBase"]),
    // Before its users: Python reads annotations as it makes a class.
    class("GapOutcome", &["GapOutcome"], ""),
    class("Change", &["Change"], "`value` has what is set or freed.").from(&["_answer.ChangeBase"]),
    class("Autopsy", &["AutopsyAnswer"], "").from(&["_answer.AutopsyBase"]),
    class("Finding", &["Finding"], ""),
    class("HoldingLine", &["HoldingLine"], ""),
    class("GapParts", &["GapParts"], ""),
    class("GapAtMoment", &["GapAtMoment"], ""),
    class("GapRemedy", &["GapRemedy"], ""),
    class("Gap", &["Gap"], ""),
    class("CodeFix", &["CodeFix"], ""),
    class("Verdict", &["VerdictAnswer"], ""),
    class("Bound", &["BoundAnswer"], ""),
    class("Growth", &["GrowingCallSite"], ""),
    class("Leaks", &["LeaksAnswer"], "True where anything grows.").from(&["_answer.LeaksBase"]),
    class("AllocatorOutcome", &["AllocatorRow"], ""),
    class("ComparedAllocators", &["AllocatorsAnswer"], ""),
    class("DiffTerm", &["PeakChange"], ""),
    class("PeakDiff", &["PeakDiff"], ""),
    class("Diff", &["DiffAnswer"], "True where a peak changed.").from(&["_answer.DiffBase"]),
    class(
        "Certificate",
        &["CertificateAnswer"],
        "True where every placement, and everything else, is identical.",
    )
    .from(&["_answer.CertificateBase"]),
    class("Holder", &["HolderAnswer"], "`stack` is the stack as a text, a line a frame.")
        .from(&["_answer.HolderBase"]),
    class("Moment", &["MomentAnswer"], ""),
    // `Device.at` and `Device.verify` return the fields that are left out.
    class("Summary", &["DeviceAnswer"], "").without(&["at", "certificate"]),
    class("FitCall", &["FitCall"], ""),
    class("FitConditions", &["FitConditions"], "`gpu` is the GPU's short name."),
    class("FitHolder", &["FitHolder"], ""),
    class("FitFailedRequest", &["FitFailedRequest"], ""),
    class("FitContradiction", &["FitContradiction"], ""),
    class("FitGrowth", &["FitGrowth"], ""),
    class("FitPeaks", &["FitPeaks"], "`outside` has the bytes by holder."),
    class(
        "FitRun",
        &["FitRun"],
        "Where the program does not fit, the peaks are those until it ran out. `outside` has the bytes that nvidia-smi would show beside the peak \
         reserved, by holder.",
    )
    .from(&["FitPeaks"]),
    class("FitRank", &["FitRank"], "`outside` has the bytes by holder.").from(&["FitPeaks"]),
    class(
        "FitSite",
        &["FitSite"],
        "`growth` is the rule in a word: \"constant\", \"linear\" or \"quadratic\".",
    ),
    class("FitTriedSetting", &["FitTriedSetting"], ""),
    class("FitOnGpu", &["FitLargestOnGpu"], "").from(&["FitConditions"]),
    class("Fit", &["FitLargestAnswer", "FitCall"], FIRST_GPU).from(&["FitOnGpu", "FitCall"]),
    class("FitRow", &["FitMapRow"], ""),
    class("FitMapOnGpu", &["FitMapOnGpu"], "").from(&["FitConditions"]),
    class("FitMap", &["FitMapAnswer", "FitCall"], FIRST_GPU).from(&["FitMapOnGpu", "FitCall"]),
    class("FitSetting", &["FitSetting"], "`fits` is None where `error` says why no replay was made."),
    class("FitSettingsOnGpu", &["FitSettingsOnGpu"], "").from(&["FitConditions"]),
    class("FitSettings", &["FitSettingsAnswer", "FitCall"], FIRST_GPU)
        .from(&["FitSettingsOnGpu", "FitCall"]),
    class("FitLayout", &["FitLayout"], ""),
    class("FitLayoutsOnGpu", &["FitLayoutsOnGpu"], "").from(&["FitConditions"]),
    class("FitLayouts", &["FitLayoutsAnswer", "FitCall"], FIRST_GPU).from(&["FitLayoutsOnGpu", "FitCall"]),
    class("Line", &["ProgramLine"], ""),
    class("PrintedLine", &["DryRunLine"], ""),
    class("DevicePeak", &["DryRunPeaks"], ""),
    class("StepPeak", &["DryRunStep"], ""),
    class("PeakHolder", &["DryRunHolder"], ""),
    class("GpuFit", &["DryRunGpu"], ""),
    class("AddressRange", &["DeviceRange"], "Each is the least and the most of all runs."),
    class("AddressOrders", &["DryRunOrders"], ""),
    class("ReplayedOrders", &["DryRunAddresses"], ""),
    class("DryRunNote", &["DryRunEstimateNote"], ""),
    class("ChildPeak", &["DryRunChild"], ""),
    class("DeviceOutside", &["DryRunNonPytorch"], "`parts` has the bytes by holder."),
    // The package runs programs of one process.
    class("DryRunReport", &["DryRunAnswer"], "").without(&[
        "rank",
        "local_rank",
        "world_size",
        "failed_rank",
        "interrupted",
        "ranks",
    ]),
    class("GuardRow", &["GuardRow"], ""),
    // `Guard.run` has the dry run.
    class("GuardReport", &["GuardedProgram"], "").without(&["dry_run"]),
    class("ProgramReport", &["ProgramAnswer"], ""),
];

/// Classes that only other classes name.
const HIDDEN: [&str; 6] =
    ["FitCall", "FitConditions", "FitPeaks", "DryRunReport", "GuardReport", "ProgramReport"];

/// What the answers of `fit` have in common.
const FIRST_GPU: &str = "The answer is about the first GPU, whose short name is `gpu`.";

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
         `cargo xtask update answers` writes this file from the types of crates/base/answers.\n\
         `_answer` says how JSON is read, and `_sentences` how answers read.\n\
         \"\"\"\n\n\
         import dataclasses\n\
         from typing import Any\n\n\
         from blockyard import _answer\n\n\
         __all__ = [\n",
    );
    let shown = CLASSES.iter().map(|class| class.name).filter(|name| !HIDDEN.contains(name));
    let shown: BTreeSet<&str> = shown.collect();
    for name in shown {
        writeln!(text, "    \"{name}\",")?;
    }
    text.push_str("]\n");
    for class in CLASSES {
        write_class(&mut text, class, types)?;
    }
    Ok(WrittenFile { path: "crates/ends/wheel/python/blockyard/_answers.py".into(), text })
}

/// The fields of a class with those of its base classes.
fn all_fields(class: &Class, types: &Types) -> Result<Vec<Field>> {
    let mut fields = Vec::new();
    for of in class.of {
        fields.extend(types.fields(of)?);
    }
    fields.retain(|field| !class.without.contains(&field.name.as_str()));
    Ok(fields)
}

fn write_class(text: &mut String, class: &Class, types: &Types) -> Result<()> {
    let Class { name, of, bases, says, .. } = class;
    let mut fields = all_fields(class, types)?;
    for base in CLASSES.iter().filter(|base| bases.contains(&base.name)) {
        let inherited = all_fields(base, types)?;
        fields.retain(|field| inherited.iter().all(|other| other.name != field.name));
    }
    let about = of.first().map(|of| types.text(of)).transpose()?.unwrap_or_default();
    let about = [about, (*says).to_owned()].join(" ");
    let bases = if bases.is_empty() { "_answer.Answer".to_owned() } else { bases.join(", ") };
    write!(
        text,
        "\n\n@dataclasses.dataclass(frozen=True, repr=False)\nclass {name}({bases}):\n    \"\"\"{}\"\"\"\n\n",
        about.trim()
    )?;
    for field in &fields {
        let read = simpler(name, &field.name).and_then(|(_, read)| read);
        let read =
            read.map(|read| format!(" = dataclasses.field(metadata=_answer.{read})")).unwrap_or_default();
        let kind = python_type(name, field);
        writeln!(text, "    {}: {kind}{read}\n    \"\"\"{}\"\"\"", field.name, field.text)?;
    }
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
