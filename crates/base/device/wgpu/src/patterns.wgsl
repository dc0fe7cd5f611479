// Fills a window of a segment with a pattern, or counts the words of it that differ from one.

struct Pass {
    words: u32,
    first_word: u32,
    pattern: u32,
    check: u32,
}

struct Found {
    wrong: atomic<u32>,
    index: u32,
    word: u32,
}

@group(0) @binding(0) var<storage, read_write> window: array<u32>;
@group(0) @binding(1) var<uniform> current: Pass;
@group(0) @binding(2) var<storage, read_write> found: array<Found>;

// No two words of a range are the same: memory that shows in two places is found as well as what is overwritten.
fn expected(index: u32) -> u32 {
    return current.pattern + (current.first_word + index) * 0x9e3779b1u;
}

// A workgroup goes over words that stand together, since some adapters are processors with caches.
fn chunk(groups: vec3<u32>) -> u32 {
    return (current.words + groups.x - 1u) / groups.x;
}

@compute @workgroup_size(256)
fn fill(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let words = chunk(groups);
    let end = min((group.x + 1u) * words, current.words);
    for (var index = group.x * words + thread; index < end; index += 256u) {
        window[index] = expected(index);
    }
}

@compute @workgroup_size(256)
fn check(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let words = chunk(groups);
    let end = min((group.x + 1u) * words, current.words);
    var wrong = 0u;
    var last = 0u;
    for (var index = group.x * words + thread; index < end; index += 256u) {
        if window[index] != expected(index) {
            wrong += 1u;
            last = index;
        }
    }
    // One thread, whichever comes first, tells where.
    if wrong > 0u && atomicAdd(&found[current.check].wrong, wrong) == 0u {
        found[current.check].index = current.first_word + last;
        found[current.check].word = window[last];
    }
}
