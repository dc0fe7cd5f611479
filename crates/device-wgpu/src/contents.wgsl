// Fills a window of a segment with a pattern, or counts the words of it that differ from one.

struct Pass {
    words: u32,
    first_word: u32,
    pattern: u32,
    check: u32,
}

@group(0) @binding(0) var<storage, read_write> window: array<u32>;
@group(0) @binding(1) var<uniform> current: Pass;
@group(0) @binding(2) var<storage, read_write> counts: array<atomic<u32>>;

// Every word of every pattern differs from its neighbors: what is moved by a word shows, as does what is overwritten.
fn expected(index: u32) -> u32 {
    var word = (index + current.first_word) * 0x9e3779b1u ^ current.pattern;
    word = (word ^ (word >> 16u)) * 0x85ebca6bu;
    return word ^ (word >> 13u);
}

@compute @workgroup_size(256)
fn fill(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var index = id.x; index < current.words; index += groups.x * 256u) {
        window[index] = expected(index);
    }
}

@compute @workgroup_size(256)
fn check(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    var wrong = 0u;
    for (var index = id.x; index < current.words; index += groups.x * 256u) {
        wrong += u32(window[index] != expected(index));
    }
    if wrong > 0u {
        atomicAdd(&counts[current.check], wrong);
    }
}
