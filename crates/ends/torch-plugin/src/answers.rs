//! Functions for the Python module that PyTorch has only for its own allocator.
//!
//! On an error, functions that return a text return null, and the others return -1 instead of 0;
//! [`blockyard_last_error`] says why. The caller frees texts with [`blockyard_free_text`].
#![expect(unsafe_code, reason = "functions are exported to C under their own names")]

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr;

use blockyard_device::DeviceMemory as _;
use blockyard_pytorch::{memory_stats_in, memory_summary};
use blockyard_record::Stats;
use serde_json::{Map, Value};

use crate::border::{c_text, last_error, read_text, run_answer};
use crate::devices::{Allocator, Device, follow, settings};
use crate::error::PluginError;
use crate::history::History;
use crate::{files, hooks, python_stack};

const FAILED: c_int = -1;

/// Why the last call of this thread failed; the text is valid until the thread's next error.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_last_error() -> *const c_char {
    last_error()
}

/// Frees a text of this library; null is ignored.
///
/// # Safety
///
/// `text` must be null or a text that a function of this library returned, and must not have been freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `CString::into_raw`, as the caller says.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Follows the rules of this version of PyTorch (`torch.__version__`), or of the nearest release that is
/// known. The call counts for devices that are first used after it; without a call the rules are those of the
/// oldest release that is known.
///
/// # Safety
///
/// `version` is null, which is an error, or text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_follow_release(version: *const c_char) -> c_int {
    done(|| {
        // SAFETY: as the caller says.
        follow(&unsafe { read_text(version, "version") }?);
        Ok(())
    })
}

/// Whether the settings of the environment can be used.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_check_settings() -> c_int {
    done(|| settings().map(drop))
}

/// The result of `torch.cuda.memory_stats()`, as JSON, with the keys of the release; zeros for a device that
/// was not used yet.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_memory_stats(device: c_int) -> *mut c_char {
    text(|| {
        let release = settings()?.release();
        let all = match Device::opened(device) {
            Some(device) => device.allocator.with(|allocator| {
                memory_stats_in(release, &allocator.stats(), allocator.reserved_by_private_pools())
            }),
            None => memory_stats_in(release, &stats(device)?, &BTreeMap::new()),
        };
        let all: Map<String, Value> = all.into_iter().map(|(key, value)| (key, Value::from(value))).collect();
        Ok(Value::Object(all).to_string())
    })
}

/// The result of `torch.cuda.memory_summary()`.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_memory_summary(device: c_int, is_abbreviated: c_int) -> *mut c_char {
    text(|| {
        let number = u32::try_from(device).map_err(|_| PluginError::NoSuchDevice(device))?;
        Ok(memory_summary(&stats(device)?, number, is_abbreviated != 0))
    })
}

/// Gives the cached memory of all devices back.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_empty_cache() -> c_int {
    done(hooks::empty_caches)
}

/// Sets every peak of the device to its current value.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_reset_peak_stats(device: c_int) -> c_int {
    done(|| {
        if let Some(device) = Device::opened(device) {
            device.allocator.with(Allocator::reset_peak_stats);
        }
        Ok(())
    })
}

/// Sets all accumulated counts of the device to zero.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_reset_accumulated_stats(device: c_int) -> c_int {
    done(|| {
        if let Some(device) = Device::opened(device) {
            device.allocator.with(Allocator::reset_accumulated_stats);
        }
        Ok(())
    })
}

/// Records the device's events from now on, for the trace in [`blockyard_snapshot`]: the last `most` entries,
/// all entries for 0. An earlier trace is deleted.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_trace_start(device: c_int, max_entries: usize) -> c_int {
    done(|| {
        let device = Device::get_or_open(device)?;
        let most = if max_entries == 0 { usize::MAX } else { max_entries };
        device.allocator.with_fresh_ids(|allocator| {
            let history = begin(device, allocator, most)?;
            allocator.sink_mut().set_trace(Some(history));
            Ok(())
        })
    })
}

/// Whether entries have the Python stack of the thread that allocates or frees, from now on; for all devices.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_trace_stacks(is_on: c_int) -> c_int {
    done(|| python_stack::set_on(is_on != 0))
}

