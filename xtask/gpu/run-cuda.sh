#!/usr/bin/env bash
# Runs the tests, the recordings and the benchmark on a real GPU with what xtask/gpu/pack-cuda.sh built; nothing is built here.
# Usage: xtask/gpu/run-cuda.sh FOLDER [STAGE...]    (all stages, or of tests, vulkan, verify-synthetic, verify-others, run, play and
# bench those that are named; a summary ends the output, and the results are FOLDER/cuda.tar.gz)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?a folder for the results}
wanted=("${@:2}")
kit=$PWD/target/gpu/cuda
. xtask/gpu/stages.sh
chmod +x "$kit"/* 2>/dev/null
export REQUIRE_CUDA=1 REQUIRE_VULKAN_GPU=1 CARGO_MANIFEST_DIR=$PWD/tests RUST_BACKTRACE=0
device=${DEVICE:-cuda:0}

(date -u; nvidia-smi; uname -a; ldd --version) >"$out/machine.txt" 2>&1
recordings=(tests/fixtures/synthetic/{default,expand}-*.gz)
others=()
for file in tests/fixtures/synthetic/*.gz tests/fixtures/programs/*.gz; do
    case $file in
        */default-* | */expand-* | */async-*) ;;
        *) others+=("$file") ;;
    esac
done

stage tests 200 "$kit/cuda-tests" --nocapture --test-threads 1
tell tests grep -E '^test result|FAILED|^NVIDIA' | tail -20

# The same GPU over Vulkan. Its driver comes with CUDA's, but where containers mount it the loader, which the kit has, does not
# look.
vulkan() {
    local found
    if [ -z "${VK_DRIVER_FILES:-}" ]; then
        found=$(find /usr /etc /opt -path '*/vulkan/icd.d/nvidia*.json' 2>/dev/null | paste -sd :)
        [ -z "$found" ] || export VK_DRIVER_FILES=$found
    fi
    echo "drivers: ${VK_DRIVER_FILES:-none was found}"
    LD_LIBRARY_PATH=$kit${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} VK_LOADER_DEBUG=error,warn \
        timeout --kill-after=10 120 "$kit/vulkan-tests" --nocapture --test-threads 1
}
parts vulkan vulkan
tell vulkan grep -E '^drivers|GpuInfo|^seed|^test result|FAILED| filled, '

stage verify-synthetic 60 "$kit/blockyard" verify --device "$device" "${recordings[@]}"
stage verify-others 60 "$kit/blockyard" verify --device "$device" "${others[@]}"

# What a run on the device writes is a recording again: replayed without hardware it must be the same.
run() {
    local file name worst=0
    mkdir -p "$out/runs"
    for file in "${recordings[@]}"; do
        name=$(basename "$file" .jsonl.gz)
        timeout 60 "$kit/blockyard" run --device "$device" "$file" >"$out/runs/$name.jsonl" || worst=1
        timeout 60 "$kit/blockyard" verify "$out/runs/$name.jsonl" || worst=1
        gzip -f "$out/runs/$name.jsonl"
    done
    return $worst
}
parts run run

stage play 30 "$kit/blockyard" play --device "$device" --last streams
# No machine has that many: the error is what is wanted.
"$kit/blockyard" play --device cuda:99 terms >"$out/error.txt" 2>&1
tell error cat
stage bench 180 "$kit/blockyard" bench --device "$device" --out "$out/bench" \
    tests/fixtures/programs/{gpt2_varlen,resnet50_amp,gnn_random,multistream}.jsonl.gz
nvidia-smi >>"$out/machine.txt" 2>&1

for name in verify-synthetic verify-others run; do
    tell "$name" grep -c ': identical' | sed "s/^/$name, identical: /"
done
tell bench head -100
finish cuda
