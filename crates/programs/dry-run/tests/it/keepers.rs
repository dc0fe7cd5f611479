//! The search for keepers, with each Python that is there and without PyTorch: `tests/keepers.py`.

use std::path::Path;
use std::process::{Command, Stdio};

/// The Pythons that a dry run may meet, and the one that is there in any case.
const PYTHONS: [&str; 6] = ["python3", "python3.10", "python3.11", "python3.12", "python3.13", "python3.14"];

#[test]
fn each_kind_of_keeper_is_found_with_the_lines_that_put() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    for python in PYTHONS {
        // A name without a Python behind it, as some managers of versions have, ends with an error here.
        let mut there = Command::new(python);
        let there = there.arg("-c").arg("import ast").stdout(Stdio::null()).stderr(Stdio::null());
        if !there.status().is_ok_and(|status| status.success()) {
            assert!(
                python != "python3" || std::env::var_os("REQUIRE_PYTHON").is_none(),
                "REQUIRE_PYTHON, but there is no python3"
            );
            eprintln!("skipped: there is no {python}");
            continue;
        }
        let mut command = Command::new(python);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.arg(folder.join("tests/keepers.py")).arg(folder.join("../hooks/src")).output();
        let text = output.map_or_else(
            |error| error.to_string(),
            |output| {
                let text = String::from_utf8_lossy(&output.stderr).into_owned();
                if output.status.success() { String::new() } else { text }
            },
        );
        assert_eq!(text, "", "{python}");
    }
}
