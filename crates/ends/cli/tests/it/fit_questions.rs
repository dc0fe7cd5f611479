//! The questions of `blockyard fit` beside one option: settings, two options, layouts of ranks. The programs
//! run over a package that stands for PyTorch.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::fit::{fit, folder};

/// A program that takes 100,000 bytes, and 500 for each unit of batch and length; half of that with
/// expandable segments. A length of 7 is an error.
const LENGTHS: &str = "\
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument('--batch', type=int, default=1)
parser.add_argument('--length', type=int, default=1)
options = parser.parse_args()
if options.length == 7:
    raise ValueError('no such length')
torch.take(100_000)
each = 250 if 'expandable' in os.environ.get('PYTORCH_ALLOC_CONF', '') else 500
torch.take(each * options.batch * options.length)
";

/// A program whose requests are those of a recorded snapshot.
const SETTINGS: &str = "\
import shutil, torch
torch.cuda.memory._dump_snapshot = lambda path: shutil.copy('recorded.pickle.gz', path)
torch.take(1000)
";

/// A program whose ranks take 800,000 bytes divided by `tp` and `pp`, and all but rank 0 take 100,000 more.
/// Rank 0 frees its bytes and takes as many again, and the first segment stays reserved.
const LAYOUTS: &str = "\
import argparse, os, torch
parser = argparse.ArgumentParser()
parser.add_argument('--dp', type=int)
parser.add_argument('--tp', type=int)
parser.add_argument('--pp', type=int)
options = parser.parse_args()
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
assert options.dp * options.tp * options.pp == world == 16
if options.tp == 8:
    print('some words')
    raise ValueError('no head is left')
bytes = 800_000 // (options.tp * options.pp)
torch.take(bytes)
if rank == 0:
    torch.give(bytes)
    torch.take(bytes)
else:
    torch.take(100_000)
";

fn with(name: &str, program: &str) -> Option<PathBuf> {
    let folder = folder(name)?;
    std::fs::write(folder.join("train.py"), program).unwrap();
    Some(folder)
}

