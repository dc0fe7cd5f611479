#!/usr/bin/env bash
# Builds what xtask/gpu/run-bench.sh runs into target/gpu/bench/, to be carried to a machine without a toolchain: the benchmark, PyTorch's
# library as `cargo xtask oracle` fetched it, and the recordings of the folder BLOCKYARD_RECORDINGS.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kit=target/gpu/bench
target=${CARGO_TARGET_DIR:-target}
# Once here, so that all of it is built.
cargo xtask bench pytorch --quick
rm -rf "$kit"
mkdir -p "$kit/release" "$kit/bench" "$kit/recordings"
cp "$target/CACHEDIR.TAG" "$kit/"
cp -r "$target/oracle" "$kit/"
cp "$target"/release/{blockyard-bench,libblockyard_bench_abi.so} "$kit/release/"
cp "$target/bench/libcontenders.so" "$kit/bench/"
for folder in "${BLOCKYARD_RECORDINGS:-tests/fixtures/programs}" tests/fixtures/programs; do
    cp "$folder"/*.jsonl.gz "$kit/recordings/"
done
du -sh "$kit"
