#!/usr/bin/env bash
# Runs the CUDA tests, the recordings and the benchmark on a real GPU with what .ci/cuda-kit.sh built; nothing is built here.
# Usage: .ci/on-cuda.sh FOLDER    (results go there; a summary ends the output)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${1:?a folder for the results}
kit=target/cuda-kit
mkdir -p "$out"
chmod +x "$kit"/* 2>/dev/null
export REQUIRE_CUDA=1 CARGO_MANIFEST_DIR=$PWD/tests RUST_BACKTRACE=0
device=${DEVICE:-cuda:0}
failed=0
summary=()

stage() { # name, seconds, command...
    local name=$1 limit=$2 begun=$SECONDS status
    shift 2
    timeout --kill-after=10 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err"
    status=$?
    [ $status -eq 0 ] || failed=1
    summary+=("$name: status $status, $((SECONDS - begun)) s")
    return $status
}

(date -u; nvidia-smi; uname -a) >"$out/machine.txt" 2>&1
recordings=(tests/fixtures/synthetic/{default,expand}-*.gz)
others=()
for file in tests/fixtures/synthetic/*.gz tests/fixtures/programs/*.gz; do
    case $file in
        */default-* | */expand-* | */async-*) ;;
        *) others+=("$file") ;;
    esac
done

stage tests 200 "$kit/cuda-tests" --nocapture --test-threads 1
grep -E '^test result|FAILED|panicked' "$out/tests.txt" "$out/tests.err" | tail -20
# The same GPU over Vulkan.
stage vulkan 120 env LD_LIBRARY_PATH="$kit:${LD_LIBRARY_PATH:-}" "$kit/vulkan-tests" --nocapture --test-threads 1
grep -E '^GpuInfo|^test result|FAILED|panicked' "$out/vulkan.txt" "$out/vulkan.err" | tail -20
stage verify-synthetic 60 "$kit/blockyard" verify --device "$device" "${recordings[@]}"
stage verify-others 60 "$kit/blockyard" verify --device "$device" "${others[@]}"

# What a run on the device writes is a recording again: replayed without hardware it must be the same.
mkdir -p "$out/runs"
run_all() {
    local file name worst=0
    for file in "${recordings[@]}"; do
        name=$(basename "$file" .jsonl.gz)
        "$kit/blockyard" run --device "$device" "$file" >"$out/runs/$name.jsonl" || worst=1
        "$kit/blockyard" verify "$out/runs/$name.jsonl" || worst=1
        gzip -f "$out/runs/$name.jsonl"
    done
    return $worst
}
begun=$SECONDS
run_all >"$out/run.txt" 2>"$out/run.err"
status=$?
[ $status -eq 0 ] || failed=1
summary+=("run: status $status, $((SECONDS - begun)) s")

stage play 30 "$kit/blockyard" play --device "$device" --last streams
stage bench 180 "$kit/blockyard" bench --device "$device" --out "$out/bench" \
    tests/fixtures/programs/{gpt2_varlen,resnet50_amp,gnn_random,multistream}.jsonl.gz
# No machine has that many: the error is what is wanted.
"$kit/blockyard" play --device cuda:99 terms >"$out/error.txt" 2>&1
nvidia-smi >>"$out/machine.txt" 2>&1

grep -c ': identical' "$out/verify-synthetic.txt" "$out/verify-others.txt" "$out/run.txt"
cat "$out/error.txt"
head -60 "$out/bench.txt"
for name in tests vulkan verify-synthetic verify-others run play bench; do
    [ -s "$out/$name.err" ] && { echo "-- $name:"; tail -5 "$out/$name.err"; }
done
printf '%s\n' "${summary[@]}"
exit $failed
