//! Programs under the rules of each release of PyTorch. `tests/fixtures/releases` has what PyTorch's own
//! build of the release printed for the same program in a dry run.

use std::path::Path;

use blockyard_python::{ProgramSettings, ProgramSource};
use blockyard_rules::{AllocatorConfig, Release};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/fixtures/releases").join(name);
    std::fs::read_to_string(path).expect("a fixture")
}

#[test]
fn products_and_attention_take_the_memory_of_their_release() {
    let source = fixture("workspaces.py");
    for release in Release::ALL {
        let config = AllocatorConfig::parse("", release).expect("no settings");
        let settings = ProgramSettings { config, ..ProgramSettings::default() };
        let (printed, finished) = crate::support::run_with(&source, "program.py", settings);
        assert_eq!(finished.traceback, None, "{release}");
        assert_eq!(printed, fixture(&format!("workspaces.{release}.txt")), "{release}");
    }
}

/// `blas_variables.txt`: `== RELEASE VARIABLES`, then what was printed.
#[test]
fn workspaces_follow_the_variables_of_the_environment() {
    let (source, answers) = (fixture("blas_variables.py"), fixture("blas_variables.txt"));
    let mut compared = 0;
    for answer in answers.split("== ").skip(1) {
        let (head, wanted) = answer.split_once('\n').expect("a head");
        let (release, variables) = head.split_once(' ').expect("a release and variables");
        let config = AllocatorConfig::parse("", release.parse().expect("a release")).expect("no settings");
        let program = ProgramSource {
            file: "program.py".to_owned(),
            source: source.clone(),
            arguments: variables.split(' ').map(str::to_owned).collect(),
        };
        let settings = ProgramSettings { config, ..ProgramSettings::default() };
        let (printed, finished) = crate::support::run_program(&program, settings);
        assert_eq!(finished.traceback, None, "{head}");
        assert_eq!(printed, wanted, "{head}");
        compared += 1;
    }
    assert_eq!(compared, 23 * Release::ALL.len());
}
