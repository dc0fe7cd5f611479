//! Recordings that begin late: the head of a complete one is cut off, as a full ring buffer leaves it, and
//! the inferred memory at the cut is compared with the memory that the complete recording has at that moment.

mod cuts;
mod random;
mod truth;
