//! PyTorch programs, run without PyTorch and without a GPU.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use blockyard_cli::{PlayedProgram, json_line, play_program};
use pyo3::prelude::*;

use crate::error::BlockyardError;
use crate::file::SnapshotData;

/// The time between two looks at signals.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// What the thread of a program sends to the thread that called from Python.
enum Message {
    Printed(String),
    Ended(Box<Result<PlayedProgram, String>>),
}

/// Runs a program with the arguments of `blockyard python`, and calls `on_text` with each piece of text that
/// the program prints. Returns the JSON that the command prints with `--json`, and a snapshot of the devices.
///
/// If a signal handler raises, the program continues until its time limit.
#[pyfunction]
pub(crate) fn run_program(
    py: Python<'_>,
    arguments: Vec<String>,
    on_text: &Bound<'_, PyAny>,
) -> PyResult<(String, SnapshotData)> {
    let (send, mut messages) = mpsc::channel();
    std::thread::spawn(move || {
        let printed = send.clone();
        let played = play_program(&arguments, move |text| {
            // After an interrupt nobody receives messages.
            let _gone = printed.send(Message::Printed(text.to_owned()));
        });
        let _gone = send.send(Message::Ended(Box::new(played.map_err(|error| format!("{error:#}")))));
    });
    let ended = loop {
        // A receiver belongs to one thread at a time.
        let messages = &mut messages;
        match py.detach(move || messages.recv_timeout(CHECK_INTERVAL)) {
            Ok(Message::Printed(text)) => {
                on_text.call1((text,))?;
            }
            Ok(Message::Ended(ended)) => break *ended,
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => {
                break Err("the run ended without a result".to_owned());
            }
        }
    };
    let played = ended.map_err(BlockyardError::new_err)?;
    let summary =
        json_line(&played.summary).map_err(|error| BlockyardError::new_err(format!("{error:#}")))?;
    Ok((summary, SnapshotData { file: played.snapshot }))
}
