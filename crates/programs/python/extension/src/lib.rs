//! `_blockyard`: PyTorch's tensors, memory and autograd for `CPython`, over the crate `torch`.
//!
//! The Python of `crates/programs/python/lib` makes the package `torch` of four modules that this library adds
//! to `sys.modules`: `_torch` (tensors, types of elements, operators), `_torch_memory`, `_torch_autograd` and
//! `_host` (the run: its line, its clock, its limits, its remarks).
//!
//! # Reading order
//!
//! `run` (a run from its job to its outcome), `line` (where the program is), `objects` and `convert` (between
//! Python objects and the values of the crate `torch`), `values`, `tensor`, `operators`, `autograd`, `memory`
//! (what the modules offer), `unknown` (numbers that no recording of a GPU gives), `referrers` (what
//! the search for names that keep memory alive needs), `growth` (what the search for keepers needs), `learn`
//! (what recordings teach), `confined` (programs of others), `page` (the page's messages).
//!
//! # Decisions
//!
//! - **Python itself decides when objects die.** The library holds no object longer than PyTorch does, and
//!   tensors and nodes take part in the garbage collection as PyTorch's do, so that a tensor's block is freed
//!   where PyTorch frees it.
//! - **The stable ABI** (`abi3`, Python 3.10 and later): one library for every Python.

#![expect(clippy::needless_pass_by_value, reason = "PyO3 hands the arguments of functions over by value")]

mod autograd;
#[cfg(not(target_os = "emscripten"))]
mod confined;
mod convert;
mod errors;
mod growth;
#[cfg(not(target_os = "emscripten"))]
mod learn;
mod line;
mod memory;
mod objects;
mod operators;
#[cfg(target_os = "emscripten")]
mod page;
mod referrers;
mod run;
mod tensor;
mod unknown;
mod values;

use pyo3::prelude::*;

/// Makes the four modules.
#[pymodule]
fn _blockyard(python: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    let modules = python.import("sys")?.getattr("modules")?;
    let torch = PyModule::new(python, "_torch")?;
    values::add_to(&torch)?;
    tensor::add_to(&torch)?;
    operators::add_to(&torch)?;
    torch.add_function(wrap_pyfunction!(objects::register, &torch)?)?;
    torch.add_function(wrap_pyfunction!(line::current_line, &torch)?)?;
    let memory = PyModule::new(python, "_torch_memory")?;
    memory::add_to(&memory)?;
    let autograd = PyModule::new(python, "_torch_autograd")?;
    autograd::add_to(&autograd)?;
    let host = PyModule::new(python, "_host")?;
    run::add_to(&host)?;
    unknown::add_to(&host)?;
    #[cfg(not(target_os = "emscripten"))]
    {
        confined::add_to(&host)?;
        learn::add_to(&host)?;
    }
    referrers::add_to(&host)?;
    growth::add_to(&host)?;
    #[cfg(target_os = "emscripten")]
    page::add_to(&host)?;
    for added in [&torch, &memory, &autograd, &host] {
        modules.set_item(added.name()?, added)?;
    }
    module.add("host", host)
}
