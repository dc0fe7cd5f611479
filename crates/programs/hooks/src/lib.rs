//! What our libraries and files have in common that run inside a program's own Python: dry runs, `watch`, the
//! simulation and the plug-in.

#[cfg(unix)]
pub mod python_api;
pub mod variables;

/// A Python module. It calls a function with a module, once Python has loaded that module.
pub const LOADED: &str = include_str!("loaded.py");

/// The files of the Python package `blockyard_keepers`, which finds the objects that keep more and more memory.
pub const KEEPERS: [(&str, &str); 4] = [
    ("blockyard_keepers/__init__.py", include_str!("blockyard_keepers/__init__.py")),
    ("blockyard_keepers/growth.py", include_str!("blockyard_keepers/growth.py")),
    ("blockyard_keepers/put_lines.py", include_str!("blockyard_keepers/put_lines.py")),
    ("blockyard_keepers/search.py", include_str!("blockyard_keepers/search.py")),
];
