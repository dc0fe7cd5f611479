//! The tools: what each takes, and its answer, which is the command's.

use std::path::Path;

use anyhow::{Context, bail};
use blockyard_answers::{
    Answer, FitAnswer, QuestionKind, SearchAnswer, SettingOutcome, SettingResult, SnapshotAnswer,
    VerdictAnswer, WhatIfAnswer,
};
use clap::Parser;
use rmcp::handler::server::tool::schema_for_type;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::{self, JsonSchema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::call::ToolCall;
use super::folder::Folder;
use crate::fit::{self, FitOptions};
use crate::questions::{ask_file, parse};
use crate::snapshot::{self, SnapshotOptions};

/// A number of bytes, or a text with a unit: `"70 GiB"`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a size is a number of bytes or a text with a unit, as \"70 GiB\"")]
enum Size {
    Bytes(u64),
    Text(String),
}

#[derive(Debug, Deserialize, JsonSchema)]
struct OpenInput {
    /// A memory snapshot of PyTorch, below the server's folder.
    file: String,
    /// Only this device, by its number, or `host` for pinned host memory.
    device: Option<String>,
    /// Also say whether our allocator decides each placement as PyTorch did. This takes longer.
    #[serde(default)]
    certificate: bool,
    /// How many requests that ran out of memory are listed.
    #[serde(default = "ten")]
    top: usize,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct HoldersInput {
    /// A memory snapshot of PyTorch, below the server's folder.
    file: String,
    /// Only this device, by its number, or `host` for pinned host memory.
    device: Option<String>,
    /// The moment: `peak` of allocated memory, `oom` for the first request that ran out of memory, `request:5`
    /// for a request, or a number of events of the trace.
    #[serde(default = "peak")]
    at: String,
    /// How many of the stacks that hold most are listed.
    #[serde(default = "ten")]
    top: usize,
}

// A file with runs, and the conditions under which they are replayed. Clients would read a comment of the type.
#[derive(Debug, Deserialize, JsonSchema)]
struct RunInput {
    /// A snapshot, a recording or a workload's text, below the server's folder.
    file: String,
    /// The most that may be reserved, in the place of the limit that the file implies.
    limit: Option<Size>,
    /// The device's memory, in the place of that of the run's own device.
    total_memory: Option<Size>,
    /// The release of PyTorch whose rules hold, as `2.15`, in the place of the run's own.
    release: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct VerdictInput {
    #[serde(flatten)]
    run: RunInput,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`, in the place of the run's own.
    settings: Option<String>,
    /// How many lines that hold memory are listed, for each device.
    #[serde(default = "ten")]
    top: usize,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct WhatIfInput {
    #[serde(flatten)]
    run: RunInput,
    /// Settings to try, each as in `PYTORCH_CUDA_ALLOC_CONF`. Without any, the run's own.
    #[serde(default)]
    settings: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchInput {
    #[serde(flatten)]
    run: RunInput,
    /// Settings to try beside the usual ones, each as in `PYTORCH_CUDA_ALLOC_CONF`.
    #[serde(default)]
    settings: Vec<String>,
    /// List every setting that was tried, not only the best ones.
    #[serde(default)]
    all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FitInput {
    /// The program in Python, below the server's folder. It runs there, with all rights of the user.
    file: String,
    /// The options to vary: `batch-size=1..512` for the program's option `--batch-size`, `env:NAME=1..64` for a
    /// variable of its environment, `8..512:8` for multiples of 8, `1,2,4` for a list. With two options, the
    /// largest value of the first is searched for each value of the second. `conf=SETTINGS` names settings.
    vary: Vec<String>,
    /// The GPUs, as `h100`; without any, `h200`.
    #[serde(default)]
    gpu: Vec<String>,
    /// The most that may be reserved on each device; without it, the GPU's memory.
    limit: Option<Size>,
    /// Settings as in `PYTORCH_CUDA_ALLOC_CONF`.
    settings: Option<String>,
    /// End each run after this many steps of its first optimizer; without it, 3.
    steps: Option<u32>,
    /// The program's own arguments.
    #[serde(default)]
    arguments: Vec<String>,
}

const fn ten() -> usize {
    10
}

fn peak() -> String {
    "peak".to_owned()
}

/// The answers about the runs of a file: one for each device.
#[derive(Debug, Serialize, JsonSchema)]
struct RunAnswers<A> {
    /// One answer for each device of the file, the most telling device first.
    answers: Vec<RunAnswer<A>>,
    /// How many rows the answers leave out, because nobody asked for more.
    left_out: u64,
}

/// The answer about one run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunAnswer<A> {
    /// The version of the answers' JSON.
    version: u32,
    /// The file, relative to the server's folder.
    file: String,
    /// The name of the run: the file, with the device where the file has several.
    run: String,
    #[serde(flatten)]
    answer: A,
}

/// All tools.
pub(super) fn tools() -> Vec<Tool> {
    let reads = |tool: Tool| tool.with_annotations(ToolAnnotations::new().read_only(true).open_world(false));
    vec![
        reads(tool::<OpenInput, SnapshotAnswer>(
            "open",
            "What is in a memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot): its devices with their \
             peaks, events, segments and requests that ran out of memory, and its settings. Sizes are bytes.",
        )),
        reads(tool::<HoldersInput, SnapshotAnswer>(
            "holders",
            "Which stacks held the memory at a moment of a snapshot (`at.top` of each device), those first that \
             held most, and how the reserved bytes divide then.",
        )),
        reads(tool::<VerdictInput, RunAnswers<VerdictAnswer>>(
            "verdict",
            "What happened in a snapshot, a recording or a workload: whether it ran out of memory or leaks, \
             why, what held the memory, what helps and what does not. Settings that help are proved by replays; \
             changes of the code are estimates. Begin here.",
        )),
        reads(tool::<WhatIfInput, RunAnswers<WhatIfAnswer>>(
            "what_if",
            "The run replayed under other allocator settings, another limit or another release of PyTorch: \
             peaks, calls of the device, and whether it runs out of memory.",
        )),
        reads(tool::<SearchInput, RunAnswers<SearchAnswer>>(
            "search",
            "The run replayed under all sensible allocator settings and pairs of them: the best one, and those \
             that no other beats.",
        )),
        tool::<FitInput, FitAnswer>(
            "fit",
            "The largest value of a program's option (a batch size) that fits a GPU, by dry runs of the program \
             with the installed PyTorch and without a GPU. RUNS THE PROGRAM with all rights of the user. This \
             takes seconds to minutes.",
        )
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true)),
    ]
}

fn tool<I: JsonSchema + 'static, O: JsonSchema + 'static>(name: &'static str, what: &'static str) -> Tool {
    Tool::new(name, what, schema_for_type::<I>()).with_raw_output_schema(schema_for_type::<O>())
}

/// Whether there is a tool of this name.
pub(super) fn has_tool(name: &str) -> bool {
    tools().iter().any(|tool| tool.name == name)
}

/// The answer of a tool as JSON.
pub(super) fn answer(
    name: &str,
    arguments: JsonObject,
    folder: &Folder,
    python: &str,
    call: &ToolCall,
) -> anyhow::Result<Value> {
    match name {
        "open" => {
            let OpenInput { file, device, certificate, top } = input(arguments)?;
            let options = snapshot_options(device, None, 0, !certificate)?;
            opened(&folder.find(&file)?, &options, top, call)
        }
        "holders" => {
            let HoldersInput { file, device, at, top } = input(arguments)?;
            let options = snapshot_options(device, Some(&at), top, true)?;
            opened(&folder.find(&file)?, &options, top, call)
        }
        "verdict" => {
            let VerdictInput { run, settings, top } = input(arguments)?;
            asked(QuestionKind::Verdict, run, settings.as_slice(), folder, call, |answer| {
                let Answer::Verdict(verdict) = answer else { return 0 };
                let before = verdict.held.len();
                verdict.held.truncate(top);
                before - verdict.held.len()
            })
        }
        "what_if" => {
            let WhatIfInput { run, settings } = input(arguments)?;
            asked(QuestionKind::WhatIf, run, &settings, folder, call, |_| 0)
        }
        "search" => {
            let SearchInput { run, settings, all } = input(arguments)?;
            asked(QuestionKind::Search, run, &settings, folder, call, |answer| match answer {
                Answer::Search(search) if !all => keep_best(search),
                _ => 0,
            })
        }
        "fit" => {
            let input: FitInput = input(arguments)?;
            let file = folder.find(&input.file)?;
            if input.vary.is_empty() {
                bail!("`vary` names no option of the program");
            }
            let FitArguments { options } = parse("fit", &fit_arguments(&file, python, input))?;
            Ok(serde_json::to_value(fit::answer(&options, &options.question()?, call)?)?)
        }
        _ => bail!("there is no tool `{name}`"),
    }
}

fn input<I: DeserializeOwned + JsonSchema + 'static>(arguments: JsonObject) -> anyhow::Result<I> {
    let schema = schema_for_type::<I>();
    let known = schema.get("properties").and_then(Value::as_object);
    let known: Vec<&str> = known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect();
    if let Some(name) = arguments.keys().find(|name| !known.contains(&name.as_str())) {
        bail!("the tool has no argument `{name}`; its arguments are {}", known.join(", "));
    }
    serde_json::from_value(Value::Object(arguments)).context("the arguments of the tool")
}

fn snapshot_options(
    device: Option<String>,
    at: Option<&str>,
    top: usize,
    no_certificate: bool,
) -> anyhow::Result<SnapshotOptions> {
    Ok(SnapshotOptions {
        files: Vec::new(),
        device: device.map(|device| device.parse()).transpose()?,
        at: at.map(str::parse).transpose()?,
        top,
        no_certificate,
        json: true,
    })
}

/// What `blockyard snapshot --json` writes, with the first `top` failed requests of each device.
fn opened(file: &Path, options: &SnapshotOptions, top: usize, call: &ToolCall) -> anyhow::Result<Value> {
    let mut answer = snapshot::answer_file(file, options, &mut |progress| call.report(&progress))?;
    for device in answer.devices.iter_mut().chain(&mut answer.host) {
        if let Some(failed) = &mut device.oom_events {
            failed.truncate(top);
        }
    }
    Ok(serde_json::to_value(answer)?)
}

/// What a question writes with `--json` about each run of a file. `shorten` leaves rows out, and returns how
/// many.
fn asked(
    question: QuestionKind,
    run: RunInput,
    settings: &[String],
    folder: &Folder,
    call: &ToolCall,
    shorten: impl Fn(&mut Answer) -> usize,
) -> anyhow::Result<Value> {
    let file = folder.find(&run.file)?;
    let conditions = [
        ("limit", run.limit.map(size_text)),
        ("total-memory", run.total_memory.map(size_text)),
        ("release", run.release),
    ];
    let conditions = conditions.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?)));
    let options: Vec<String> =
        settings.iter().map(|conf| format!("--conf={conf}")).chain(conditions).collect();
    let mut answers = ask_file(&file, question, &options, &mut |progress| call.report(&progress))?;
    let left_out: usize = answers.iter_mut().map(|line| shorten(&mut line.answer)).sum();
    Ok(json!({ "answers": answers, "left_out": left_out }))
}

/// Keeps the settings of the front, the best one and those that are wrong. Returns how many others there were.
fn keep_best(search: &mut SearchAnswer) -> usize {
    let others = search.settings.iter().enumerate().filter(|(index, row)| {
        let is_named = search.best.as_ref() == Some(&row.conf);
        !search.front.contains(&(*index as u64))
            && (is_named || matches!(row.result, SettingResult::Failed { .. }))
    });
    let indices = search.front.iter().copied().chain(others.map(|(index, _)| index as u64));
    let row = |index: u64| search.settings.get(usize::try_from(index).ok()?).cloned();
    let kept: Vec<SettingOutcome> = indices.filter_map(row).collect();
    let left_out = search.settings.len() - kept.len();
    search.front = (0..search.front.len() as u64).collect();
    search.settings = kept;
    left_out
}

fn size_text(size: Size) -> String {
    match size {
        Size::Bytes(bytes) => bytes.to_string(),
        Size::Text(text) => text,
    }
}

/// The arguments of `blockyard fit`, as it reads them.
#[derive(Debug, Parser)]
struct FitArguments {
    #[command(flatten)]
    options: FitOptions,
}

fn fit_arguments(file: &Path, python: &str, input: FitInput) -> Vec<String> {
    let mut options = vec![format!("--python={python}")];
    options.extend(input.vary.iter().map(|vary| format!("--vary={vary}")));
    options.extend(input.gpu.iter().map(|gpu| format!("--gpu={gpu}")));
    options.extend(input.limit.map(|limit| format!("--limit={}", size_text(limit))));
    options.extend(input.settings.map(|conf| format!("--conf={conf}")));
    options.extend(input.steps.map(|steps| format!("--steps={steps}")));
    options.push(file.to_string_lossy().into_owned());
    options.push("--".to_owned());
    options.extend(input.arguments);
    options
}
