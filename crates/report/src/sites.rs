//! Lines of the program, apart from the libraries that it calls.

use blockyard_record::{Frame, FrameId, StackId, Stacks};

/// What a path of a library contains.
const LIBRARIES: [&str; 6] =
    ["/torch/", "site-packages/", "dist-packages/", "/lib/python3", "/lib64/python3", "/usr/lib/"];

/// Whether a frame is a library's: of PyTorch, an installed package, Python's own library, or of no file with a name.
pub(crate) fn is_library(frame: Frame<'_>) -> bool {
    let file = frame.filename;
    file.starts_with("torch/")
        || file.starts_with('<')
        || file.starts_with("??")
        || LIBRARIES.iter().any(|part| file.contains(part))
        || [".cpp", ".cc", ".c", ".h", ".cu", ".so", ".pyx"].iter().any(|end| file.ends_with(end))
}

/// The innermost line of the program's own code; else the innermost frame.
pub(crate) fn own_frame(stacks: &Stacks, stack: StackId) -> Option<FrameId> {
    let own = stacks.frames(stack).find(|frame| !is_library(stacks.frame(*frame)));
    own.or_else(|| stacks.frames(stack).next())
}

/// The innermost line of the program's own code in a stack of texts, `function (file:line)`, innermost first; else the innermost frame.
pub(crate) fn own_line(stack: &[String]) -> Option<&str> {
    let is_own = |line: &&String| {
        let file = line.rsplit_once(" (").map_or(line.as_str(), |(_, place)| place);
        let file = file.rsplit_once(':').map_or(file, |(file, _)| file);
        !is_library(Frame { name: "", filename: file, line: 0 })
    };
    stack.iter().find(is_own).or_else(|| stack.first()).map(String::as_str)
}

/// A sentence of the lab without the empty place that a file leaves whose name was left out.
pub(crate) fn without_empty_place(line: &str) -> String {
    line.replace(" (:0)", "")
}

/// A frame of a stack of texts as figures write it: `step train.py:26` for `step (train.py:26)`.
pub(crate) fn frame_words(line: &str) -> String {
    let line = without_empty_place(line);
    match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((name, place)) => format!("{name} {place}"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(frame_words("step (train.py:26)"), "step train.py:26");
        assert_eq!(frame_words("call site 3 (:0)"), "call site 3");
        // A folder that is called like the library is the program's own.
        assert!(!is_library(Frame { name: "f", filename: "mytorch/a.py", line: 1 }));
    }
}
