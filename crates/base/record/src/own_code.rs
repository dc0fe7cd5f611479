//! The rule which frames of a stack are the program's own code, and which are a library's.
//!
//! Every list of holders of a file and every answer that names a line of a file uses this rule, so that two of
//! them name the same line. A dry run looks at the frames of the running program. These are Python's alone, so
//! that its rule is [`is_library_file`]: the standin calls it, and the runner's `places.py` says the same.

use std::path::Path;

use crate::{Frame, FrameId, StackId, Stacks};

/// Parts of paths that only the files of installed packages have, and those of Python itself.
pub const INSTALLED_PATHS: [&str; 5] =
    ["site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/usr/lib/"];

/// How the names of files of compiled extensions, and of the objects in them, end. A program calls such code;
/// the code is not the program's own.
const COMPILED: [&str; 8] = [".cpp", ".cc", ".c", ".h", ".cu", ".so", ".o", ".pyx"];

/// How the name of a frame begins if the name of its file was left out, as in a report that names no files:
/// `call site 3`.
pub const UNNAMED_SITE: &str = "call site ";

/// How the name of a file of Python ends.
const PYTHON: &str = ".py";

/// The name of the frame in which a simulated run allocates what a library works in.
pub const WORKSPACE_FRAME: &str = "workspace";

/// Parts of the names of the functions in which PyTorch allocates what a library works in, as
/// `at::cuda::getCUDABlasLtWorkspace`.
const WORKSPACES: [&str; 2] = ["Workspace", "getCurrentCUDABlasHandle"];

/// The namespace of PyTorch's backward functions.
const BACKWARD: &str = "torch::autograd::";

/// The folder of a dry run's runner, and its other files where the command keeps them.
const RUNNER_PATHS: [&str; 2] = ["/runner/blockyard_dry_run/", "/runner/children/sitecustomize.py"];

/// How the first file of a dry run's runner ends, and a part of its path.
const RUNNER_START: (&str, &str) = ("/runner/__main__.py", "/blockyard/standin/");

/// How the names of the functions begin with which PyTorch records a stack: they are its innermost frames.
const STACK_RECORDERS: [&str; 2] = ["torch::unwind::", "torch::CapturedTraceback::"];

/// Whether a file of Python is an installed package's, Python's own or the runner's of a dry run, or no file
/// at all (`<frozen runpy>`).
#[must_use]
pub fn is_library_file(file: &str) -> bool {
    file.starts_with('<') || INSTALLED_PATHS.iter().any(|part| file.contains(part)) || is_of_runner(file)
}

/// Whether a file is a part of a dry run's runner, which calls the program.
fn is_of_runner(file: &str) -> bool {
    let (end, part) = RUNNER_START;
    RUNNER_PATHS.iter().any(|part| file.contains(part)) || (file.ends_with(end) && file.contains(part))
}

/// Whether a frame exists only because the stack was recorded, or because the program ran in a dry run: it
/// says nothing about the program.
fn is_of_recorder(frame: Frame<'_>) -> bool {
    is_of_runner(frame.filename) || STACK_RECORDERS.iter().any(|name| frame.name.starts_with(name))
}

impl Frame<'_> {
    /// Whether the frame's file is a text of Python: no cell of a notebook, and no library of C++.
    #[must_use]
    pub fn is_of_python_file(&self) -> bool {
        Path::new(self.filename).extension().is_some_and(|extension| extension == "py")
    }

    /// Whether the frame is a library's: of PyTorch, an installed package, Python's own library, an
    /// extension, or of no file with a name.
    #[must_use]
    pub fn is_of_library(&self) -> bool {
        let file = self.filename;
        is_library_file(file)
            // PyTorch's own files, in a build that is not installed and as a file of the text names them.
            || file.starts_with("torch/")
            || file.contains("/torch/")
            || file.starts_with("??")
            // A frame of C++ whose file is not known. PyTorch records these frames too, unless it is asked
            // for Python's alone.
            || (file.is_empty() && !self.name.starts_with(UNNAMED_SITE))
            || COMPILED.iter().any(|end| file.ends_with(end))
    }
}

impl Stacks {
    /// The innermost frame of the program's own code; else, in a thread of backward, the backward function;
    /// else the operator; else the innermost frame that did not record the stack. `None` where there is none.
    #[must_use]
    pub fn own_frame(&self, stack: StackId) -> Option<FrameId> {
        let own = self.frames(stack).find(|frame| !self.frame(*frame).is_of_library());
        let backward = || self.frames(stack).find(|frame| is_backward_function(self.frame(*frame).name));
        let operator = || self.frames(stack).find(|frame| is_operator(self.frame(*frame).name));
        let first = || self.frames(stack).find(|frame| !is_of_recorder(self.frame(*frame)));
        own.or_else(backward).or_else(operator).or_else(first)
    }
}

