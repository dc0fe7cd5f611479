//! Which frames of a stack are the program's own code, and which a library's.
//!
//! Every list of holders and every answer that names a line uses this rule, so that two of them name the same line.

use crate::{Frame, FrameId, StackId, Stacks};

/// What the path of a library's file contains.
const LIBRARIES: [&str; 6] =
    ["/torch/", "site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/usr/lib/"];

/// How the files of extensions end: no program's own code, but what its code called.
const COMPILED: [&str; 7] = [".cpp", ".cc", ".c", ".h", ".cu", ".so", ".pyx"];

impl Frame<'_> {
    /// Whether the frame is a library's: of PyTorch, an installed package, Python's own library, an extension, or of no file with a
    /// name.
    #[must_use]
    pub fn is_of_library(&self) -> bool {
        let file = self.filename;
        file.starts_with("torch/")
            || file.starts_with('<')
            || file.starts_with("??")
            || LIBRARIES.iter().any(|part| file.contains(part))
            || COMPILED.iter().any(|end| file.ends_with(end))
    }
}

impl Stacks {
    /// The innermost frame of the program's own code; else the innermost frame. `None` for the stack without frames.
    #[must_use]
    pub fn own_frame(&self, stack: StackId) -> Option<FrameId> {
        let own = self.frames(stack).find(|frame| !self.frame(*frame).is_of_library());
        own.or_else(|| self.frames(stack).next())
    }
}

/// The innermost line of the program's own code in a stack of texts, `function (file:line)`, innermost first; else the innermost frame.
#[must_use]
pub fn own_line(stack: &[String]) -> Option<&str> {
    let is_own = |line: &&String| {
        let file = line.rsplit_once(" (").map_or(line.as_str(), |(_, place)| place);
        let file = file.rsplit_once(':').map_or(file, |(file, _)| file);
        !Frame { name: "", filename: file, line: 0 }.is_of_library()
    };
    stack.iter().find(is_own).or_else(|| stack.first()).map(String::as_str)
}

/// The path from the package on, or else its last two parts.
#[must_use]
pub fn short_path(path: &str) -> &str {
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

/// A frame of a stack of texts as figures write it: `step train.py:26` for `step (train.py:26)`, and the function alone where the file's
/// name was left out.
#[must_use]
pub fn frame_words(line: &str) -> String {
    match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((name, ":0")) => name.to_owned(),
        // A line whose function is not known.
        Some(("", place)) => short_path(place).to_owned(),
        Some((name, place)) => format!("{name} {}", short_path(place)),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_the_function_and_the_end_of_the_path() {
        assert_eq!(frame_words("step (train.py:26)"), "step train.py:26");
        assert_eq!(frame_words("step (/home/ada/work/train.py:26)"), "step work/train.py:26");
        assert_eq!(frame_words("f (/x/site-packages/timm/layers/mlp.py:3)"), "f timm/layers/mlp.py:3");
        assert_eq!(frame_words("call site 3 (:0)"), "call site 3");
        assert_eq!(frame_words(" (program.py:3)"), "program.py:3");
        assert_eq!(frame_words("requests of 2 MiB"), "requests of 2 MiB");
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
        // A folder that is called like the library is the program's own.
        assert!(!Frame { name: "f", filename: "mytorch/a.py", line: 1 }.is_of_library());
    }
}
