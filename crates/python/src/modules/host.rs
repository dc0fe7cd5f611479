//! `_host`: standard output, and what else the interpreter's host gives.

pub(crate) use _host::module_def;

#[rustpython_vm::pymodule]
mod _host {
    use rustpython_vm::VirtualMachine;
    use rustpython_vm::builtins::PyStrRef;

    use crate::host;

    /// Writes to the program's output; returns the number of characters.
    #[pyfunction]
    fn write(text: PyStrRef) -> usize {
        let text = text.to_string_lossy();
        host::with(|host| host.output.print(&text));
        text.chars().count()
    }

    /// Notes a change of the environment that the allocator's settings may read.
    #[pyfunction]
    fn environment_changed(key: PyStrRef, value: PyStrRef) {
        host::with(|host| {
            host.environment.insert(key.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        });
    }

    /// Notes a remark about the line that runs.
    #[pyfunction]
    fn note(text: PyStrRef, vm: &VirtualMachine) {
        host::note(crate::position::current_line(vm), text.to_string_lossy());
    }
}
