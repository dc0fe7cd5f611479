//! `_collector`: the functions of the module `gc`.

pub(crate) use _collector::module_def;

#[rustpython_vm::pymodule]
mod _collector {
    use rustpython_vm::function::OptionalArg;
    use rustpython_vm::{PyResult, VirtualMachine};

    use crate::collector;

    /// Frees what only cycles hold; returns how many objects that were.
    #[pyfunction]
    fn collect(generation: OptionalArg<i32>, vm: &VirtualMachine) -> PyResult<usize> {
        if !(0..=2).contains(&generation.unwrap_or(2)) {
            return Err(vm.new_value_error("invalid generation"));
        }
        Ok(collector::collect(vm).objects)
    }

    #[pyfunction]
    fn enable() {
        collector::set_enabled(true);
    }

    #[pyfunction]
    fn disable() {
        collector::set_enabled(false);
    }

    #[pyfunction]
    fn isenabled() -> bool {
        collector::is_enabled()
    }

    #[pyfunction]
    fn get_threshold() -> (u32, u32, u32) {
        collector::thresholds()
    }

    #[pyfunction]
    fn set_threshold(first: u32, second: OptionalArg<u32>, third: OptionalArg<u32>) {
        let (_, second_before, third_before) = collector::thresholds();
        collector::set_thresholds((first, second.unwrap_or(second_before), third.unwrap_or(third_before)));
    }

    #[pyfunction]
    fn get_count() -> (usize, usize, usize) {
        (collector::made_since(), 0, 0)
    }
}