impl Stacks {
    /// What the program's own line called: the operator of PyTorch, or else the innermost function of Python.
    /// `None` where the line called nothing of a library, or where the stack has no line of the program. Other
    /// functions of C++ are many, and say less.
    #[must_use]
    pub fn called_frame(&self, stack: StackId) -> Option<FrameId> {
        let own = self.frames(stack).position(|frame| !self.frame(frame).is_of_library())?;
        let called = || self.frames(stack).take(own);
        let operator = called().find(|frame| is_operator(self.frame(*frame).name));
        operator.or_else(|| called().find(|frame| self.frame(*frame).filename.ends_with(PYTHON)))
    }
}

/// Whether a frame is a backward function of PyTorch, at its call:
/// `torch::autograd::generated::PowBackward0::apply(...)`.
pub(crate) fn is_backward_function(name: &str) -> bool {
    name.strip_prefix(BACKWARD).is_some_and(|rest| rest.contains("::apply("))
}

/// Whether a frame is an operator of PyTorch, at its call: `at::_ops::sum_dim_IntList::call(...)`.
fn is_operator(name: &str) -> bool {
    name.strip_prefix("at::_ops::").is_some_and(|rest| rest.contains("::call("))
}

/// The innermost line of the program's own code in a stack of texts, `function (file:line)`, innermost first;
/// else as [`Stacks::own_frame`].
#[must_use]
pub fn own_line(stack: &[String]) -> Option<&str> {
    let backward = || stack.iter().find(|line| is_backward_function(line));
    let operator = || stack.iter().find(|line| is_operator(line));
    stack
        .iter()
        .find(|line| is_own(line))
        .or_else(backward)
        .or_else(operator)
        .or_else(|| stack.iter().find(|line| !is_of_recorder(frame_of(line))))
        .map(String::as_str)
}

/// The line of the program's own code that called the [`own_line`] of a stack; `None` where the own line is a
/// library's, or has no caller.
#[must_use]
pub fn own_caller(stack: &[String]) -> Option<&str> {
    let mut own = stack.iter().filter(|line| is_own(line));
    own.next()?;
    own.next().map(String::as_str)
}

/// The operator that the [`own_line`] of a stack calls, as a word: `relu`. It tells apart what one line
/// allocates in several calls. `None` where nothing of a library is called.
#[must_use]
pub fn own_operator(stack: &[String]) -> Option<String> {
    let called = || stack.iter().take_while(|line| !is_own(line));
    let of_cpp = called().filter(|line| is_operator(line)).last();
    let name = of_cpp.and_then(|line| line.strip_prefix("at::_ops::")?.split("::").next());
    if let Some(name) = name {
        return Some(name.to_owned());
    }
    // Functions of Python alone: the innermost one, unless the stack begins with frames of C++.
    let first = called().next().filter(|_| stack.iter().any(|line| is_own(line)))?;
    let (name, place) = first.strip_suffix(')')?.rsplit_once(" (")?;
    let file = place.rsplit(['/', '\\']).next()?.split('.').next()?;
    match name {
        name if name.contains("::") => None,
        "forward" | "__call__" | "<lambda>" => Some(format!("{name} of {file}")),
        name => Some(name.to_owned()),
    }
}

/// The holder of an allocation, as its stack says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackHolder {
    /// Code of the program or of a package that it uses, which can free it.
    Program,
    /// A library, which keeps it to work in.
    Workspace,
    /// PyTorch's own code: the stack has no other line of Python, or there is no stack.
    PyTorch,
}

impl StackHolder {
    /// The holder of an allocation with this stack, innermost frame first.
    #[must_use]
    pub fn of<'a>(stack: impl Iterator<Item = Frame<'a>>) -> Self {
        let mut found = Self::PyTorch;
        for frame in stack {
            let is_of_library = frame.is_of_library();
            let has_part = || WORKSPACES.iter().any(|part| frame.name.contains(part));
            if is_of_library && (frame.name == WORKSPACE_FRAME || has_part()) {
                return Self::Workspace;
            }
            let is_of_torch = frame.filename.starts_with("torch/") || frame.filename.contains("/torch/");
            if !is_of_library || (frame.filename.ends_with(PYTHON) && !is_of_torch) {
                found = Self::Program;
            }
        }
        found
    }

    /// The holder of an allocation with this stack of texts, `function (file:line)` each, innermost first.
    #[must_use]
    pub fn from_texts(stack: &[String]) -> Self {
        Self::of(stack.iter().map(|line| frame_of(line)))
    }
}

