//! Tests across crates; see `tests/`. Recordings of PyTorch's allocator that they use stand in `fixtures/`.
