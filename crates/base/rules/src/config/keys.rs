//! The keys of `PYTORCH_CUDA_ALLOC_CONF` for people: what each does, its default, and values to try.

use crate::Release;

/// A key of a settings text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettingKey {
    /// The key as a settings text has it.
    pub key: &'static str,
    /// What the key does, in a sentence.
    pub meaning: &'static str,
    /// What the key does, in a few words; `None` where it changes nothing of device memory here.
    pub brief: Option<&'static str>,
    /// What holds without the key, as a value or in words.
    pub default: &'static str,
    /// Values to try; for a choice all of them.
    pub values: &'static [&'static str],
    /// Whether no value exists besides `values`.
    pub is_choice: bool,
    /// Whether the key changes what this allocator does.
    pub is_modeled: bool,
    /// The first release of PyTorch that has the key.
    pub since: Release,
    /// Whether PyTorch's parser for all kinds of devices reads the key; otherwise its parser for CUDA does.
    pub(super) is_generic: bool,
}

/// Whether one of the two parsers of a release knows a key.
pub(super) fn has_key(is_generic: bool, key: &str, release: Release) -> bool {
    SETTING_KEYS
        .iter()
        .any(|known| (known.key, known.is_generic) == (key, is_generic) && release.is_at_least(known.since))
}

const fn number(
    key: &'static str,
    default: &'static str,
    values: &'static [&'static str],
    meaning: &'static str,
) -> SettingKey {
    SettingKey {
        key,
        meaning,
        brief: None,
        default,
        values,
        is_choice: false,
        is_modeled: true,
        since: Release::ALL[0],
        is_generic: true,
    }
}

const fn switch(key: &'static str, meaning: &'static str) -> SettingKey {
    SettingKey {
        key,
        meaning,
        brief: None,
        default: "False",
        values: &["True", "False"],
        is_choice: true,
        is_modeled: false,
        since: Release::ALL[0],
        is_generic: false,
    }
}

/// Every key that PyTorch's parsers know, those first that people use most.
pub const SETTING_KEYS: [SettingKey; 22] = [
    SettingKey {
        brief: Some("segments that grow"),
        is_generic: true,
        is_modeled: true,
        ..switch(
            "expandable_segments",
            "A segment reserves addresses and gets memory page by page, so that it can grow and its free pages can go back.",
        )
    },
    SettingKey {
        brief: Some("larger blocks are not split"),
        ..number(
            "max_split_size_mb",
            "no limit",
            &["32", "64", "128", "256", "512"],
            "Blocks of at least this many MiB are not split, so that small requests do not break large blocks; at least 20.",
        )
    },
    SettingKey {
        brief: Some("rounds sizes up"),
        ..number(
            "roundup_power2_divisions",
            "no rounding",
            &["2", "4", "8", "[256:1,512:2,1024:4,>:8]"],
            "Requests are rounded up to a step between powers of two, so that freed blocks fit later requests of other sizes.",
        )
    },
    SettingKey {
        brief: Some("releases old blocks early"),
        ..number(
            "garbage_collection_threshold",
            "never",
            &["0.6", "0.8"],
            "Above this share of the memory limit, cached segments that were not used for long are released \
         before a new one is taken.",
        )
    },
    SettingKey {
        brief: Some("how much larger an oversize block may be"),
        ..number(
            "max_non_split_rounding_mb",
            "20",
            &["32", "64", "128"],
            "A request above max_split_size_mb takes a cached block that is at most this many MiB larger; at least 20.",
        )
    },
    SettingKey {
        brief: Some("size of shared segments"),
        since: Release::V2_11,
        ..number(
            "large_segment_size_mb",
            "20",
            &["20", "64", "256"],
            "The size of segments for requests between 1 and 10 MiB; at least 11.",
        )
    },
    SettingKey {
        brief: Some("limits reserved memory"),
        is_generic: false,
        since: Release::V2_10,
        ..number(
            "per_process_memory_fraction",
            "1.0",
            &["0.5", "0.8", "0.9"],
            "The share of the device that may be reserved, from the start.",
        )
    },
    SettingKey {
        key: "backend",
        meaning: "Which allocator: PyTorch's own, or the pool of the CUDA driver.",
        brief: Some("the driver's pool"),
        default: "native",
        values: &["native", "cudaMallocAsync"],
        is_choice: true,
        is_modeled: true,
        since: Release::ALL[0],
        is_generic: false,
    },
    SettingKey {
        brief: Some("a full device is an error at once"),
        is_modeled: true,
        since: Release::V2_12,
        ..switch(
            "throw_on_cudamalloc_oom",
            "A request that the device cannot have memory for is rejected at once: nothing is released \
             before, and the device is not asked.",
        )
    },
    SettingKey {
        brief: Some("how many addresses a segment reserves"),
        is_generic: false,
        since: Release::V2_15,
        ..number(
            "expandable_segments_reserve",
            "nine eighths of the device",
            &["0.25", "0.5", "40G"],
            "How many addresses an expandable segment reserves: a share of the device, or GiB. A larger \
             request is out of memory.",
        )
    },
    SettingKey {
        is_generic: false,
        is_modeled: false,
        since: Release::V2_15,
        ..number(
            "expandable_segments_reserve_by_class",
            "none",
            &["[kv:0.5,weights:40G]"],
            "The same for streams that a C++ program tags with the name of a class.",
        )
    },
    SettingKey {
        is_generic: true,
        ..switch(
            "pinned_use_background_threads",
            "A separate thread looks for pinned host memory that can be used again.",
        )
    },
    switch(
        "pinned_use_cuda_host_register",
        "Pinned host memory is allocated by the system and then registered.",
    ),
    switch("pinned_use_hip_host_register", "The same under its name for ROCm."),
    SettingKey {
        is_generic: false,
        is_modeled: false,
        ..number(
            "pinned_num_register_threads",
            "1",
            &["1", "8", "16"],
            "How many threads register pinned host memory; a power of two, at most 128.",
        )
    },
    SettingKey {
        is_generic: false,
        is_modeled: false,
        since: Release::V2_10,
        ..number(
            "pinned_reserve_segment_size_mb",
            "none",
            &["256", "1024"],
            "Pinned host memory of this many MiB is reserved at once, and small requests are served from there.",
        )
    },
    SettingKey {
        since: Release::V2_13,
        ..number(
            "pinned_max_round_threshold_mb",
            "no limit",
            &["64", "256"],
            "Pinned host memory is rounded up to a power of two for requests of at most this many MiB.",
        )
    },
    SettingKey {
        since: Release::V2_13,
        ..number(
            "pinned_max_cached_size_mb",
            "no limit",
            &["256", "1024"],
            "Pinned host memory above this many MiB is given back at once and not cached.",
        )
    },
    SettingKey {
        since: Release::V2_12,
        ..switch(
            "pinned_free_catch_all",
            "An error while pinned host memory is freed is a warning and no exception.",
        )
    },
    switch(
        "release_lock_on_cudamalloc",
        "Other threads may use the allocator while one waits for cudaMalloc.",
    ),
    switch("release_lock_on_hipmalloc", "The same under its name for ROCm."),
    SettingKey {
        since: Release::V2_9,
        ..switch(
            "graph_capture_record_stream_reuse",
            "While a graph is captured, blocks that other streams used are used again in the same capture.",
        )
    },
];

