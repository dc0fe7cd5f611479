//! The tests: each starts a process with a scenario and compares what it says and how it ends.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};

use super::attempts::ATTEMPTS;
use super::ordinary::ORDINARY;
use super::scenarios::{FOLDER, SCENARIO};

type Test = (&'static str, fn());

const TESTS: &[Test] = &[
    ("each_attempt_is_refused_with_its_error_and_the_process_goes_on", attempts_are_refused),
    ("ordinary_things_work", ordinary_things_work),
    ("nothing_is_writable_without_a_folder_to_write_in", nothing_is_writable),
    ("a_process_that_fills_memory_gets_an_error_and_goes_on", memory_is_limited),
    ("threads_without_end_get_an_error", threads_are_limited),
    ("a_user_who_is_not_root_has_a_limited_number_of_threads", threads_of_a_user_are_limited),
    ("a_process_without_end_gets_a_signal", time_is_limited),
    ("a_process_that_ignores_the_signal_is_killed", time_is_limited_for_stubborn_processes),
    ("a_file_without_end_gets_a_signal", file_size_is_limited),
    ("a_process_with_threads_is_not_confined", threads_are_an_error),
    ("a_path_that_does_not_exist_is_named", missing_path_is_named),
    ("a_process_may_end_itself_by_a_signal", abort_works),
];

pub(crate) fn run() -> ExitCode {
    if let Err(error) = blockyard_confine::check_system() {
        println!("skipped: {error}");
        let is_required = std::env::var_os("REQUIRE_LANDLOCK").is_some();
        return if is_required { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    if std::env::args().any(|word| word == "--list") {
        for (name, _) in TESTS {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().skip(1).take_while(|word| !word.starts_with('-')).collect();
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut has_failed = false;
    for (name, test) in TESTS.iter().filter(|(name, _)| chosen(name)) {
        let passed = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        has_failed |= !passed;
    }
    if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A folder with `inside`, which may be read, `scratch`, which may be written, and `outside`.
struct Folders(PathBuf);

impl Folders {
    fn new(name: &str) -> Self {
        // Not in the folder of the build: another user has to reach it.
        let root = std::env::temp_dir().join(format!("blockyard-confine-{}-{name}", std::process::id()));
        for folder in ["inside", "scratch", "outside"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("inside/file"), "inside").unwrap();
        fs::write(root.join("outside/secret"), "secret").unwrap();
        fs::write(root.join("scratch/protected"), "protected").unwrap();
        fs::set_permissions(root.join("scratch/protected"), Permissions::from_mode(0o400)).unwrap();
        symlink(root.join("outside/secret"), root.join("inside/link")).unwrap();
        symlink(root.join("outside"), root.join("scratch/link")).unwrap();
        Self(root)
    }

    /// Holds that nothing outside of `scratch` has changed.
    fn check(&self) {
        assert_eq!(names(&self.0.join("outside")), ["secret"]);
        assert_eq!(fs::read_to_string(self.0.join("outside/secret")).unwrap(), "secret");
        assert_eq!(names(&self.0.join("inside")), ["file", "link"]);
        assert_eq!(fs::read_to_string(self.0.join("inside/file")).unwrap(), "inside");
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn command(scenario: &str, folders: &Folders) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(SCENARIO, scenario).env(FOLDER, &folders.0).stdin(Stdio::null());
    command
}

/// Runs a process in that scenario and holds that nothing outside has changed.
fn confined(scenario: &str) -> Output {
    let folders = Folders::new(scenario);
    let output = command(scenario, &folders).output().unwrap();
    folders.check();
    output
}

/// What a process said that went on to its end.
fn said(output: &Output) -> String {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}\n{err}", output.status);
    out.strip_suffix("goes on\n").unwrap_or_else(|| panic!("no last line: {out}\n{err}")).to_owned()
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("{text}"))
}

fn compare(said: &str, expected: &[(&str, &str)]) {
    let found: Vec<&str> = said.lines().collect();
    let expected: Vec<String> = expected.iter().map(|(name, answer)| format!("{name}: {answer}")).collect();
    let differing: Vec<_> =
        expected.iter().zip(&found).filter(|(expected, found)| expected != found).collect();
    assert!(differing.is_empty(), "expected and found: {differing:#?}");
    assert_eq!(found.len(), expected.len());
}

fn attempts_are_refused() {
    let expected: Vec<_> = ATTEMPTS.iter().map(|(name, answer, _)| (*name, *answer)).collect();
    compare(&said(&confined("attempts")), &expected);
}

fn ordinary_things_work() {
    let expected: Vec<_> = ORDINARY.iter().map(|(name, _)| (*name, "done")).collect();
    compare(&said(&confined("ordinary")), &expected);
}

fn nothing_is_writable() {
    let expected = [("make a file", "EACCES"), ("make a folder", "EPERM"), ("remove a link", "EPERM")];
    compare(&said(&confined("read-only")), &expected);
}

fn memory_is_limited() {
    let filled = number(&said(&confined("memory")));
    assert!((200..=256).contains(&filled), "{filled} MiB of 256");
}

fn threads_are_limited() {
    let started = number(&said(&confined("threads")));
    assert!((8..=128).contains(&started), "{started} threads of 2 MiB in 256 MiB");
}

fn threads_of_a_user_are_limited() {
    let folders = Folders::new("user-threads");
    let program = folders.0.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can start a process of another user");
        return;
    }
    let mut command = Command::new(program);
    command.env(SCENARIO, "small-threads").env(FOLDER, &folders.0).stdin(Stdio::null());
    // Nobody, in most systems; a user with no other process in each.
    let output = command.uid(65_533).gid(65_533).output().unwrap();
    let started = number(&said(&output));
    assert!((16..=blockyard_confine::MAX_THREADS).contains(&started), "{started} threads");
}

fn time_is_limited() {
    assert_eq!(confined("time").status.signal(), Some(libc::SIGXCPU));
}

fn time_is_limited_for_stubborn_processes() {
    assert_eq!(confined("stubborn").status.signal(), Some(libc::SIGKILL));
}

fn file_size_is_limited() {
    assert_eq!(confined("file").status.signal(), Some(libc::SIGXFSZ));
}

fn threads_are_an_error() {
    let text = said(&confined("two-threads"));
    assert_eq!(
        text,
        "a process of 2 threads cannot confine itself: set OPENBLAS_NUM_THREADS=1 before numpy is imported\nsecret\n"
    );
}

fn missing_path_is_named() {
    let text = said(&confined("missing-path"));
    assert!(text.starts_with("cannot allow ") && text.ends_with("/missing\n"), "{text}");
}

fn abort_works() {
    assert_eq!(confined("abort").status.signal(), Some(libc::SIGABRT));
}
