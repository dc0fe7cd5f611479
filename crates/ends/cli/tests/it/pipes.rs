//! A reader that closes the pipe before the command has written everything.

use std::io::Read as _;
use std::process::Stdio;

use crate::{command, file, fixture};

/// Reads a few bytes of the output and closes the pipe: no error, no message.
fn check_silent(arguments: &[&str]) {
    let mut child = command()
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).expect("there is some output");
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "", "{arguments:?}");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
}

#[test]
fn a_closed_pipe_is_no_error() {
    // The output is far larger than a pipe holds, so the command is still writing when the reader closes the
    // pipe.
    check_silent(&["run", &fixture("programs/gpt2_varlen")]);
    let long = file("long.workload", "repeat 20000 { a = alloc 3 MiB; free a }");
    check_silent(&["play", &long, "--json"]);
    check_silent(&["play", &long]);
}

#[test]
fn help_names_the_three_commands() {
    let output = command().arg("--help").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for name in ["run", "verify", "play"] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(name)), "{help}");
    }
    assert_eq!(command().output().unwrap().status.code(), Some(2), "no command at all is an error");
    assert_eq!(command().arg("verify").output().unwrap().status.code(), Some(2), "no file is an error");
}
