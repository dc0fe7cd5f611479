//! `blockyard python`: what a program prints, its recording, and its answer for other programs.

use blockyard_answers::ProgramAnswer;
use serde_json::Value;

use super::{blockyard, file};

const PROGRAM: &str = "import torch\nx = torch.ones(1024, 1024, device='cuda')\ny = x @ x\ndel x\nprint(torch.cuda.memory_allocated())\n";

#[test]
fn a_programs_recording_is_verified() {
    let program = file("python-verified.py", PROGRAM);
    let recording = file("python-verified.jsonl", "");
    let called = blockyard(["python", "--record", &recording, &program]);
    assert_eq!((called.status, called.err.as_str()), (0, ""), "{}", called.out);
    let allocated: u64 = called.out.trim().parse().unwrap();
    assert!(allocated >= 4 << 20, "{allocated}");
    let called = blockyard(["verify", &recording]);
    assert_eq!(called.status, 0, "{}{}", called.out, called.err);
}

#[test]
fn a_program_answers_as_json() {
    let program = file("python-json.py", PROGRAM);
    let called = blockyard(["python", "--json", &program]);
    let answer: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!((called.status, answer["status"].as_i64()), (0, Some(0)));
    assert!(answer["traceback"].is_null());
    let allocated = answer["devices"][0]["stats"]["allocated_bytes.all.current"].to_string();
    assert_eq!(answer["stdout"].as_str().map(str::trim), Some(allocated.as_str()));
}

#[test]
fn the_types_read_what_the_command_writes() {
    let estimated = "import torch\ntorch.linalg.svd(torch.ones(3, 3, device='cuda'))\n1 / 0\n";
    for (name, text) in [("typed.py", PROGRAM), ("estimated.py", estimated)] {
        let called = blockyard(["python", "--json", &file(name, text)]);
        let typed: ProgramAnswer = serde_json::from_str(&called.out).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap().to_string() + "\n", called.out);
        let has_ended_early = name == "estimated.py";
        assert_eq!(
            (typed.traceback.is_some(), typed.estimated.len()),
            (has_ended_early, usize::from(has_ended_early))
        );
    }
}

#[test]
fn an_exception_ends_the_command_with_its_traceback() {
    let program = file("python-fails.py", "print('before')\n1 / 0\n");
    let called = blockyard(["python", &program]);
    assert_eq!((called.status, called.out.as_str()), (1, "before\n"));
    assert!(
        called.err.contains("line 2") && called.err.contains("ZeroDivisionError: division by zero"),
        "{}",
        called.err
    );
}
