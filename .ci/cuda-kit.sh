#!/usr/bin/env bash
# Builds what .ci/on-cuda.sh runs into target/cuda-kit/, to be carried to a machine with a GPU and without a toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
kit=target/cuda-kit
cargo build --release --package blockyard-cli
tests=$(cargo test --release --package blockyard-tests --test cuda --no-run 2>&1 |
    sed -n 's/.*Executable tests\/cuda\/main.rs (\(.*\))/\1/p')
vulkan_tests=$(cargo test --release --package blockyard-device-wgpu --test conformance --no-run 2>&1 |
    sed -n 's/.*Executable tests\/conformance\/main.rs (\(.*\))/\1/p')
mkdir -p "$kit"
cp "${CARGO_TARGET_DIR:-target}/release/blockyard" "$kit/blockyard"
cp "$tests" "$kit/cuda-tests"
cp "$vulkan_tests" "$kit/vulkan-tests"
# Machines with a driver for Vulkan often lack its loader.
loader=$(ldconfig -p | sed -n 's/.*libvulkan\.so\.1 .*=> //p' | head -1)
[ -z "$loader" ] || cp -L "$loader" "$kit/libvulkan.so.1"
strip "$kit/blockyard" "$kit/cuda-tests" "$kit/vulkan-tests"
ls -l "$kit"
