//! Runs on the reader's GPU.

use std::cell::RefCell;

use blockyard_device::{AnyDevice, DeviceError};
use blockyard_record::Bytes;
use blockyard_replay::job::{Job, JobError, JobOutput, read};
use blockyard_replay::{CheckedRun, Progress, RunError};
use wasm_bindgen::prelude::*;

use crate::device::{Gpu, PageDevice, adapter, device_error, open_gpu};
use crate::jobs::{Adapter, JobReport};

/// How long the worker sends work to the GPU before it reports progress and receives messages.
const TURN_MILLIS: f64 = 30.0;

/// How many bytes a run checks in steps that check all live blocks: some seconds of work at most.
fn full_check_bytes(adapter: &Adapter) -> Bytes {
    if adapter.is_software { Bytes::mib(256) } else { Bytes::gib(64) }
}

thread_local! {
    /// The adapter that this worker has opened.
    static OPEN: RefCell<Option<Gpu>> = const { RefCell::new(None) };
}

async fn open(script: &JsValue, wasm: &JsValue) -> Result<Gpu, DeviceError> {
    if let Some(gpu) = OPEN.with_borrow(Clone::clone) {
        return Ok(gpu);
    }
    let opened = open_gpu(script, wasm).await.map_err(|thrown| device_error(&thrown, Bytes::ZERO))?;
    let gpu: Gpu = opened.unchecked_into();
    OPEN.with_borrow_mut(|open| *open = Some(gpu.clone()));
    Ok(gpu)
}

/// Does the job on the adapter in turns. Between two turns it reports progress and reads the results of the
/// checks.
///
/// # Errors
///
/// [`JobError::Device`] if the adapter cannot be opened or fails; the other errors are those of a run on the
/// virtual device.
pub(crate) async fn run(
    job: &Job,
    script: &JsValue,
    wasm: &JsValue,
    mut on_report: impl FnMut(JobReport),
) -> Result<JobOutput, JobError> {
    let Job::Run { title, text, conf, capacity } = job else {
        return Err(JobError::OnlyWorkloadsOnGpu);
    };
    let (workload, settings) = read(title, text, conf, *capacity)?;
    let result: Result<_, RunError> = async {
        let gpu = open(script, wasm).await?;
        let adapter = adapter(&gpu);
        let full_check_bytes = full_check_bytes(&adapter);
        on_report(JobReport::Adapter(adapter));
        let device = PageDevice::start(&gpu, *capacity);
        let any = AnyDevice::new(device.clone());
        let mut run = CheckedRun::new(any, device.clone(), full_check_bytes, &settings, &workload);
        let total = workload.requests().len() as u64;
        loop {
            let goes_on = turn(&mut run)?;
            for (step, wrong) in device.mismatches().await? {
                run.found(step, wrong);
            }
            if !goes_on {
                break;
            }
            let done = run.steps_done() as u64;
            let phase = "running on the GPU".to_owned();
            on_report(JobReport::Progress(Progress { phase, done, total }));
        }
        // The memory of this run is released now, so that the next run need not wait for the release.
        PageDevice::start(&gpu, Bytes::ZERO);
        run.finish()
    }
    .await;
    match result {
        Ok((recording, checks)) => {
            Ok(JobOutput { workload, recording, opened: None, data_checks: Some(checks) })
        }
        Err(error) => {
            // The next run opens the adapter again.
            OPEN.with_borrow_mut(Option::take);
            Err(error.into())
        }
    }
}

/// Runs steps for [`TURN_MILLIS`]. Returns whether there are more steps.
fn turn(run: &mut CheckedRun) -> Result<bool, RunError> {
    let begun = js_sys::Date::now();
    while js_sys::Date::now() - begun < TURN_MILLIS {
        if !run.step()? {
            return Ok(false);
        }
    }
    Ok(true)
}
