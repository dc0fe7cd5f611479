//! `blockyard fit` over a package that stands for PyTorch: no PyTorch and no GPU is needed.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use blockyard_answers::FitAnswer;
use blockyard_dry_run::{Library, write_library};
use serde_json::Value;

use super::{CommandOutput, command, json};

/// The limit of the package is one MiB; a value takes 20,000 bytes, and the program 100,000 more.
const TRAIN: &str = "\
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=int(os.environ.get('BATCH', 1)))
parser.add_argument('--fails-at', type=int)
options = parser.parse_args()
if options.batch_size == options.fails_at:
    print('some words')
    raise ValueError('a value that the program does not take')
torch.take(100_000)
optimizer = torch.optim.Optimizer()
for step in range(9):
    torch.take(20_000 * options.batch_size)
    torch.give(20_000 * options.batch_size)
    optimizer.step()
    break
";

/// A folder with a package, a library and a program; `None` where there is no Python.
pub(super) fn folder(name: &str) -> Option<PathBuf> {
    let has_python =
        Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_ok_and(|it| it.success());
    if !has_python {
        assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no python3");
        eprintln!("skipped: there is no python3");
        return None;
    }
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fit-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../programs/dry-run/tests/stub/site-packages");
    copy(&stub, &folder.join("site-packages"));
    std::fs::create_dir_all(folder.join("site-packages/torch/lib")).unwrap();
    let library = Library { name: "libblockyard_standin.so", ..Library::default() };
    std::fs::write(folder.join("libblockyard_standin.so"), write_library(&library).unwrap()).unwrap();
    std::fs::write(folder.join("train.py"), TRAIN).unwrap();
    Some(folder)
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let place = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &place);
        } else {
            std::fs::copy(entry.path(), place).unwrap();
        }
    }
}

