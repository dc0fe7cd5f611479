//! `_host`: standard output, files beside the program, and remarks.

pub(crate) use _host::module_def;

#[rustpython_vm::pymodule]
mod _host {
    use blockyard_rules::{AllocatorConfig, BlasVariables, ConfigError};
    use rustpython_vm::builtins::PyStrRef;
    use rustpython_vm::{PyResult, VirtualMachine};

    use crate::host;

    /// Writes to the program's output; returns the number of characters.
    #[pyfunction]
    fn write(text: PyStrRef) -> usize {
        let text = text.to_string_lossy();
        host::with(|host| host.output.print(&text));
        text.chars().count()
    }

    /// Notes a change of the environment that the allocator's settings or workspaces may read.
    #[pyfunction]
    fn environment_changed(key: PyStrRef, value: PyStrRef, vm: &VirtualMachine) -> PyResult<()> {
        let (key, value) = (key.to_string_lossy(), value.to_string_lossy());
        if BlasVariables::NAMES.contains(&key.as_ref()) {
            let session = blockyard_torch::session();
            let mut variables = session.blas_variables();
            let line = crate::position::current_line(vm);
            if !variables.set(&key, &value) {
                host::note(line, format!("{key} is not understood, as in PyTorch: it changes nothing"));
            } else if !session.set_blas_variables(variables) {
                host::note(
                    line,
                    format!(
                        "{key} is read at the first product of matrices, which was before this line: it changes nothing"
                    ),
                );
            }
            return Ok(());
        }
        if !matches!(key.as_ref(), "PYTORCH_CUDA_ALLOC_CONF" | "PYTORCH_ALLOC_CONF") {
            return Ok(());
        }
        let session = blockyard_torch::session();
        let config = AllocatorConfig::parse(&value, session.release())
            .map_err(|error: ConfigError| vm.new_runtime_error(error.to_string()))?;
        let line = crate::position::current_line(vm);
        for warning in config.warnings() {
            host::note(line, warning.clone());
        }
        if !session.configure(&config) {
            host::note(
                line,
                format!(
                    "{key} is read at the first allocation on a GPU, which was before this line: it changes nothing"
                ),
            );
        }
        Ok(())
    }

    /// The file and the text of a module beside the program.
    #[pyfunction]
    fn read_module(path: PyStrRef) -> Option<(String, String)> {
        host::read_module(&path.to_string_lossy())
    }

    /// Whether there is a folder of this name beside the program.
    #[pyfunction]
    fn is_folder(path: PyStrRef) -> bool {
        host::is_folder(&path.to_string_lossy())
    }

    /// Whether the program asserts the value that it computes now.
    #[pyfunction]
    fn is_asserted(vm: &VirtualMachine) -> bool {
        crate::position::is_asserted(vm)
    }

    /// Whether the program looks up an element now.
    #[pyfunction]
    fn is_subscript(vm: &VirtualMachine) -> bool {
        crate::position::is_subscript(vm)
    }

    /// Notes a remark about the line that runs.
    #[pyfunction]
    fn note(text: PyStrRef, vm: &VirtualMachine) {
        host::note(crate::position::current_line(vm), text.to_string_lossy());
    }
}
