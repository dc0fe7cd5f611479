//! Twenty programs as beginners write them. The first part of each needs no GPU: `NAME.txt` has what `CPython`
//! and `NumPy` themselves printed (`beginners/record.py` writes it). What a number of the GPU prints is `?`.

use std::path::{Path, PathBuf};

use crate::support::run;

const MARK: &str = "# --- on the GPU\n";

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/beginners");
    let files = std::fs::read_dir(folder).expect("the programs are there");
    let mut files: Vec<PathBuf> = files.map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "py") && !file.ends_with("record.py"));
    files.sort();
    files
}

#[test]
fn programs_of_beginners_print_what_python_prints_and_no_number_that_nobody_knows() {
    let programs = programs();
    assert_eq!(programs.len(), 20);
    for file in programs {
        let source = std::fs::read_to_string(&file).expect("a program");
        let (printed, finished) = run(&source);
        assert_eq!(finished.traceback, None, "{}", file.display());
        let path = file.with_extension("txt");
        let expected = std::fs::read_to_string(&path).expect("an expected output");
        let (plain, rest) = expected.split_once(MARK).expect("two parts");
        let found = printed.strip_prefix(plain);
        assert!(found.is_some(), "{} differs from Python: {printed}", file.display());
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, format!("{plain}{MARK}{}", found.unwrap_or_default())).expect("a file");
        } else {
            assert_eq!(found, Some(rest), "{}", file.display());
        }
    }
}
