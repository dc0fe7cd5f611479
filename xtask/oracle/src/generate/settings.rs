//! Random settings: as often one setting as several.

use blockyard_rules::{Release, SETTING_KEYS};
use fastrand::Rng;

/// The settings of a sequence.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    /// The settings in the syntax of `PYTORCH_CUDA_ALLOC_CONF`.
    pub(super) text: String,
    /// The value of `max_split_size_mb`; `None` if it is not set.
    pub(super) max_split_mib: Option<u64>,
    /// The value of `max_non_split_rounding_mb`; `None` if it is not set.
    pub(super) rounding_mib: Option<u64>,
    /// The size of a large segment in MiB.
    pub(super) large_mib: u64,
    /// Whether segments expand at some time.
    pub(super) expands: bool,
    /// Whether fractions are set often: garbage collection needs one.
    pub(super) limits: bool,
    /// Whether settings change at run time.
    pub(super) changes: bool,
}

/// The settings that a sequence may begin with.
pub(crate) const CHOSEN: [&str; 9] = [
    "max_split_size_mb",
    "max_non_split_rounding_mb",
    "roundup_power2_divisions",
    "garbage_collection_threshold",
    "expandable_segments",
    "large_segment_size_mb",
    "per_process_memory_fraction",
    "throw_on_cudamalloc_oom",
    "expandable_segments_reserve",
];

pub(super) fn choose(rng: &mut Rng, release: Release) -> Choice {
    let chosen: Vec<&str> = match rng.u8(..10) {
        0 => Vec::new(),
        1..=6 => vec![CHOSEN[rng.usize(..CHOSEN.len())]],
        _ => CHOSEN.into_iter().filter(|_| rng.u8(..5) < 2).collect(),
    };
    let has = |key: &str| chosen.contains(&key);
    let sets = |key: &str| has(key) && release.knows_setting(key);
    let mut choice = Choice { large_mib: 20, changes: rng.u8(..4) == 0, ..Choice::default() };
    let mut parts = Vec::new();
    // The lower bounds of others depend on this one.
    if sets("large_segment_size_mb") {
        choice.large_mib = [11, 12, 13, 16, 20, 24, 32, 64][rng.usize(..8)];
        parts.push(format!("large_segment_size_mb:{}", choice.large_mib));
    }
    // Up to 2.9 a size has to be larger than a large segment.
    let excess = u64::from(release.has_one_parser());
    let mib =
        |rng: &mut Rng, least: u64| excess + least + [0, 0, 1, 2, 4, 10, 20, 44, 80, 200][rng.usize(..10)];
    // The rounding matters only beside a split limit.
    if has("max_split_size_mb") || has("max_non_split_rounding_mb") {
        let split = mib(rng, choice.large_mib);
        parts.push(format!("max_split_size_mb:{split}"));
        choice.max_split_mib = Some(split);
    }
    if has("max_non_split_rounding_mb") {
        let rounding = mib(rng, choice.large_mib);
        parts.push(format!("max_non_split_rounding_mb:{rounding}"));
        choice.rounding_mib = Some(rounding);
    }
    if has("roundup_power2_divisions") {
        parts.push(roundup(rng));
    }
    if has("garbage_collection_threshold") {
        parts.push(format!("garbage_collection_threshold:{:.3}", 0.05 + 0.9 * rng.f64()));
        choice.limits = true;
    }
    // A reserve matters only beside expandable segments.
    if has("expandable_segments") || has("expandable_segments_reserve") {
        parts.push("expandable_segments:True".to_owned());
        choice.expands = true;
    }
    if sets("throw_on_cudamalloc_oom") {
        parts.push(format!("throw_on_cudamalloc_oom:{}", if rng.u8(..4) > 0 { "True" } else { "False" }));
    }
    if sets("expandable_segments_reserve") {
        parts.push(format!("expandable_segments_reserve:{}", reserve(rng)));
    }
    // Garbage collection needs a limit to do anything.
    if has("per_process_memory_fraction") || choice.limits && rng.u8(..3) > 0 {
        if !release.has_one_parser() {
            parts.push(format!("per_process_memory_fraction:{:.4}", 0.15 + 0.84 * rng.f64()));
        }
        choice.limits = true;
    }
    rng.shuffle(&mut parts);
    choice.text = parts.join(",");
    choice
}

