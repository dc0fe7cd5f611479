#!/usr/bin/env bash
# Runs the benchmark's sections that need neither a browser nor valgrind, with what xtask/gpu/pack-bench.sh built. The repository has to
# be where it was there: the benchmark looks for its sources, and finds that what was built of them is newer.
# Usage: xtask/gpu/run-bench.sh FOLDER    (results go there)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?a folder for the results}
kit=$PWD/target/gpu/bench
mkdir -p "$out"
find "$kit" -name '*.so*' -exec touch {} +
chmod +x "$kit/release/blockyard-bench"
export LD_LIBRARY_PATH=$kit/oracle/$(cd "$kit/oracle" && echo torch-*)/torch/lib BLOCKYARD_RECORDINGS=$kit/recordings
# Processors that were idle begin slowly.
timeout 5 sh -c 'while :; do :; done' || true
"$kit/release/blockyard-bench" pytorch crates replay threads
cp "$kit"/bench/results.{md,json} "$out/"
