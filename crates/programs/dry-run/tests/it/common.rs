//! Programs that are run over a real PyTorch.

use std::path::Path;
use std::{env, fs};

use blockyard_dry_run::{LibraryFolder, Program, Report, Torch, prepare_in, run};
use blockyard_gpus::GpuProfile;
use tempfile::TempDir;

/// A PyTorch, and a folder in which its libraries are.
pub(crate) struct OverTorch {
    pub(crate) folder: TempDir,
    pub(crate) python: String,
    pub(crate) torch: Torch,
    pub(crate) prepared: LibraryFolder,
}

/// The PyTorch that `TORCH` names; `None` where none is named.
pub(crate) fn over_torch() -> Option<OverTorch> {
    let Some(python) = env::var("TORCH").ok().and_then(|list| list.split(':').next().map(str::to_owned))
    else {
        eprintln!("skipped: TORCH names no Python with PyTorch");
        return None;
    };
    let folder = tempfile::tempdir().expect("the folder is made");
    let own = env::current_exe().expect("the test has a file");
    let standin = own.parent().unwrap_or(Path::new(".")).join("libblockyard_standin.so");
    let torch = Torch::find(&python).expect("it has PyTorch");
    let prepared = prepare_in(&torch, &standin, &folder.path().join("cache")).expect("it is made");
    Some(OverTorch { folder, python, torch, prepared })
}

/// Runs a program over PyTorch: its report and what it printed. `None` where no PyTorch is named.
pub(crate) fn done(source: &str, environment: &[(&str, &str)]) -> Option<(Report, Vec<String>)> {
    let over = over_torch()?;
    let (file, output) = (over.folder.path().join("program.py"), over.folder.path().join("output"));
    fs::write(&file, source).expect("the program is written");
    let program = Program {
        environment: environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        output: Some(output.clone()),
        ..Program::new(file, over.python, GpuProfile::H200)
    };
    let report = run(&program, &over.torch, &over.prepared).expect("it runs");
    let text = fs::read_to_string(output).expect("there is output");
    assert_eq!(report.status, 0, "{text}");
    Some((report, text.lines().map(str::to_owned).collect()))
}
