//! Requests to an allocator, and the language in which people write them.
//!
//! A [`Workload`] is a list of [`Request`]s with step labels. It comes from a text ([`Workload::parse`]),
//! request by request from a [`WorkloadBuilder`], or from a list ([`Workload::from_requests`]). [`edit`]
//! turns actions by hand into statements of a text; [`presets`] has workloads to start from. This crate knows
//! nothing of allocators: it does not know whether a request succeeds.
//!
//! # The language
//!
//! ```
//! use blockyard_workload::Workload;
//!
//! let workload = Workload::parse(
//!     "
//!     stream side                       # a second stream
//!     step \"setup\"
//!     w = alloc 10000 x 10000 float32
//!     repeat 3 as i {
//!         step \"iteration {i}\"
//!         repeat 4 as j { x[j] = alloc 2 MiB on side }
//!         free x[*]
//!     }
//!     ",
//! )?;
//! assert_eq!(workload.requests().len(), 1 + 3 * (4 + 4));
//! assert_eq!(workload.labels()[3], (17, "iteration 2".to_owned()));
//! # Ok::<(), blockyard_workload::ParseError>(())
//! ```
//!
//! A statement ends at the end of its line or at a `;`. A `#` starts a comment that reaches to the end of its
//! line.
//!
//! | statement | meaning |
//! | --- | --- |
//! | `a = alloc 3 MiB` | allocates on the default stream; an error while `a` is allocated |
//! | `a = alloc 3 MiB on side` | allocates on a declared stream |
//! | `free a` | frees; `free a, b, c` frees in that order |
//! | `free x[*]` | frees all allocated elements of `x` in ascending order; there must be one |
//! | `stream side` | declares a stream, outside of loops; handles are 1, 2, 3 in order, and `default` is 0 |
//! | `record_stream a side` | `a` is used on `side` too; `record_stream a, b side` for several |
//! | `advance side` | the work queued on `side` so far is done; `advance` alone means every stream |
//! | `empty_cache` | releases all cached segments |
//! | `set_fraction 0.5` | limits the reserved bytes to a share of the device, from 0 to 1 |
//! | `set max_split_size_mb:64` | gives the allocator further settings: the rest of the statement, which may be empty |
//! | `pool p` | makes a memory pool, outside of loops; `pool p no_split use_on_oom` with one option or both |
//! | `enter p`, `leave p` | allocations between the two, on every stream, come from the pool |
//! | `destroy p` | destroys the pool, which nothing may enter from then on; its cached segments are released |
//! | `reset_peak`, `reset_accumulated` | reset statistics |
//! | `snapshot` | takes a snapshot, which PyTorch's trace lists and which changes nothing |
//! | `step "forward"` | labels what follows |
//! | `capacity 64 MiB` | the device's capacity that the text is written for; once, outside of loops |
//! | `conf max_split_size_mb:64` | the value of `PYTORCH_CUDA_ALLOC_CONF` that the text is written for; once, outside of loops |
//! | `repeat 3 { ... }` | runs the statements three times |
//! | `repeat 3 as i { ... }` | runs the statements with `i` = 0, 1, 2 |
//! | `repeat 3 as i from 1 down { ... }` | runs the statements with `i` = 3, 2, 1 |
//! | `for t in a, b, c { ... }` | runs the statements with `t` standing for each of the names |
//!
//! These spellings of PyTorch are statements too: `x = torch.empty(1000, 1000, dtype=torch.float16,
//! device="cuda")` (also `zeros`, `ones`, `rand`, `randn`, `full`), `del x`, `torch.cuda.empty_cache()`,
//! `torch.cuda.reset_peak_memory_stats()` and `torch.cuda.reset_accumulated_memory_stats()`.
//!
//! *Names* start with a letter or `_` and go on with letters, digits, `_`, and dots inside
//! (`encoder.0.weight`). The words that start statements are not names. A name may have up to two indices,
//! `x[3]`, `x[i][j]`, each a number or the variable of a loop around it; `x` and its elements are different
//! tensors. The names of streams are separate from the names of tensors, and so are the names of pools.
//!
//! *Sizes* are numbers of bytes, with a unit (`B`, `KiB`, `MiB`, `GiB`, `TiB`, `PiB`, `EiB`, or of a
//! thousand: `KB`, `MB`, `GB`, `TB`) or without; underscores may divide digits, and decimals are fine if
//! whole bytes result. Or they are shapes: one to five sides and a dtype (`float64`, `float32`, `float16`,
//! `bfloat16`, `int64`, `int32`, `int16`, `int8`, `uint8`, `bool`). Any number of bytes up to 2^64-1 is a
//! size, also 0 and sizes that no allocator serves.
//!
//! *Labels* may hold the variables of the loops around them, `step "iteration {i}"`. `{{`, `}}`, `\"` and
//! `\\` stand for single characters.
//!
//! A text makes at most [`MAX_REQUESTS`] requests, its loops nest at most 32 deep; both are checked before a
//! loop runs.
//!
//! ```text
//! workload  = { statement separator } .
//! separator = end of line | ";" .
//! statement = [ name "=" ( "alloc" size | call ) [ "on" stream ]
//!             | "free" target { "," target }
//!             | "record_stream" name { "," name } stream
//!             | "stream" word { "," word }
//!             | "advance" [ stream { "," stream } ]
//!             | "empty_cache" | "reset_peak" | "reset_accumulated"
//!             | "set_fraction" number
//!             | "set" anything
//!             | "pool" word { "no_split" | "use_on_oom" }
//!             | ( "enter" | "leave" | "destroy" ) word
//!             | "capacity" size | "conf" anything
//!             | "step" quoted
//!             | "repeat" number [ "as" word [ "from" number ] [ "down" ] ] body
//!             | "for" word "in" name { "," name } body ] .
//! body      = "{" workload "}" .
//! target    = name | word "[" "*" "]" .
//! name      = word { "[" ( number | word ) "]" } .
//! size      = number [ unit ] | number { "x" number } dtype .
//! stream    = "default" | word .
//! ```
//!
//! The last separator before `}` and before the end of the text may be left out.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(
        clippy::arithmetic_side_effects,
        reason = "numbers of files are added and subtracted checked or saturating"
    )
)]

mod builder;
mod complete;
mod decimal;
pub mod edit;
mod error;
mod expand;
mod highlight;
mod names;
mod parse;
pub mod presets;
mod request;
mod size;
mod size_text;
mod slots;
mod syntax;
mod token;
mod words;
mod workload;

pub use builder::WorkloadBuilder;
pub use complete::{Completion, Completions, complete};
pub use decimal::{DecimalSize, decimal_size};
pub use error::{ParseError, ParseErrorKind};
pub use highlight::{Highlight, highlight};
pub use request::{Request, TensorId};
pub use size_text::{parse_rounded_size, parse_size};
pub use slots::TensorSlots;
pub use workload::Workload;

/// The most requests that a text may make.
pub const MAX_REQUESTS: usize = 5_000_000;

/// The most labels that a text may make.
const MAX_LABELS: usize = 1_000_000;

/// The most bytes that all labels of a text may have together.
const MAX_LABEL_BYTES: usize = 64 << 20;