fn rows(report: &Value, name: &str) -> Vec<(Value, Value)> {
    let rows = report["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[name].clone(), row["largest"].clone())).collect()
}

#[test]
fn the_largest_of_one_option_is_found_for_each_of_another() {
    let Some(folder) = with("map", LENGTHS) else { return };
    let (called, report) =
        fit(&folder, &["--vary", "batch=1..1000", "--vary", "length=1,2,4,8,16,4000", "--gpu", "h100"]);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    // (1,048,576 - 100,000) / 500 = 1897.2 units.
    let expected: Vec<(Value, Value)> =
        [(1, Some(1000)), (2, Some(948)), (4, Some(474)), (8, Some(237)), (16, Some(118)), (4000, None)]
            .into_iter()
            .map(|(length, largest): (u64, Option<u64>)| (length.into(), largest.into()))
            .collect();
    assert_eq!((called.status, rows(&report, "value")), (0, expected.clone()), "{}", called.out);
    let probes = |at: usize| report["rows"][at]["probes"].as_array().unwrap().len();
    // The first searches take at least four runs each; the later ones begin where the earlier ones lead.
    assert!((2..5).all(|at| probes(at) <= 3), "{}", called.out);
    assert_eq!(report["rows"][4]["next"]["value"], 119);
    assert!(called.out.starts_with("the largest batch of 1..1000 that fits"), "{}", called.out);
    assert!(called.out.contains("118") && called.out.contains("119 runs out at"), "{}", called.out);
    let (again, report) =
        fit(&folder, &["--vary", "batch=1..1000", "--vary", "length=1,2,4,8,16,4000", "--gpu", "h100"]);
    assert_eq!((again.status, &report.unwrap()["runs"]), (0, &0.into()));
    // Searches that run side by side find the same values, and the page has a line for each search.
    let beside = ["--at-once", "3", "--fresh", "--report", "curves.html"];
    let map = ["--vary", "batch=1..1000", "--vary", "length=1,2,4,8,16,4000", "--gpu", "h100"];
    let (called, report) = fit(&folder, &[&beside[..], &map].concat());
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!((called.status, rows(&report, "value")), (0, expected), "{}", called.out);
    let page = std::fs::read_to_string(folder.join("curves.html")).unwrap();
    for part in [
        "<svg",
        "length 16</strong>",
        "The largest batch of 1..1000, by length.",
        "119 runs out at",
        "<h1>train.py",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    // A value that the program refuses ends the map, and the rows found before it stay.
    let (called, report) =
        fit(&folder, &["--vary", "batch=1..1000", "--vary", "length=1..9:1", "--gpu", "h100"]);
    let report = report.unwrap();
    assert_eq!((called.status, report["rows"].as_array().unwrap().len()), (2, 7), "{}", called.out);
    assert_eq!((&report["rows"][5]["largest"], &report["rows"][6]["largest"]), (&316.into(), &Value::Null));
    assert!(called.out.contains("no such length"), "{}", called.out);
    let (called, _) = fit(&folder, &["--vary", "batch=1..8", "--vary", "batch=1..9"]);
    assert_eq!(called.status, 2);
    assert!(called.err.contains("two different ones"), "{}", called.err);
}

#[test]
fn settings_beside_an_option_are_run() {
    let Some(folder) = with("by-settings", LENGTHS) else { return };
    let arguments = [
        "--vary",
        "batch=1..9000",
        "--vary",
        "conf=expandable_segments:True",
        "--gpu",
        "h100",
        "--",
        "--length",
        "2",
    ];
    let (called, report) = fit(&folder, &arguments);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    let expected =
        [("", 948), ("expandable_segments:True", 1897)].map(|(conf, most)| (conf.into(), most.into()));
    assert_eq!(rows(&report, "conf"), expected, "{}", called.out);
    assert_eq!(called.status, 0);
}

#[test]
fn settings_are_replayed_over_the_requests_of_one_run() {
    let Some(folder) = with("settings", SETTINGS) else { return };
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../tests/fixtures/snapshots/checkerboard_default_100.pickle.gz");
    std::fs::copy(recorded, folder.join("recorded.pickle.gz")).unwrap();
    let settings = "conf=max_split_size_mb:256;expandable_segments:True;no_such:1";
    let (called, report) = fit(&folder, &["--vary", settings, "--gpu", "h100", "--limit", "1GiB"]);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!((called.status, &report["best"]), (0, &"expandable_segments:True".into()), "{}", called.out);
    let of = |conf: &str| {
        let all = report["settings"].as_array().unwrap();
        all.iter().find(|row| row["conf"] == conf).unwrap_or_else(|| panic!("{conf}"))
    };
    assert_eq!((&of("")["fits"], &of("max_split_size_mb:256")["fits"]), (&false.into(), &false.into()));
    assert_eq!(of("")["first_oom"]["bytes"], 300 << 20);
    assert!(of("no_such:1")["error"].is_string(), "{report}");
    // Two runs under the limit prove the replays: one under the own settings, one under the settings that
    // pass with the least peak reserved.
    let runs = of("expandable_segments:True")["run"]["fits"].as_bool();
    assert_eq!((runs, &of("max_split_size_mb:256")["run"]), (Some(true), &Value::Null));
    assert_eq!(report["runs"], 3);
    // The requests are kept too, so the second call runs nothing.
    let (again, second) = fit(&folder, &["--vary", settings, "--gpu", "h100", "--limit", "1GiB"]);
    let second = second.unwrap();
    assert_eq!((again.status, &second["runs"], &second["settings"]), (0, &0.into(), &report["settings"]));
    let (fresh, third) = fit(&folder, &["--vary", settings, "--gpu", "h100", "--limit", "1GiB", "--fresh"]);
    assert_eq!((fresh.status, &third.unwrap()["runs"]), (0, &3.into()));
    let (refused, _) = fit(&folder, &["--vary", settings, "--report", "curves.html"]);
    assert!(refused.status == 2 && refused.err.contains("--report draws"), "{}", refused.err);
    for words in ["replays are estimates", "runs out of memory at request 81 (300 MiB)", "a run: fits"] {
        assert!(called.out.contains(words), "{words}\n{}", called.out);
    }
}

/// The verdict on each layout. Fields that depend on which of two ranks fails first are left out.
fn verdicts(report: &Value) -> Vec<String> {
    let rows = report["layouts"].as_array().unwrap().iter();
    let row = |row: &Value| {
        let mut ranks = row["ranks"].clone();
        for rank in ranks.as_array_mut().into_iter().flatten() {
            rank.as_object_mut().unwrap().remove("remarks");
        }
        let [layout, fits, reserved, error] =
            ["layout", "fits", "peak_reserved", "error"].map(|name| row[name].clone());
        format!("{layout} {fits} {reserved} {error} {ranks}")
    };
    rows.map(row).collect()
}

#[test]
fn layouts_have_a_verdict_each() {
    let Some(folder) = with("layouts", LAYOUTS) else { return };
    let mesh =
        ["--mesh", "dp=1..16,tp=1,2,4,8,pp=1,2,4", "--ranks", "16", "--gpu", "h100", "--limit", "512KiB"];
    let (called, report) = fit(&folder, &mesh);
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
    let of = |dp: u64, tp: u64, pp: u64| {
        let all = report["layouts"].as_array().unwrap();
        let is = |row: &&Value| row["layout"] == serde_json::json!({"dp": dp, "tp": tp, "pp": pp});
        all.iter().find(is).unwrap_or_else(|| panic!("{dp} {tp} {pp}: {report}"))
    };
    assert_eq!(report["layouts"].as_array().unwrap().len(), 11);
    let ranks = |row: &Value| -> Vec<(u64, u64)> {
        let of = |rank: &Value| (rank["rank"].as_u64().unwrap(), rank["peak_allocated"].as_u64().unwrap());
        row["ranks"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!(ranks(of(4, 4, 1)), [(0, 200_000)]);
    assert_eq!(ranks(of(4, 2, 2)), [(0, 200_000), (15, 300_000)]);
    // Rank 5 is of stage 1 or 2 of 4 in each order of the dimensions.
    assert_eq!(ranks(of(2, 2, 4)), [(0, 100_000), (5, 200_000), (15, 200_000)]);
    // The whole limit is 524,288 bytes.
    assert_eq!((&of(16, 1, 1)["fits"], &of(16, 1, 1)["under_limit"]), (&false.into(), &Value::Null));
    assert_eq!(of(4, 4, 1)["fits"], true);
    // 400,000 are allocated and 800,000 reserved: a run under the limit decides.
    assert_eq!(
        (&of(8, 2, 1)["fits"], &of(8, 2, 1)["under_limit"][0]["fits"]),
        (&false.into(), &false.into())
    );
    assert!(of(2, 8, 1)["error"].as_str().unwrap().contains("some words"), "{report}");
    assert_eq!(report["best"], serde_json::json!({"dp": 1, "tp": 4, "pp": 4}));
    for words in [
        "11 layouts of 16 ranks",
        "the least peak reserved has dp=1 tp=4 pp=4",
        "no head is left",
        "peak reserved in GiB by tp",
    ] {
        assert!(called.out.contains(words), "{words}\n{}", called.out);
    }
    let (again, second) = fit(&folder, &[&mesh[..], &["--at-once", "3"]].concat());
    let second = second.unwrap();
    // Layouts whose program failed are run again.
    assert!((again.status, verdicts(&second)) == (0, verdicts(&report)), "{}{}", again.out, again.err);
    assert_eq!(second["runs"], 0);
    let (fresh, third) = fit(&folder, &[&mesh[..], &["--at-once", "3", "--fresh"]].concat());
    assert!(
        (fresh.status, verdicts(&third.unwrap())) == (0, verdicts(&report)),
        "{}{}",
        fresh.out,
        fresh.err
    );
    // Copies of one process that has loaded the package give the same verdicts.
    let preload = ["--at-once", "2", "--preload", "torch,torch.optim"];
    let (copied, fourth) = fit(&folder, &[&mesh[..], &preload].concat());
    let fourth = fourth.unwrap_or_else(|| panic!("{}{}", copied.out, copied.err));
    assert!((copied.status, verdicts(&fourth)) == (0, verdicts(&report)), "{}{}", copied.out, copied.err);
    assert!(fourth["runs"].as_u64() > Some(8), "{}", copied.out);
    let (called, report) = fit(&folder, &[&mesh[..], &["--preload", "no_such_module"]].concat());
    assert_eq!(called.status, 2, "{}", called.out);
    let error = report.unwrap()["layouts"][0]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("No module named 'no_such_module'"), "{error}");
    let (called, _) = fit(&folder, &["--mesh", "dp=3,tp=5", "--ranks", "16"]);
    assert!(called.err.contains("no layout of the mesh has 16 ranks"), "{}", called.err);
}

/// A program that prints when the functions registered for its end (`atexit`) are called, and when its
/// objects are destroyed.
const ENDS: &str = "\
import atexit, os, sys, torch
said = os.open('said.txt', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
class Last:
    def __del__(self, write=os.write, said=said):
        write(said, b'apart ')
last = Last()
atexit.register(os.write, said, b'end ')
torch.take(1000)
print('without an end of the line', end='')
if '--fails' in sys.argv:
    sys.exit(3)
";

/// A copied process ends without destroying its objects: that would cost as much as a third of a run, without
/// an effect that anyone sees.
#[test]
fn a_copy_ends_at_once_after_what_was_registered_for_its_end() {
    let Some(folder) = folder("ends") else { return };
    std::fs::write(folder.join("train.py"), ENDS).unwrap();
    let said = |arguments: &[&str]| {
        let _ = std::fs::remove_file(folder.join("said.txt"));
        let all = [&["--mesh", "dp=2", "--ranks", "2", "--gpu", "h100", "--fresh"], arguments].concat();
        let (called, report) = fit(&folder, &all);
        let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
        let error = report["layouts"][0]["error"].as_str().unwrap_or_default().to_owned();
        (std::fs::read_to_string(folder.join("said.txt")).unwrap(), error)
    };
    assert_eq!(said(&[]), ("end apart ".to_owned(), String::new()));
    assert_eq!(said(&["--preload", "torch"]), ("end ".to_owned(), String::new()));
    let (words, error) = said(&["--preload", "torch", "--", "--fails"]);
    assert_eq!(words, "end ");
    assert!(error.contains("status 3") && error.contains("without an end of the line"), "{error}");
}

/// A program whose ranks take 400,000 bytes divided by `tp` and `pp`, and for each unit of the batch divided
/// by `dp` 100,000 bytes in ranks 0 and 15, 150,000 in all others.
const BATCHES: &str = "\
import argparse, os, torch
parser = argparse.ArgumentParser()
for name in ('dp', 'tp', 'pp', 'batch'):
    parser.add_argument('--' + name, type=int)
options = parser.parse_args()
rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
assert options.dp * options.tp * options.pp == world == 16
if options.batch % options.dp:
    raise ValueError('no whole samples')
if options.tp == 16:
    raise ValueError('no head is left')
torch.take(400_000 // (options.tp * options.pp))
each = 100_000 if rank in (0, 15) else 150_000
torch.take(each * options.batch // options.dp)
";

#[test]
fn the_largest_value_is_found_for_each_layout() {
    let Some(folder) = with("batches", BATCHES) else { return };
    let mesh = ["--mesh", "dp=1..16,tp=1,2,4,16,pp=1,4", "--ranks", "16", "--gpu", "h100"];
    let (called, report) = fit(&folder, &[&mesh[..], &["--vary", "batch=16..1024:16"]].concat());
    let report = report.unwrap_or_else(|| panic!("{}{}", called.out, called.err));
    let found: Vec<(String, Value)> =
        rows(&report, "layout").into_iter().map(|(l, n)| (l.to_string(), n)).collect();
    // The limit of the package is 1,048,576 bytes.
    let expected: Vec<(String, Value)> = [
        (r#"{"dp":1,"pp":4,"tp":4}"#, Value::Null),
        (r#"{"dp":1,"pp":1,"tp":16}"#, Value::Null),
        (r#"{"dp":2,"pp":4,"tp":2}"#, Value::Null),
        (r#"{"dp":4,"pp":4,"tp":1}"#, 16.into()),
        (r#"{"dp":4,"pp":1,"tp":4}"#, 32.into()),
        (r#"{"dp":8,"pp":1,"tp":2}"#, 64.into()),
        (r#"{"dp":16,"pp":1,"tp":1}"#, 96.into()),
    ]
    .into_iter()
    .map(|(layout, largest)| (layout.to_owned(), largest))
    .collect();
    assert_eq!((called.status, found), (0, expected), "{}{}", called.out, called.err);
    assert_eq!(report["by"]["kind"], "layouts");
    for words in [
        "the largest of all has dp=16 tp=1 pp=1",
        "no head is left",
        "with stages also the last rank, and with more than two also a rank of a stage between",
        "in rank 0",
    ] {
        assert!(called.out.contains(words), "{words}\n{}", called.out);
    }
    let (again, second) = fit(&folder, &[&mesh[..], &["--vary", "batch=16..1024:16"]].concat());
    let second = second.unwrap();
    assert_eq!(
        (again.status, &second["runs"], rows(&second, "layout")),
        (0, &0.into(), rows(&report, "layout"))
    );
    // Searches that run side by side cannot begin where earlier ones lead and try other values; the answers
    // are the same.
    let (beside, third) =
        fit(&folder, &[&mesh[..], &["--vary", "batch=16..1024:16", "--at-once", "3"]].concat());
    assert_eq!((beside.status, rows(&third.unwrap(), "layout")), (0, rows(&report, "layout")));
    // Rank 14 takes more than rank 0, which alone runs where there are no stages.
    let ranks = ["--vary", "batch=16..1024:16", "--run-ranks", "0,14"];
    let (called, more) = fit(&folder, &[&mesh[..], &ranks].concat());
    let most: Vec<Value> = rows(&more.unwrap(), "layout").into_iter().map(|(_, largest)| largest).collect();
    assert_eq!((most[3].clone(), most[6].clone()), (16.into(), 64.into()), "{}", called.out);
    assert!(called.out.contains("rank 0 and 14 of each layout ran;"), "{}", called.out);
    let (called, _) = fit(&folder, &[&mesh[..], &["--run-ranks", "16"]].concat());
    assert!(called.status == 2 && called.err.contains("no rank 16 exists"), "{}", called.err);
    let (called, _) = fit(&folder, &[&mesh[..], &["--vary", "dp=1..4"]].concat());
    assert!(called.status == 2 && called.err.contains("no dimension of the mesh"), "{}", called.err);
}
