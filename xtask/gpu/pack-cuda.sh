#!/usr/bin/env bash
# Builds what xtask/gpu/run-cuda.sh runs into target/gpu/cuda/, to be carried to a machine with a GPU and without a toolchain.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
kit=target/gpu/cuda
target=${CARGO_TARGET_DIR:-target}
rm -rf "$kit"
mkdir -p "$kit"

cargo build --profile bench --package blockyard-cli
cp "$target/release/blockyard" "$kit/"

tests() { # package, name of the tests: the program with them
    cargo test --release --package "$1" --test "$2" --no-run
    # The second time it only says where it is.
    cargo test --release --package "$1" --test "$2" --no-run 2>&1 |
        sed -n "s/.*Executable tests\/$2\/main.rs (\(.*\))/\1/p"
}
cp "$(tests blockyard-tests cuda)" "$kit/cuda-tests"
cp "$(tests blockyard-device-wgpu conformance)" "$kit/vulkan-tests"
strip "$kit"/*

# Vulkan's driver comes with CUDA's; the loader does not, nor what the driver needs of EGL to start without a display.
libraries=(libvulkan.so.1 libEGL.so.1 libGLdispatch.so.0)
packages=(libvulkan1 libegl1 libglvnd0)
for index in "${!libraries[@]}"; do
    library=${libraries[$index]}
    found=$(ldconfig -p | sed -n "s/.*${library//./\\.} .*=> //p" | head -1)
    if [ -z "$found" ]; then
        (cd "$kit" && apt-get download "${packages[$index]}" && dpkg -x "${packages[$index]}"_*.deb unpacked)
        found=$(find "$kit/unpacked" -name "$library")
    fi
    cp -L "$found" "$kit/$library"
done
rm -rf "$kit"/*.deb "$kit/unpacked"
ls -l "$kit"
