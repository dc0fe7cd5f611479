//! PyTorch programs, run without PyTorch and without a GPU.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use blockyard_cli::{PlayedProgram, ProgramCall, json_line, play_program};
use blockyard_record::Bytes;
use blockyard_workload::parse_size;
use pyo3::prelude::*;

use crate::error::BlockyardError;
use crate::file::SnapshotData;
use crate::signals::CHECK_INTERVAL;

/// What the thread of a program sends to the thread that called from Python.
enum Message {
    Printed(String),
    Ended(Box<Result<PlayedProgram, String>>),
}

/// The GPU's name, how many GPUs the program sees, `PYTORCH_CUDA_ALLOC_CONF`, the memory of each GPU, and the
/// seconds after which the program is stopped. Without a memory, each GPU has its own.
#[derive(FromPyObject)]
pub(crate) struct ProgramConditions(String, u8, String, Option<Size>, u64);

/// A size as a number of bytes, or as the command takes it.
#[derive(FromPyObject)]
enum Size {
    Bytes(u64),
    Text(String),
}

impl Size {
    fn bytes(self) -> PyResult<Bytes> {
        match self {
            Self::Bytes(count) => Ok(Bytes::new(count)),
            Self::Text(text) => parse_size(&text).map_err(|error| BlockyardError::new_err(error.to_string())),
        }
    }
}

/// Runs a program without PyTorch, and calls `on_text` with each piece of text that the program prints.
/// Returns the JSON that `blockyard python --json` prints, and a snapshot of the devices.
///
/// If a signal handler raises, the program continues until its time limit.
#[pyfunction]
pub(crate) fn run_program(
    py: Python<'_>,
    file: PathBuf,
    arguments: Vec<String>,
    python: String,
    conditions: ProgramConditions,
    on_text: &Bound<'_, PyAny>,
) -> PyResult<(String, SnapshotData)> {
    let ProgramConditions(gpu, devices, conf, total_memory, seconds) = conditions;
    let call = ProgramCall {
        file,
        arguments,
        python,
        gpu,
        devices,
        conf,
        total_memory: total_memory.map(Size::bytes).transpose()?,
        time_limit: Duration::from_secs(seconds),
    };
    let (send, mut messages) = mpsc::channel();
    std::thread::spawn(move || {
        let printed = send.clone();
        let played = play_program(&call, move |text| {
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