/// The exit status and the output of a command that runs programs over the packages of a folder.
pub(super) fn called(command: &mut Command, folder: &Path) -> CommandOutput {
    let output = over_packages(command, folder).output().unwrap();
    CommandOutput {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The command, whose programs run over the packages of a folder.
pub(super) fn over_packages<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    command
        .env("PYTHONPATH", folder.join("site-packages"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("BLOCKYARD_STANDIN", folder.join("libblockyard_standin.so"))
        .env("XDG_CACHE_HOME", folder.join("cache"))
}

pub(super) fn fit(folder: &Path, arguments: &[&str]) -> (CommandOutput, Option<Value>) {
    let report = folder.join("report.json");
    let _ = std::fs::remove_file(&report);
    let mut fit = command();
    fit.args(["fit", "train.py", "--python", "python3", "--json", "report.json"]).args(arguments);
    let called = called(fit.current_dir(folder), folder);
    let text = std::fs::read_to_string(report).ok();
    if let Some(text) = &text {
        // The types read what the command writes, whatever the question was.
        let answer: FitAnswer = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_value(&answer).unwrap(), json(text));
    }
    (called, text.map(|text| json(&text)))
}

#[test]
fn the_largest_value_is_found_and_a_second_call_goes_on() {
    let Some(folder) = folder("largest") else { return };
    let (called, report) = fit(&folder, &["--vary", "batch-size=1..512", "--gpu", "h100"]);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    // (1,048,576 - 100,000) / 20,000 = 47.4
    assert_eq!((&report["largest"], &report["next"]["value"]), (&47.into(), &48.into()));
    assert!(called.out.starts_with("batch-size 47 is the largest of 1..512 that fits"), "{}", called.out);
    assert!(called.out.contains("48 runs out of memory at"), "{}", called.out);
    assert!(called.out.contains("train.py:12, which asks for 937.5 KiB"), "{}", called.out);
    let peaks = report["probes"].as_array().unwrap().iter().filter(|probe| probe["fits"] == true);
    for probe in peaks {
        let value = probe["value"].as_u64().unwrap();
        assert_eq!(probe["peak_allocated"], 100_000 + 20_000 * value);
    }
    let growth = &report["growth"];
    assert_eq!((&growth["kind"], &growth["exact"]), (&"linear".into(), &true.into()));
    assert!((growth["slope"].as_f64().unwrap() - 20_000.0).abs() < 1e-3);
    // Advice on activations counts the bytes that the program freed before the step ended.
    assert_eq!(report["advice"][0]["bytes"], 20_000 * 47);
    assert!(
        called.out.contains("917.97 KiB  activations and temporaries: activation checkpointing"),
        "{}",
        called.out
    );
    // The second setting is tried because the first does not help; neither helps.
    let settings: Vec<(&Value, &Value)> =
        report["settings"].as_array().unwrap().iter().map(|row| (&row["variable"], &row["fits"])).collect();
    let names = ["PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG"].map(Value::from);
    assert_eq!(settings, [(&names[0], &false.into()), (&names[1], &false.into())], "{}", called.out);
    // A safe value leaves 5 % of the GPU, and its sentence is below the answer.
    let (safe, reserve) = (report["safe"].as_u64().unwrap(), report["reserve"].as_u64().unwrap());
    let probe = report["probes"].as_array().unwrap().iter().find(|probe| probe["value"] == safe).unwrap();
    let most = report["limit"].as_u64().unwrap() - reserve;
    assert!(probe["peak_reserved"].as_u64().unwrap() <= most && (30..=47).contains(&safe), "{}", called.out);
    assert!(called.out.contains(&format!("  a safe batch-size is {safe}: ")), "{}", called.out);
    let runs = report["runs"].as_u64().unwrap();
    let (again, report) = fit(&folder, &["--vary", "batch-size=1..512", "--gpu", "h100"]);
    let report = report.unwrap();
    assert_eq!((again.status, &report["largest"], &report["runs"]), (0, &47.into(), &0.into()));
    assert_eq!(report["known"].as_u64(), Some(runs), "{}", again.out);
    // A changed program under the same name does not use the kept runs.
    std::fs::write(folder.join("train.py"), TRAIN.replace("20_000", "10_000")).unwrap();
    let (_, report) = fit(&folder, &["--vary", "batch-size=1..512", "--gpu", "h100"]);
    assert_eq!(report.unwrap()["largest"], 94);
}

#[test]
fn the_limit_is_pytorchs_fraction() {
    let Some(folder) = folder("limit") else { return };
    // Half of the package's memory.
    let half = (85_019_590_656_u64 / 2).to_string();
    let (called, report) =
        fit(&folder, &["--vary", "env:BATCH=1..512", "--gpu", "h100", "--limit", &half, "--quiet"]);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!((&report["largest"], &report["fraction"]), (&21.into(), &0.5.into()), "{}", called.out);
    assert_eq!(called.out.lines().count(), 1, "{}", called.out);
    let (called, _) = fit(&folder, &["--vary", "batch-size=1..8", "--gpu", "t4", "--limit", "16GiB"]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("is not between 1 byte and the 14.74 GiB of Tesla T4"), "{}", called.err);
}

#[test]
fn a_run_that_fails_ends_the_search_and_nothing_is_lost() {
    let Some(folder) = folder("fails") else { return };
    let arguments = ["--vary", "batch-size=1..512", "--gpu", "h100", "--", "--fails-at", "33"];
    let (called, report) = fit(&folder, &arguments);
    assert_eq!(called.status, 2, "{}{}", called.out, called.err);
    let report = report.unwrap();
    assert_eq!((&report["largest"], &report["failed_at"]), (&Value::Null, &33.into()));
    for words in [
        "the run with batch-size 33 failed: the program ended with status 1 (ValueError at",
        "some words",
        "1 fits",
    ] {
        assert!(called.out.contains(words), "{words}\n{}", called.out);
    }
}

#[test]
fn several_gpus_have_an_answer_each_and_none_is_an_answer_too() {
    let Some(folder) = folder("several") else { return };
    let (called, report) = fit(&folder, &["--vary", "batch-size=40..50", "--gpu", "h100,t4"]);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!((&report["largest"], &report["others"][0]["largest"]), (&47.into(), &47.into()));
    assert!(called.out.contains("the smallest GPU that fits 40: Tesla T4"), "{}", called.out);
    let (beside, again) = fit(
        &folder,
        &[
            "--vary",
            "batch-size=40..50",
            "--gpu",
            "h100,t4",
            "--at-once",
            "2",
            "--fresh",
            "--report",
            "curves.html",
        ],
    );
    let again = again.unwrap_or_else(|| panic!("{}{}", beside.out, beside.err));
    assert_eq!((&again["probes"], &again["others"]), (&report["probes"], &report["others"]));
    let page = std::fs::read_to_string(folder.join("curves.html")).unwrap();
    assert!(page.contains("Tesla T4") && page.contains("47 on Tesla T4"), "{page}");
    let (called, report) = fit(&folder, &["--vary", "batch-size=100..200", "--gpu", "h100"]);
    assert_eq!((called.status, &report.unwrap()["largest"]), (1, &Value::Null));
    assert!(called.out.starts_with("no batch-size of 100..200 fits"), "{}", called.out);
}

/// Without a limit the stand-in subtracts the non-PyTorch memory from every GPU's memory, as an estimate
/// where the bytes were not recorded for that GPU. A limit counts PyTorch's memory alone.
#[test]
fn without_a_limit_non_pytorch_memory_is_taken_off_every_gpu() {
    let Some(folder) = folder("outside") else { return };
    // The program writes down the variable that the stand-in would read, and writes in place of the stand-in
    // that a first handle of cuBLAS was made.
    let told = "with open('told.txt', 'w') as file:
    file.write(os.environ.get('STANDIN_NON_PYTORCH', 'not asked for'))
with open(os.environ['STANDIN_REPORT'], 'a') as file:
    file.write('{\"kind\": \"taken\", \"device\": 0, \"what\": \"cublas\", \"ranks\": 0, \"count\": 1}\\n')
";
    std::fs::write(folder.join("train.py"), TRAIN.replace("for step in", &format!("{told}for step in")))
        .unwrap();
    let ask = |arguments: &[&str]| {
        let all = [&["--vary", "batch-size=1..2", "--fresh"], arguments].concat();
        let (called, _) = fit(&folder, &all);
        assert_eq!(called.status, 0, "{}{}", called.out, called.err);
        (std::fs::read_to_string(folder.join("told.txt")).unwrap(), called.out)
    };
    let (told, out) = ask(&["--gpu", "h100"]);
    assert_eq!(told, "1");
    for words in [
        "fits NVIDIA H100 80GB HBM3 (79.18 GiB, less the non-PyTorch memory)",
        "  78.6 GiB of the GPU's 79.18 GiB are left for PyTorch: each run leaves out the non-PyTorch memory \
         of the CUDA context and libraries (measured on an NVIDIA H100 80GB HBM3)",
    ] {
        assert!(out.contains(words), "{words}\n{out}");
    }
    let (told, out) = ask(&["--gpu", "t4"]);
    assert_eq!(told, "1");
    let words = "(an estimate: measured on an NVIDIA H100 80GB HBM3, and not on a Tesla T4)";
    assert!(out.contains(words), "{words}\n{out}");
    let (told, out) = ask(&["--gpu", "h100", "--limit", "16 GiB"]);
    assert_eq!(told, "not asked for");
    assert!(!out.contains("are left for PyTorch"), "{out}");
}

/// Over a real PyTorch: `TORCH=PYTHON BLOCKYARD_STANDIN=LIBRARY cargo test -p blockyard-cli --test it fit::`.
/// The answer is compared with plain dry runs of the largest value and the next one, in which the program
/// sets the fraction itself.
#[test]
fn the_answer_is_that_of_plain_dry_runs() {
    let (Ok(python), Ok(library)) = (std::env::var("TORCH"), std::env::var("BLOCKYARD_STANDIN")) else {
        eprintln!("skipped: TORCH names no Python with PyTorch, or BLOCKYARD_STANDIN no library");
        return;
    };
    let python = python.split(':').next().unwrap_or_default();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fit-real");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/fit/contrastive.py");
    let call = |arguments: &[&str]| {
        let mut command = command();
        command.env("BLOCKYARD_STANDIN", &library).env("XDG_CACHE_HOME", folder.join("cache"));
        command.args(arguments).current_dir(&folder).output().unwrap()
    };
    let program = program.to_str().unwrap();
    let vary = "batch-size=256..4096:256";
    let output = call(&[
        "fit",
        program,
        "--vary",
        vary,
        "--limit",
        "600 MiB",
        "--python",
        python,
        "--json",
        "report.json",
    ]);
    let text = std::fs::read_to_string(folder.join("report.json"));
    let report =
        json(&text.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr))));
    let fraction = report["fraction"].as_f64().unwrap().to_string();
    for (value, status) in [(&report["largest"], 0), (&report["next"]["value"], 1)] {
        let value = value.to_string();
        let mut arguments =
            vec!["dry-run", "--gpu", "h200", "--python", python, program, "--batch-size", &value];
        arguments.extend(["--memory-fraction", &fraction, "--steps", "3"]);
        let output = call(&arguments);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{value}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        if status == 0 {
            let probes = report["probes"].as_array().unwrap();
            let probe = probes.iter().find(|probe| probe["value"] == report["largest"]).unwrap();
            let printed = format!("{} {}\n", probe["peak_allocated"], probe["peak_reserved"]);
            assert_eq!(String::from_utf8_lossy(&output.stdout), printed);
        }
    }
}
