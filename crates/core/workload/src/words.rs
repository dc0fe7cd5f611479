//! The words of the language, for the parser, for completions and for colors.

/// The words that start statements, each with its meaning in a few words, the likeliest first.
pub(crate) const STATEMENTS: [(&str, &str); 20] = [
    ("free", "gives blocks back to the allocator"),
    ("empty_cache", "releases cached segments"),
    ("step", "a label for what follows"),
    ("stream", "declares a stream"),
    ("record_stream", "used on another stream too"),
    ("advance", "work of a stream is done"),
    ("repeat", "a loop"),
    ("for", "a loop over names"),
    ("reset_peak", "peaks start again"),
    ("reset_accumulated", "counts start again"),
    ("set", "a setting from here on"),
    ("set_fraction", "limits reserved memory"),
    ("snapshot", "takes a snapshot"),
    ("pool", "makes a memory pool"),
    ("enter", "allocations come from the pool"),
    ("leave", "no longer from the pool"),
    ("destroy", "gives up the pool"),
    ("capacity", "of the device"),
    ("conf", "PYTORCH_CUDA_ALLOC_CONF"),
    ("del", "as free"),
];

/// The statements of the header: a tensor may have such a name.
const HEADER: [&str; 2] = ["capacity", "conf"];

/// The words that stand inside of statements.
const INNER: [&str; 9] = ["alloc", "on", "as", "from", "down", "in", "default", "no_split", "use_on_oom"];

/// Whether a word is one of the language.
pub(crate) fn is_keyword(word: &str) -> bool {
    INNER.contains(&word) || is_statement(word)
}

/// Whether a word cannot be a name: it starts a statement or makes a tensor.
pub(crate) fn is_reserved(word: &str) -> bool {
    word == "alloc" || is_statement(word) && !HEADER.contains(&word)
}

fn is_statement(word: &str) -> bool {
    STATEMENTS.iter().any(|(statement, _)| *statement == word)
}