/// The keys and values of a settings text, in order; a value may be a list in brackets.
pub fn setting_values(text: &str) -> impl Iterator<Item = (&str, &str)> {
    parts(text).into_iter().map(|part| {
        let (key, value) = part.split_once(':').unwrap_or((part, ""));
        (key.trim(), value.trim())
    })
}

/// Whether a text of settings has a key with this value.
#[must_use]
pub fn has_setting(text: &str, key: &str, value: &str) -> bool {
    setting_values(text).any(|setting| setting == (key, value))
}

/// The text with another value for a key, or without the key; the other parts stay as they are.
#[must_use]
pub fn with_setting(text: &str, key: &str, value: Option<&str>) -> String {
    let is_key = |part: &&str| part.split(':').next().map(str::trim) == Some(key);
    let mut all: Vec<String> = Vec::new();
    let mut is_written = false;
    for part in parts(text) {
        if !is_key(&part) {
            all.push(part.to_owned());
        } else if let Some(value) = value.filter(|_| !is_written) {
            all.push(format!("{key}:{value}"));
            is_written = true;
        }
    }
    if let Some(value) = value.filter(|_| !is_written) {
        all.push(format!("{key}:{value}"));
    }
    all.join(",")
}

/// The parts between commas; lists in brackets hold commas too.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (at, letter) in text.char_indices().chain([(text.len(), ',')]) {
        match letter {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 || at == text.len() => {
                parts.extend(text.get(start..at).map(str::trim).filter(|part| !part.is_empty()));
                start = at + 1;
            }
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::super::AllocatorConfig;
    use super::*;

    #[test]
    fn every_value_is_accepted_from_the_first_release_of_its_key_on() {
        for entry in &SETTING_KEYS {
            for value in entry.values {
                let text = format!("{}:{value}", entry.key);
                for release in Release::ALL {
                    let is_known = AllocatorConfig::parse(&text, release).is_ok();
                    assert_eq!(is_known, release.is_at_least(entry.since), "{text} in {release}");
                }
            }
        }
    }

    #[test]
    fn a_default_that_is_a_value_changes_nothing() {
        for entry in &SETTING_KEYS {
            let text = format!("{}:{}", entry.key, entry.default);
            let Ok(config) = AllocatorConfig::parse(&text, Release::LATEST) else {
                assert!(entry.default.contains(' ') || ["never", "none"].contains(&entry.default), "{text}");
                continue;
            };
            if !config.warnings().is_empty() {
                assert!(entry.default.contains(' '), "{text}");
                continue;
            }
            let plain = AllocatorConfig::of(Release::LATEST);
            let named = AllocatorConfig { text: String::new(), ..config };
            assert_eq!(format!("{named:?}"), format!("{plain:?}"), "{text}");
        }
    }

    #[test]
    fn a_key_is_set_and_taken_out_with_its_whole_value() {
        let conf = "max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True";
        assert_eq!(
            with_setting(conf, "roundup_power2_divisions", None),
            "max_split_size_mb:64,expandable_segments:True"
        );
        assert_eq!(
            with_setting(conf, "max_split_size_mb", Some("128")),
            "max_split_size_mb:128,roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True"
        );
        assert_eq!(with_setting("", "backend", Some("native")), "backend:native");
        assert_eq!(with_setting(conf, "no_such", None), conf);
        let values: Vec<_> = setting_values(conf).collect();
        assert_eq!(values[1], ("roundup_power2_divisions", "[256:1,512:2,>:4]"));
    }

    #[test]
    fn unclosed_lists_are_kept_as_they_are_typed() {
        assert_eq!(
            with_setting("roundup_power2_divisions:[256:1,", "backend", None),
            "roundup_power2_divisions:[256:1,"
        );
        for text in [",,", ":", "a", "[", "]]", "a:b:c", "é:ü,"] {
            let _ = with_setting(text, "a", Some("1"));
            let _ = setting_values(text).count();
        }
    }
}
