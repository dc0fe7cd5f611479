//! Decides the checks and the ordinary branches that `checks.py` generates, with each Python that is there.

use std::path::Path;
use std::process::{Command, Stdio};

/// The Pythons whose bytecode is known, and the one that is there in any case.
const PYTHONS: [&str; 6] = ["python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];

#[test]
fn a_check_of_an_unknown_value_passes_and_an_ordinary_branch_is_left_as_it_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for python in PYTHONS {
        let mut command = Command::new(python);
        // A name without a Python behind it, as some managers of versions have, ends with an error here.
        let is_there = command.arg("-c").arg("import dis").stdout(Stdio::null()).stderr(Stdio::null());
        if !is_there.status().is_ok_and(|status| status.success()) {
            assert!(
                python != "python3" || std::env::var_os("REQUIRE_PYTHON").is_none(),
                "REQUIRE_PYTHON, but there is no python3"
            );
            eprintln!("skipped: there is no {python}");
            continue;
        }
        for seed in ["1", "2"] {
            let mut command = Command::new(python);
            command.arg(folder.join("tests/checks.py")).arg(folder.join("src/values/checks.py"));
            let output = command.args([seed, "2000"]).output();
            let text = output.map_or_else(
                |error| error.to_string(),
                |output| {
                    let text = String::from_utf8_lossy(&output.stderr).into_owned();
                    if output.status.success() { String::new() } else { text }
                },
            );
            assert_eq!(text, "", "{python}, seed {seed}");
        }
    }
}