/// The frame of one text of a stack, `function (file:line)`; the number of the line is left out.
pub(crate) fn frame_of(line: &str) -> Frame<'_> {
    let (name, place) = line.strip_suffix(')').unwrap_or(line).rsplit_once(" (").unwrap_or(("", line));
    let filename = place.rsplit_once(':').map_or(place, |(file, _)| file);
    Frame { name, filename, line: 0 }
}

/// Whether a text of a stack is a line of the program's own code.
fn is_own(line: &str) -> bool {
    !frame_of(line).is_of_library()
}

/// The path from the package on, or else its last two parts.
#[must_use]
pub fn shortened_path(path: &str) -> &str {
    if let Some((_, inside)) =
        path.rsplit_once("site-packages/").or_else(|| path.rsplit_once("dist-packages/"))
    {
        return inside;
    }
    // PyTorch's own files are written from the package on.
    if path.starts_with("torch/") {
        return path;
    }
    let mut slashes = path.rmatch_indices('/');
    slashes.next();
    slashes.next().and_then(|(at, _)| path.get(at.saturating_add(1)..)).unwrap_or(path)
}

/// A frame of a stack of texts as figures write it: `step train.py:26` for `step (train.py:26)`, and the
/// function alone where the file's name was left out.
#[must_use]
pub fn frame_text(line: &str) -> String {
    match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        // A signature of C++ is long, and its name says enough.
        Some((name, ":0" | "??:0")) => without_arguments(name).to_owned(),
        // A line whose function is not known.
        Some(("", place)) => shortened_path(place).to_owned(),
        Some((name, place)) => format!("{name} {}", shortened_path(place)),
        None => line.to_owned(),
    }
}

/// The name of a function in a word: `PowBackward0` and `relu` for PyTorch's backward functions and operators, and
/// any other function without the list of its arguments.
#[must_use]
pub fn function_name(name: &str) -> &str {
    let operator = name.strip_prefix("at::_ops::").and_then(|rest| rest.split("::").next());
    let backward = || name.strip_prefix(BACKWARD)?.split_once("::apply(")?.0.rsplit("::").next();
    operator.or_else(backward).unwrap_or_else(|| without_arguments(name))
}

