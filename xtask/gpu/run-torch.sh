#!/usr/bin/env bash
# Trains under PyTorch's own allocator and under Blockyard's, compares, and measures, with what xtask/gpu/pack-torch.sh built.
# Usage: xtask/gpu/run-torch.sh FOLDER [STAGE...]    (all stages, or of training, compare, verify, extras, out_of_memory and bench those that are
# named; a summary ends the output, and the results are FOLDER/torch.tar.gz)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=${1:?a folder for the results}
wanted=("${@:2}")
kit=$PWD/target/gpu/torch
gpu=crates/ends/torch-plugin/gpu
chmod +x "$kit/blockyard" 2>/dev/null
export PYTHONUNBUFFERED=1 CUBLAS_WORKSPACE_CONFIG=:4096:8 BLOCKYARD_TORCH_LIBRARY=$kit/libblockyard_torch_plugin.so
unset PYTORCH_ALLOC_CONF PYTORCH_CUDA_ALLOC_CONF
. xtask/gpu/stages.sh

(date -u; nvidia-smi; uname -a; python3 -c 'import torch; print(torch.__version__, torch.__file__)') >"$out/machine.txt" 2>&1

# A shim that does not load here is built here.
include=$(python3 -c 'import os, torch; print(os.path.join(os.path.dirname(torch.__file__), "include"))')
loads() {
    [ -f "$kit/libshim.so" ] && python3 "$gpu/bench.py" --check "$kit/libshim.so" 2>>"$out/shim.err"
}
if ! loads; then
    cuda=$(dirname "$(dirname "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")
    "${CXX:-g++}" -std=c++17 -O2 -shared -fPIC -isystem "$include" -isystem "$cuda/include" "$gpu/shim.cpp" \
        -o "$kit/libshim.so" 2>>"$out/shim.err" && echo "the shim was built here" >>"$out/machine.txt"
fi

# Six at a time: nothing is measured here. PyTorch's own allocator runs twice, to see what PyTorch repeats.
training() {
    local casts model conf name allocator job jobs=() worst=0
    for casts in kept fresh; do
        for model in gpt2 gnn; do
            jobs=()
            for conf in "" expandable_segments:True; do
                for allocator in native again plugin; do
                    name=train-$model-${conf:+expandable-}$casts-$allocator
                    PYTORCH_CUDA_ALLOC_CONF=$conf CASTS=$casts timeout --kill-after=10 110 \
                        python3 "$gpu/train.py" "$model" "$allocator" "$out/train" \
                        >"$out/$name.txt" 2>"$out/$name.err" &
                    jobs+=($!)
                done
            done
            for job in "${jobs[@]}"; do wait "$job" || worst=1; done
        done
    done
    return $worst
}
parts training training
is_wanted training && tail -qn 1 "$out"/train-*.txt
stage compare 60 python3 "$gpu/compare.py" "$out/train"
tell compare cat
stage verify 90 "$kit/blockyard" verify "$out"/train/*.jsonl.gz
tell verify cat

extras() {
    local part conf allocator job jobs worst=0
    for part in streams graph capture fraction threads full devices pool; do
        jobs=()
        conf=
        [ $part = capture ] && conf=expandable_segments:True
        for allocator in native plugin; do
            PYTORCH_CUDA_ALLOC_CONF=$conf timeout --kill-after=5 60 python3 "$gpu/extras.py" $allocator $part \
                >"$out/extras-$part-$allocator.txt" 2>"$out/extras-$part-$allocator.err" &
            jobs+=($!)
        done
        for job in "${jobs[@]}"; do wait "$job" || [ $part = full ] || worst=1; done
        # A full device is another matter: PyTorch does not look whether it got a null pointer. And it has pools of programs for its own
        # allocator alone.
        if [[ $part != full && $part != pool ]] && ! diff "$out/extras-$part-native.txt" "$out/extras-$part-plugin.txt"; then worst=1; fi
    done
    return $worst
}
parts extras extras
tell extras cat
is_wanted extras && tail -qn 4 "$out"/extras-*.txt
# Out of memory is caught, the batch shrinks, and training goes on with the same losses.
out_of_memory() {
    local part allocator job jobs worst=0
    for part in training contents threads; do
        jobs=()
        for allocator in native plugin; do
            timeout --kill-after=5 150 python3 "$gpu/out_of_memory.py" $allocator $part \
                >"$out/out-of-memory-$part-$allocator.txt" 2>"$out/out-of-memory-$part-$allocator.err" &
            jobs+=($!)
        done
        for job in "${jobs[@]}"; do wait "$job" || worst=1; done
        if ! diff "$out/out-of-memory-$part-native.txt" "$out/out-of-memory-$part-plugin.txt"; then worst=1; fi
    done
    return $worst
}
parts out_of_memory out_of_memory
is_wanted out_of_memory && tail -qn 2 "$out"/out-of-memory-*.txt
stage bench 240 python3 "$gpu/bench.py" "$out/bench" "$kit/libshim.so" \
    tests/fixtures/programs/{gpt2_varlen,resnet50_amp,gnn_random}.jsonl.gz
# The table and the chart come from `cargo xtask bench --draw` on this file, on a machine with a toolchain.
is_wanted bench && cat "$out/bench/bench.json"
finish torch
