//! PyTorch's own library, run by `native/driver.cpp` in a separate process.

use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use blockyard_rules::Release;

use crate::answer::{OperationReply, Paths, ReturnValue, SequenceResult};
use crate::ours::settings_error;
use crate::sequence::{Operation, Sequence};
use crate::wheel::WheelPaths;
use crate::{native, wire};

/// A running driver. Each sequence starts in a fresh process with the library.
#[derive(Debug)]
pub struct Library {
    child: Child,
    requests: Option<ChildStdin>,
    responses: BufReader<ChildStdout>,
}

/// A sequence that the driver is busy with.
#[must_use]
#[derive(Debug)]
pub struct PendingAnswer {
    operations: usize,
    /// The indices of the operations that change settings.
    changes: Vec<usize>,
    wants_all: bool,
}

impl Library {
    /// Builds the driver if need be and starts it.
    ///
    /// # Errors
    ///
    /// When the C++ compiler is missing or refuses, or the driver does not start.
    pub fn start(target: &Path, wheel: &WheelPaths, release: Release) -> Result<Self> {
        let cudart = native::build_cudart(target, release)?;
        let driver = build(target, wheel, release, &cudart)?;
        let folder = target.join("oracle");
        // The folder of our runtime is first, so that no other libcudart of the machine is loaded.
        let libraries = [folder.as_path(), &wheel.libraries];
        let path =
            std::env::join_paths(libraries.iter().map(std::path::absolute).collect::<Result<Vec<_>, _>>()?)?;
        let log = File::create(folder.join("driver.log")).context("cannot write the driver's log")?;
        let mut command = Command::new(std::path::absolute(driver)?);
        command.env("LD_LIBRARY_PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        for name in [
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_HIP_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
            "PYTORCH_NO_CUDA_MEMORY_CACHING",
        ] {
            command.env_remove(name);
        }
        // Expandable segments ask for handles that other processes can open, and for GPUs that reach each
        // other, unless this is off.
        command.env("TORCH_CUDA_EXPANDABLE_SEGMENTS_IPC", "0");
        let mut child = command.spawn().context("the driver of PyTorch's library does not start")?;
        let requests = child.stdin.take();
        let responses = BufReader::new(child.stdout.take().context("the driver has no output")?);
        Ok(Self { child, requests, responses })
    }

    /// Starts the sequence; [`Library::answer`] waits for the answer.
    ///
    /// # Errors
    ///
    /// When the driver ended.
    pub fn ask(&mut self, sequence: &Sequence, wants_all: bool) -> Result<PendingAnswer> {
        let words = wire::encode(sequence, wants_all);
        let mut bytes = Vec::with_capacity(8 * words.len() + 8);
        bytes.extend((words.len() as u64).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        let requests = self.requests.as_mut().context("the driver was ended")?;
        requests.write_all(&bytes).and_then(|()| requests.flush()).context("the driver ended")?;
        let operations = sequence.operations.iter().enumerate();
        let changes = operations
            .filter(|(_, operation)| matches!(operation, Operation::ApplySettings { .. }))
            .map(|(index, _)| index);
        Ok(PendingAnswer { operations: sequence.operations.len(), changes: changes.collect(), wants_all })
    }

    /// The answer to the last sequence, and the counts of the paths that PyTorch took.
    ///
    /// # Errors
    ///
    /// When the library died over the sequence.
    pub fn answer(&mut self, asked: PendingAnswer) -> Result<(SequenceResult, Paths)> {
        let mut count = [0; 8];
        self.responses.read_exact(&mut count).context("the driver ended")?;
        let mut bytes = vec![0; 8 * usize::try_from(u64::from_ne_bytes(count))?];
        self.responses.read_exact(&mut bytes).context("the driver ended")?;
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let (mut answer, paths) = wire::decode(&words, asked.operations, asked.wants_all)?;
        for index in asked.changes {
            if let Some(OperationReply { reply: ReturnValue::Failed(text), .. }) = answer.steps.get_mut(index)
            {
                *text = settings_error(text);
            }
        }
        Ok((answer, paths))
    }
}

impl Library {
    /// Runs the sequence and waits for the answer.
    ///
    /// # Errors
    ///
    /// When the library died over the sequence.
    pub fn run(&mut self, sequence: &Sequence, wants_all: bool) -> Result<SequenceResult> {
        let asked = self.ask(sequence, wants_all)?;
        Ok(self.answer(asked)?.0)
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // The driver ends when its input is closed.
        self.requests = None;
        let _status = self.child.wait();
    }
}

fn build(target: &Path, wheel: &WheelPaths, release: Release, cudart: &Path) -> Result<PathBuf> {
    let include = format!("-isystem{}", wheel.include.display());
    let libraries = format!("-L{}", wheel.libraries.display());
    let cudart = cudart.display().to_string();
    let minor = format!("-DRELEASE={}", release.minor());
    // The layout of C++'s own types in the wheel.
    let layout = format!("-D_GLIBCXX_USE_CXX11_ABI={}", u8::from(release.minor() >= 7));
    native::compile(
        &[native::sources().join("driver.cpp")],
        // The driver's `dlopen` must be found before the system's, so the program exports its symbols.
        &[&minor, &layout, &include, &libraries, "-lc10_cuda", "-lc10", &cudart, "-Wl,-export-dynamic"],
        &target.join(format!("oracle/driver-{release}")),
    )
}
