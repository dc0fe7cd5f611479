//! The Blockyard page: the state of the page, its views, and the workers that it starts.
//!
//! All state is in one `Session` (`session.rs`). Few signals are written; everything else, from the
//! workload's text to the scene, is computed from them by the pure crates. This crate draws scenes, handles
//! events, and leaves long work to workers. It decides nothing about memory and lays out no figure.
//!
//! To find the way: `session` has the state that all features share (the source of a run, the run, the moment
//! in it), and a handle for each feature, such as `session.lessons()`. The module of a feature has its
//! signals and every action on it: `workload`, `program`, `story`, `lessons` and `files` are the sources of
//! runs that the figures can show, `live` of programs that run; `figures`, `lab` and `workbench` belong to
//! the run that is shown; `navigation` (with `link`, the form of an address), `appearance` and `messages`
//! belong to the page as a whole. `view` has the views, `workers` the way to a worker, `jobs`, `interpreter`,
//! `lab/pool` and `painter` what workers do, `browser` the calls of the browser.
//!
//! # Decisions
//!
//! The page as a whole:
//!
//! - **The page is small first**: size-optimized code with erased view types, boxed handlers in
//!   `view/kit.rs`, and our own gzip container around `flate2`'s inflate, whose checksum table alone would be
//!   16 KiB of every download. `cargo xtask size` has a budget for the first load and for each later part.
//!   Samples and the GPU's module are fetched when the page is idle, so that they open offline.
//! - **A module for each purpose**: the page; the workers' programs (`web/worker`), of which the one that reads
//!   files, verifies them and makes long runs is loaded once the page rests, the lab's after it, and that of
//!   reports for the first report; the device over WebGPU (`web/gpu`), which the worker loads for the first
//!   run on the GPU; Python, which is fetched and compiled for the first program. The page keeps the allocator
//!   for short runs, so that an answer to a key press does not travel.
//! - **Python is CPython** as the project Pyodide builds it, with our extension
//!   (`crates/programs/python/extension`) as a side module that `xtask/src/python.rs` links without Emscripten.
//!   Each program gets a new worker, so that ending the worker stops the program at once, and no program meets
//!   what another one left. The next worker starts Python before there is a program for it. Parts of Python's
//!   library that a page cannot use are left out, and so are its event loops, whose import is a third of the
//!   time that Python takes to start.
//! - **The page's own module is cut into parts** (`view/parts.rs`): the first screen, and the workbench, the
//!   lessons and programs, which are fetched when they are shown or once the page rests. Functions marked by
//!   `wasm_split_helpers`, Leptos' tool for lazy routes, are the parts; `xtask/src/bundle.rs` cuts the linked
//!   module there. Parts share the page's memory, so signals and state pass as they are. The texts of the
//!   lessons and the glossary are data of the lessons' part: the page's own module names lessons only by
//!   `blockyard_lessons::course`, and asks `view::parts::with_lessons` for the files.
//! - **The page holds nothing of an opened file.** The worker gets the `File` and reads pieces of 4 MiB,
//!   since the reader of snapshots is a stream. The recording goes to the page as soon as it is made, and the
//!   comparison with our allocator follows as a message.
//! - **One source and one place**: `session::Source` is the source of the run that the figures show, and
//!   `navigation::Place` the open part of the page. `link` writes both into the address and reads them back.
//!   Only `open_blob` in `files` makes a source out of a file's bytes.
//!
//! What runs:
//!
//! - **A run on the GPU is a command.** A run has effects, so it is not a memo: the worker returns its
//!   recording, as for a long run. A device that fails or is lost ends the run with a message, and the
//!   virtual device is used from then on.
//! - **The story of the first screen is a workload** (`story::Story`): a button adds a line with
//!   `workload::edit`, and the whole text runs again. Its sentences are written from the states before and
//!   after the last line, so every number comes from the run, except the CUDA context, which was measured.
//! - **A dragged size changes the text** (`workload::edit::resize`, `workload/resize.rs`), and everything
//!   else is computed from the text: the workload runs again for each size that the drag passes, so every
//!   shown number comes from a run. One undo takes the whole drag back.
//!
//! What is drawn:
//!
//! - **A frame is drawn with canvas** from a `Scene`. Where there is a GPU and 2,000 allocations or more, a
//!   worker draws allocations at their addresses (`crates/show/render`, `web/gpu/src/painter.rs`); the page's
//!   thread sends the part to show. The grid is still ready: it answers the pointer once the view rests, and
//!   draws where the GPU is lost, fails or is software, whose cost grows with the rectangles (`?painter=any`
//!   takes software too).
//! - **The grid's picture is made in slices** (`view/figure/allocations/picture.rs`) of 1.5 ms of a frame, first
//!   every eighth column. Until the picture is ready the last one is shown moved and stretched, so that a
//!   frame costs the page the same however much is drawn.
//! - **Chromium's GPU process ends with the first picture that its software adapter shows on a canvas**,
//!   unless the page itself is composed with Vulkan: all canvases of the page are empty then. So canvases are
//!   drawn again at `contextrestored`, the worker reports that its device is lost, and end-to-end tests run
//!   both ways (`GpuChoice::Software`, `GpuChoice::SoftwareScreen`).
//! - **The editor is a text field over colored lines.** Both break lines at the same letters, so the field is
//!   the browser's own, with its keys, its screen reader and its input methods. A text of more than 2,000
//!   lines does not wrap, and only its lines in sight have colors: a browser lays out the whole field at each
//!   key, which takes 180 to 300 ms at 100,000 lines. `workload` decides what may be typed (`complete`).
//! - **The page brings its typeface along.** `boot.js` waits for the faces before it starts the program,
//!   since a canvas does not wait. End-to-end tests see the page with one wide font in the place of the
//!   machine's (`Fonts::OneThatNobodyChose`). Figures are drawn larger where the page's letters are larger
//!   (`browser::text_scale`): on large screens, and for readers who set a larger size.

mod appearance;
mod browser;
mod canvas;
mod effect;
mod element_ids;
mod figures;
mod files;
mod frames;
mod gpu;
mod interpreter;
mod jobs;
mod lab;
mod lessons;
mod link;
mod live;
mod messages;
mod navigation;
mod numbers;
mod painter;
mod program;
mod ptr_eq;
mod python_program;
mod run;
mod session;
mod story;
mod surface;
mod view;
mod workbench;
mod workers;
mod workload;

#[cfg(test)]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// Shows the page.
pub fn start() {
    view::mount();
}