/// A random reserve of addresses: a share of the device, or GiB.
fn reserve(rng: &mut Rng) -> String {
    match rng.u8(..3) {
        0 => format!("{:.3}G", 4.0 * rng.f64()),
        1 => format!("{:.4}", 1.3 * rng.f64()),
        _ => format!("{:.4}", 0.2 * rng.f64()),
    }
}

/// Further settings at run time. A sequence without expandable segments stays without them.
pub(super) fn change(rng: &mut Rng, before: &Choice, release: Release) -> String {
    let mut parts: Vec<String> = Vec::new();
    if rng.bool() {
        let least = before.large_mib + u64::from(release.has_one_parser());
        parts.push(format!("max_split_size_mb:{}", least + rng.u64(..60)));
        if rng.bool() {
            parts.push(format!("max_non_split_rounding_mb:{}", least + rng.u64(..60)));
        }
    }
    if rng.u8(..3) == 0 {
        parts.push(roundup(rng));
    }
    if rng.u8(..3) == 0 {
        parts.push(format!("garbage_collection_threshold:{:.3}", 0.05 + 0.9 * rng.f64()));
    }
    if rng.u8(..3) == 0 {
        parts.push(format!("expandable_segments:{}", if rng.bool() { "True" } else { "False" }));
    }
    if rng.u8(..6) == 0 && !release.has_one_parser() {
        parts.push(format!("per_process_memory_fraction:{:.3}", 0.15 + 0.84 * rng.f64()));
    }
    if rng.u8(..6) == 0 && release.knows_setting("throw_on_cudamalloc_oom") {
        parts.push(format!("throw_on_cudamalloc_oom:{}", if rng.bool() { "True" } else { "False" }));
    }
    if rng.u8(..8) == 0 && release.knows_setting("expandable_segments_reserve") {
        parts.push(format!("expandable_segments_reserve:{}", reserve(rng)));
    }
    parts.join(",")
}

/// Settings that may have anything wrong with them; no hexadecimal fractions, which only C++ reads.
pub(super) fn mangled(rng: &mut Rng, release: Release) -> String {
    let mut parts: Vec<String> = (0..rng.usize(..5)).map(|_| pair(rng)).collect();
    if rng.bool() {
        parts.extend([change(rng, &Choice { large_mib: 20, ..Choice::default() }, release)]);
    }
    let mut text = parts.join([",", ",", ",", ", ", ",,", ":"][rng.usize(..6)]);
    if rng.u8(..4) == 0 && !text.is_empty() {
        let at = rng.usize(..text.len());
        if rng.bool() {
            text.remove(at);
        } else {
            text.insert(at, [',', ':', '[', ']', ' ', '7', 'y'][rng.usize(..7)]);
        }
    }
    text
}

/// A random key with a random value, which the parser may refuse.
fn pair(rng: &mut Rng) -> String {
    const VALUES: [&str; 28] = [
        "0",
        "1",
        "2",
        "4",
        "10",
        "11",
        "19",
        "20",
        "21",
        "64",
        "128",
        "0.5",
        "0.999",
        "1.0",
        "1.5",
        "-1",
        "40.7",
        "0.8abc",
        "True",
        "False",
        "true",
        "native",
        "[2:4,8:1,>:2]",
        "[4:3]",
        "40G",
        "0.5g",
        "[a:0.5,b:40G]",
        "[a:x]",
    ];
    let key = SETTING_KEYS.get(rng.usize(..=SETTING_KEYS.len())).map_or("no_such_key", |known| known.key);
    if rng.u8(..6) == 0 {
        return roundup(rng);
    }
    format!("{key}:{}", VALUES[rng.usize(..VALUES.len())])
}

fn roundup(rng: &mut Rng) -> String {
    let divisions = |rng: &mut Rng| 1_u64 << rng.u8(..7);
    if rng.bool() {
        return format!("roundup_power2_divisions:{}", divisions(rng));
    }
    let mut parts = Vec::new();
    for exponent in 0..8_u32 {
        if rng.u8(..3) == 0 {
            let divisions = if rng.u8(..8) == 0 { 0 } else { divisions(rng) };
            parts.push(format!("{}:{divisions}", 1 << exponent));
        }
    }
    parts.push(format!(">:{}", divisions(rng)));
    format!("roundup_power2_divisions:[{}]", parts.join(","))
}