/// The name of a function of C++ without the list of its arguments.
fn without_arguments(signature: &str) -> &str {
    let mut opened = signature.match_indices('(');
    let is_list =
        |at: usize| signature.get(at..).is_some_and(|rest| !rest.starts_with("(anonymous namespace)"));
    let list = opened.find(|(at, _)| is_list(*at));
    list.and_then(|(at, _)| signature.get(..at)).unwrap_or(signature)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_that_a_line_calls_is_named() {
        let stack = |frames: &[&str]| frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>();
        let relu = stack(&["relu (/x/site-packages/torch/nn/functional.py:1723)", "step (train.py:26)"]);
        assert_eq!(own_operator(&relu).as_deref(), Some("relu"));
        let linear = stack(&[
            "forward (/x/site-packages/torch/nn/modules/linear.py:134)",
            "_call_impl (/x/site-packages/torch/nn/modules/module.py:1790)",
            "step (train.py:26)",
        ]);
        assert_eq!(own_operator(&linear).as_deref(), Some("forward of linear"));
        let cpp = stack(&[
            "c10::cuda::malloc(unsigned long) (??:0)",
            "at::_ops::empty::call(long) (??:0)",
            "at::_ops::mul_Tensor::call(at::Tensor const&) (??:0)",
            "step (train.py:26)",
        ]);
        assert_eq!(own_operator(&cpp).as_deref(), Some("mul_Tensor"));
        assert_eq!(own_operator(&stack(&["step (train.py:26)"])), None);
        assert_eq!(own_operator(&stack(&["line 4"])), None);
        assert_eq!(own_operator(&[]), None);
    }

    #[test]
    fn a_workspace_and_a_block_of_pytorch_are_not_the_programs() {
        let holder = |frames: &[&str]| {
            StackHolder::from_texts(&frames.iter().map(|frame| (*frame).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(holder(&["step (train.py:26)"]), StackHolder::Program);
        // A package of the reader's own may be installed.
        assert_eq!(holder(&["step (/x/site-packages/mine/train.py:26)"]), StackHolder::Program);
        let blas = "at::cuda::getCUDABlasLtWorkspace() (??:0)";
        assert_eq!(holder(&[blas, "step (train.py:26)"]), StackHolder::Workspace);
        assert_eq!(holder(&["workspace (:0)", " (program.py:3)"]), StackHolder::Workspace);
        // A function of the program may have any name.
        assert_eq!(holder(&["makeWorkspace (train.py:3)"]), StackHolder::Program);
        let backward = "torch::autograd::generated::PowBackward0::apply(std::vector<at::Tensor>&&) (:0)";
        assert_eq!(holder(&[backward]), StackHolder::PyTorch);
        assert_eq!(
            holder(&["alloc_storage (torch/distributed/fsdp/_fsdp_param.py:931)"]),
            StackHolder::PyTorch
        );
        // A thread of C++, whose object file has a name.
        let thread = ["torch::unwind::unwind() (??:0)", "execute_native_thread_routine (thread48.o:0)"];
        assert_eq!(holder(&thread), StackHolder::PyTorch);
        assert_eq!(holder(&[]), StackHolder::PyTorch);
    }

    #[test]
    fn a_frame_is_the_function_and_the_end_of_the_path() {
        assert_eq!(frame_text("step (train.py:26)"), "step train.py:26");
        assert_eq!(frame_text("step (/home/ada/work/train.py:26)"), "step work/train.py:26");
        assert_eq!(frame_text("f (/x/site-packages/timm/layers/mlp.py:3)"), "f timm/layers/mlp.py:3");
        assert_eq!(frame_text("call site 3 (:0)"), "call site 3");
        assert_eq!(frame_text(" (program.py:3)"), "program.py:3");
        assert_eq!(frame_text("at::native::mul(at::Tensor const&) (??:0)"), "at::native::mul");
        assert_eq!(
            frame_text("at::_ops::mul::call(at::Tensor const&, c10::Scalar) (:0)"),
            "at::_ops::mul::call"
        );
        assert_eq!(
            frame_text("at::(anonymous namespace)::f(long, long) (:0)"),
            "at::(anonymous namespace)::f"
        );
        assert_eq!(frame_text("requests of 2 MiB"), "requests of 2 MiB");
    }

    #[test]
    fn the_programs_own_line_is_found_below_those_of_libraries() {
        let stack = [
            "empty (torch/functional.py:3)",
            "_call_impl (/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py:1775)",
            "step (train.py:26)",
            "main (train.py:90)",
        ]
        .map(str::to_owned);
        assert_eq!(own_line(&stack), Some("step (train.py:26)"));
        assert_eq!(own_line(&stack[..2]), Some("empty (torch/functional.py:3)"));
        assert_eq!(own_line(&[]), None);
        // Frames of C++ have no file, or the name of one.
        let cpp = [
            "c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc(void**, signed char) (:0)",
            "at::native::mul(at::Tensor const&, c10::Scalar const&) (??:0)",
            "torch::autograd::generated::PowBackward0::apply(std::vector<at::Tensor>&&) (:0)",
            "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&) (??:0)",
        ]
        .map(str::to_owned);
        assert_eq!(own_line(&cpp), Some(cpp[2].as_str()));
        let mixed = [&cpp[..2], &stack[..3]].concat();
        assert_eq!(own_line(&mixed), Some("step (train.py:26)"));
        assert_eq!(own_line(&["call site 3 (:0)".to_owned()]), Some("call site 3 (:0)"));
        // What PyTorch's recorder and the runner of a dry run add says nothing.
        let recorded = [
            "torch::unwind::unwind() (??:0)",
            "torch::CapturedTraceback::gather(bool, bool, bool) (??:0)",
            "c10::cuda::malloc(unsigned long) (??:0)",
            "execute (/home/ada/.cache/blockyard/standin/2.11.0/runner/blockyard_dry_run/__init__.py:114)",
            "<module> (/home/ada/.cache/blockyard/standin/2.11.0/runner/__main__.py:19)",
        ]
        .map(str::to_owned);
        assert_eq!(own_line(&recorded), Some(recorded[2].as_str()));
        assert_eq!(own_line(&recorded[3..]), None);
        let called = ["<module> (train.py:10)".to_owned(), recorded[3].clone(), recorded[4].clone()];
        assert_eq!((own_line(&called), own_caller(&called)), (Some("<module> (train.py:10)"), None));
        assert!(!Frame { name: "f", filename: "/home/ada/runner/__main__.py", line: 1 }.is_of_library());
        assert!(!Frame { name: "call site 3", filename: "", line: 0 }.is_of_library());
        // A folder that is called like the library is the program's own.
        assert!(!Frame { name: "f", filename: "mytorch/a.py", line: 1 }.is_of_library());
    }
}