/// Stops the trace of [`blockyard_trace_start`] and deletes it.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_trace_stop(device: c_int) -> c_int {
    done(|| {
        if let Some(device) = Device::opened(device) {
            device.allocator.with(|allocator| allocator.sink_mut().set_trace(None));
        }
        Ok(())
    })
}

/// All segments and traces of all devices as JSON, which the Python module turns into PyTorch's dictionary.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_snapshot() -> *mut c_char {
    text(files::snapshot)
}

/// Starts a recording of the device.
#[unsafe(no_mangle)]
pub extern "C" fn blockyard_record_start(device: c_int) -> c_int {
    done(|| {
        let index = device;
        let device = Device::get_or_open(device)?;
        device.allocator.with_fresh_ids(|allocator| {
            if allocator.sink_mut().recording_mut().is_some() {
                return Err(PluginError::Recording(index));
            }
            let history = begin(device, allocator, usize::MAX)?;
            allocator.sink_mut().set_recording(Some(history));
            Ok(())
        })
    })
}

/// Notes the statistics of this moment in the recording, under that name.
///
/// # Safety
///
/// `label` is null, which is an error, or text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_record_mark(device: c_int, label: *const c_char) -> c_int {
    done(|| {
        // SAFETY: as the caller says.
        let label = unsafe { read_text(label, "label") }?;
        let used = Device::opened(device).ok_or(PluginError::NotRecording(device))?;
        used.allocator.with(|allocator| {
            let recording = allocator.sink_mut().recording_mut();
            recording.ok_or(PluginError::NotRecording(device))?.add_checkpoint(label);
            Ok(())
        })
    })
}

/// Ends the recording of the device and writes it to `path`, packed where the path ends in `.gz`; with a null
/// path the recording is dropped. `name` is the name of the recording, `torch` the version of PyTorch.
///
/// # Safety
///
/// Each text is null, which is an error but for the path, or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn blockyard_record_finish(
    device: c_int,
    path: *const c_char,
    name: *const c_char,
    torch: *const c_char,
) -> c_int {
    done(|| {
        let used = Device::opened(device).ok_or(PluginError::NotRecording(device))?;
        let end = used.allocator.with(|allocator| {
            let history = allocator.sink_mut().set_recording(None)?;
            Some(files::FinishedRecording {
                history,
                snapshot: allocator.snapshot(),
                total: allocator.device().total_memory(),
                device: allocator.device().name().to_owned(),
            })
        });
        let end = end.ok_or(PluginError::NotRecording(device))?;
        if path.is_null() {
            return Ok(());
        }
        // SAFETY: as the caller says.
        let [path, name, torch] =
            unsafe { [read_text(path, "path")?, read_text(name, "name")?, read_text(torch, "torch")?] };
        let path = PathBuf::from(path);
        if let Some(source) = end.history.error() {
            return Err(PluginError::History { device, source });
        }
        let lines = end.lines(name, torch, used.settings_text());
        files::write(&path, &lines).map_err(|source| PluginError::Write { path, source })
    })
}

fn begin(device: &Device, allocator: &Allocator, most: usize) -> Result<History, PluginError> {
    let max_split_size = allocator.stats().max_split_size;
    let total = allocator.device().total_memory();
    History::new(total, &allocator.snapshot(), max_split_size, most)
        .map_err(|source| PluginError::History { device: device.index, source })
}

fn stats(device: c_int) -> Result<Stats, PluginError> {
    match Device::opened(device) {
        Some(device) => Ok(device.allocator.with(|allocator| allocator.stats())),
        None => Ok(Stats { max_split_size: settings()?.max_split_size_signed(), ..Stats::default() }),
    }
}

fn done(act: impl FnOnce() -> Result<(), PluginError>) -> c_int {
    run_answer(FAILED, || act().map(|()| 0))
}

fn text(act: impl FnOnce() -> Result<String, PluginError>) -> *mut c_char {
    run_answer(ptr::null_mut(), || act().map(|text| c_text(text).into_raw()))
}
