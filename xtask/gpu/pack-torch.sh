#!/usr/bin/env bash
# Builds what xtask/gpu/run-torch.sh runs into target/gpu/torch/, to be carried to a machine with a GPU and PyTorch and without a
# toolchain. Headers of PyTorch, for the benchmark's shim, are looked for in TORCH_INCLUDE and where the oracle unpacks them;
# without them the shim is built on that machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kit=target/gpu/torch
target=${CARGO_TARGET_DIR:-target}
cargo build --profile bench --package blockyard-torch-plugin --package blockyard-cli
mkdir -p "$kit"
cp "$target/release/libblockyard_torch_plugin.so" "$target/release/blockyard" "$kit/"
strip "$kit/libblockyard_torch_plugin.so" "$kit/blockyard"
headers=${TORCH_INCLUDE:-$(echo "$target"/oracle/torch-*/torch/include)}
if [ -d "$headers" ]; then
    "${CXX:-c++}" -std=c++17 -O2 -shared -fPIC -I xtask/oracle/native/include -isystem "$headers" \
        crates/ends/torch-plugin/gpu/shim.cpp -o "$kit/libshim.so"
else
    rm -f "$kit/libshim.so"
    echo "no headers of PyTorch here: the shim will be built where it runs"
fi
ls -l "$kit"
