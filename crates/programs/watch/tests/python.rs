//! Python's frames are read as Python itself says they are, or refused.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::Command;

/// Asks for stacks with a wrong line, and with the right one.
const ASK: &str = r"
import ctypes, sys
stacks = ctypes.CDLL(sys.argv[1]).blockyard_watch_stacks
stacks.restype = ctypes.c_char_p
def inner(changed):
    here, minor = sys._getframe(), sys.version_info[1]
    file, name = here.f_code.co_filename.encode(), here.f_code.co_name.encode()
    return stacks(minor, file, name, here.f_lineno + changed)
wrong, right = inner(1), inner(0)
print(sys.version_info[1], wrong is not None, right is None)
";

/// `python3`, and the Pythons of `TORCH`.
#[test]
fn the_line_of_a_frame_is_pythons() {
    let own = std::env::current_exe().expect("the test has a file");
    let library = own.parent().unwrap_or(Path::new(".")).join("libblockyard_watch.so");
    let others = std::env::var("TORCH").unwrap_or_default();
    for python in ["python3"].into_iter().chain(others.split(':').filter(|python| !python.is_empty())) {
        let Ok(output) = Command::new(python).args(["-c", ASK]).arg(&library).output() else {
            assert!(std::env::var_os("REQUIRE_PYTHON").is_none(), "REQUIRE_PYTHON, but there is no {python}");
            eprintln!("skipped: there is no {python}");
            continue;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let (minor, answers) = text.trim().split_once(' ').expect(&error);
        let is_known = matches!(minor, "10" | "11" | "12" | "13" | "14");
        assert_eq!(answers, if is_known { "True True" } else { "True False" }, "Python 3.{minor}");
    }
}
