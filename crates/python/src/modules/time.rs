//! `time` over a clock that only the program moves, so that every run is the same.

pub(crate) use time::module_def;

#[rustpython_vm::pymodule]
mod time {
    use rustpython_vm::function::ArgIntoFloat;
    use rustpython_vm::{PyResult, VirtualMachine};

    use crate::host;

    /// The first second of 2026.
    const EPOCH: f64 = 1_767_225_600.0;
    /// Seconds that each look at the clock takes, so that no duration is zero.
    const TICK: f64 = 1e-4;

    fn now() -> f64 {
        host::with(|host| {
            host.clock += TICK;
            host.clock
        })
        .unwrap_or_default()
    }

    #[pyfunction]
    fn time() -> f64 {
        EPOCH + now()
    }

    #[pyfunction]
    fn perf_counter() -> f64 {
        now()
    }

    #[pyfunction]
    fn monotonic() -> f64 {
        now()
    }

    #[pyfunction]
    fn process_time() -> f64 {
        now()
    }

    #[expect(clippy::cast_possible_truncation, reason = "a clock of some hours")]
    fn nanoseconds(seconds: f64) -> i64 {
        (seconds * 1e9) as i64
    }

    #[pyfunction]
    fn time_ns() -> i64 {
        nanoseconds(EPOCH + now())
    }

    #[pyfunction]
    fn perf_counter_ns() -> i64 {
        nanoseconds(now())
    }

    #[pyfunction]
    fn monotonic_ns() -> i64 {
        nanoseconds(now())
    }

    #[pyfunction]
    fn sleep(seconds: ArgIntoFloat, vm: &VirtualMachine) -> PyResult<()> {
        let seconds: f64 = seconds.into();
        if seconds < 0.0 {
            return Err(vm.new_value_error("sleep length must be non-negative"));
        }
        host::with(|host| host.clock += seconds);
        Ok(())
    }
}
