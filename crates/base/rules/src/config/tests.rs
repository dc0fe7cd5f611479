use super::*;
use crate::Dialect;

fn config(text: &str) -> AllocatorConfig {
    AllocatorConfig::parse(text, Release::default()).unwrap()
}

#[track_caller]
fn fails(text: &str, message: &str) {
    assert_eq!(AllocatorConfig::parse(text, Release::default()).unwrap_err().to_string(), message, "{text}");
}

#[test]
fn defaults() {
    let config = config("");
    assert_eq!(config, AllocatorConfig::default());
    assert_eq!((config.max_split_size(), config.max_split_size_signed()), (Bytes::new(u64::MAX), -1));
    assert_eq!(config.max_non_split_rounding(), Bytes::mib(20));
    assert_eq!(config.large_segment_size(), Bytes::mib(20));
    assert_eq!(config.roundup_table(), [0; 16]);
    assert!(config.garbage_collection_threshold().abs() < f64::EPSILON);
    assert!((config.per_process_memory_fraction() - 1.0).abs() < f64::EPSILON);
    assert!(!config.expandable_segments() && config.is_caching());
    assert!(!config.release_lock_on_device_malloc() && !config.graph_capture_record_stream_reuse());
    assert_eq!(config.backend(), Backend::Native);
    let pinned = PinnedConfig {
        use_host_register: false,
        register_threads: 1,
        use_background_threads: false,
        reserve_segment_size: Bytes::ZERO,
        ..PinnedConfig::default()
    };
    assert_eq!(config.pinned(), pinned);
}

#[test]
fn options_are_read() {
    let config =
        config("max_split_size_mb:64, max_non_split_rounding_mb:32,garbage_collection_threshold:0.6,");
    assert_eq!(config.max_split_size(), Bytes::mib(64));
    assert_eq!(config.max_non_split_rounding(), Bytes::mib(32));
    assert!((config.garbage_collection_threshold() - 0.6).abs() < f64::EPSILON);
}

#[test]
fn options_of_cudas_own_parser_are_read() {
    let all = config(
        "release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True,pinned_use_cuda_host_register:True,\
         pinned_num_register_threads:8,pinned_use_background_threads:True,pinned_reserve_segment_size_mb:3",
    );
    assert!(all.release_lock_on_device_malloc() && all.graph_capture_record_stream_reuse());
    let pinned = PinnedConfig {
        use_host_register: true,
        register_threads: 8,
        use_background_threads: true,
        reserve_segment_size: Bytes::mib(3),
        ..PinnedConfig::default()
    };
    assert_eq!(all.pinned(), pinned);
    let aliases = config("release_lock_on_hipmalloc:True,pinned_use_hip_host_register:True");
    assert!(aliases.release_lock_on_device_malloc() && aliases.pinned().use_host_register);
}

#[test]
fn a_rounding_list_fills_the_table_as_pytorch_does() {
    let table = |list: &str| config(&format!("roundup_power2_divisions:{list}")).roundup_table().to_vec();
    assert_eq!(
        table("[64:8,128:2,256:4,512:2,1024:4,>:1]"),
        [8, 8, 8, 8, 8, 8, 8, 2, 4, 2, 4, 1, 1, 1, 1, 1]
    );
    assert_eq!(table("[2:4,8:2]"), [4, 4, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "gaps stay 0");
    assert_eq!(table("[>:4]"), [0, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4], "behind the first entry");
    assert_eq!(table("[65536:2,>:4]"), [2; 16], "large keys share the last entry, and nothing is behind it");
    assert_eq!(table("[1:8,1:0]")[0], 0);
    assert_eq!(table("[]"), [0; 16]);
    assert_eq!(table("4"), [4; 16]);
    assert_eq!(config("roundup_power2_divisions:[256:4]").roundup_divisions(Bytes::mib(300)), 4);
    assert_eq!(config("roundup_power2_divisions:[1:2,256:4]").roundup_divisions(Bytes::mib(512)), 0);
}

#[test]
fn separators_are_passed_over_unseen() {
    assert_eq!(config("max_split_size_mb,40").max_split_size(), Bytes::mib(40));
    let both = config("max_split_size_mb[40]garbage_collection_threshold]0.5");
    assert_eq!(both.max_split_size(), Bytes::mib(40));
    assert!((both.garbage_collection_threshold() - 0.5).abs() < f64::EPSILON);
}

#[test]
fn white_space_is_deleted_inside_of_tokens_too() {
    assert_eq!(config(" max_split _size_mb :\t4\n0 ").max_split_size(), Bytes::mib(40));
    fails(
        "max_split_size_mb\u{a0}:40",
        "Unrecognized key 'max_split_size_mb\u{a0}' in CUDA allocator config.",
    );
}

#[test]
fn numbers_are_read_as_far_as_they_go() {
    assert_eq!(config("max_split_size_mb:40.7").max_split_size(), Bytes::mib(40));
    assert_eq!(config("max_split_size_mb:+40x").max_split_size(), Bytes::mib(40));
    assert_eq!(config("max_split_size_mb:-1").max_split_size(), Bytes::mib(MAX_MIB));
    assert_eq!(config("max_non_split_rounding_mb:-1").max_non_split_rounding(), Bytes::mib(MAX_MIB));
    assert_eq!(config("large_segment_size_mb:-1").large_segment_size(), Bytes::mib(MAX_MIB));
    let threshold = config("garbage_collection_threshold:0.8abc").garbage_collection_threshold();
    assert!((threshold - 0.8).abs() < f64::EPSILON);
}

#[test]
fn the_large_segment_comes_first_wherever_it_stands() {
    let late = config("max_split_size_mb:40,large_segment_size_mb:32");
    assert_eq!((late.max_split_size(), late.large_segment_size()), (Bytes::mib(40), Bytes::mib(32)));
    assert_eq!(late.max_non_split_rounding(), Bytes::mib(32), "the default follows it");
    assert_eq!(config("max_split_size_mb:11,large_segment_size_mb:11").max_split_size(), Bytes::mib(11));
    fails(
        "max_split_size_mb:30,large_segment_size_mb:32",
        "CachingAllocator option max_split_size_mb too small, must be >= 32",
    );
}

#[test]
fn errors_have_pytorchs_words() {
    let cases = [
        ("foo:1,bar:2", "Unrecognized key 'foo' in CUDA allocator config."),
        ("max_split_size_mb:2", "CachingAllocator option max_split_size_mb too small, must be >= 20"),
        (
            "max_non_split_rounding_mb:2",
            "CachingAllocator option max_non_split_rounding_mb too small, must be >= 20",
        ),
        ("large_segment_size_mb:10", "CachingAllocator option large_segment_size_mb must be > 10 MB"),
        ("garbage_collection_threshold:1.2", "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:0", "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("garbage_collection_threshold:1", "garbage_collect_threshold is invalid, set it in (0.0, 1.0)"),
        ("per_process_memory_fraction:2", "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"),
        ("per_process_memory_fraction:-0.1", "per_process_memory_fraction is invalid, set it in [0.0, 1.0]"),
        ("roundup_power2_divisions:3", "For roundups, the divisions has to be power of 2 "),
        ("roundup_power2_divisions:0", "For roundups, the divisions has to be power of 2 "),
        ("roundup_power2_divisions:[3:2]", "For roundups, the intervals have to be power of 2 "),
        (
            "roundup_power2_divisions:[4:3]",
            "For roundups, the divisions has to be power of 2 or 0 to disable roundup ",
        ),
        (
            "expandable_segments:true",
            "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'",
        ),
        (
            "max_split_size_mb:40,release_lock_on_cudamalloc:none",
            "Expected 'True' or 'False' at index 6 in ConfigTokenizer but got 'none'",
        ),
        ("pinned_num_register_threads:3", "Number of register threads has to be power of 2, got 3"),
        ("pinned_num_register_threads:0", "Number of register threads has to be power of 2, got 0"),
        (
            "pinned_num_register_threads:1024",
            "Number of register threads should be less than or equal to 128, got 1024",
        ),
        ("pinned_reserve_segment_size_mb:0", "Pinned reserve segment size has to be greater than 0"),
        ("backend:foo", "Unknown allocator backend, options are native and cudaMallocAsync"),
        (
            "max_split_size_mb",
            "Index out of bounds in ConfigTokenizer: the value of 'max_split_size_mb' is missing",
        ),
        (
            "roundup_power2_divisions:[1:2",
            "Expected closing bracket ']' in ConfigTokenizer but reached end of config",
        ),
        ("max_split_size_mb:x", "stoull: 'x' is not a number"),
        ("max_split_size_mb:-", "stoull: '-' is not a number"),
        ("max_split_size_mb:18446744073709551616", "stoull: '18446744073709551616' is out of range"),
        ("garbage_collection_threshold:x", "stod: 'x' is not a number"),
        ("garbage_collection_threshold:1e999", "stod: '1e999' is out of range"),
    ];
    for (text, message) in cases {
        fails(text, message);
    }
}

#[test]
fn at_run_time_some_options_return_to_their_defaults_and_others_stay() {
    let mut config = config(
        "max_split_size_mb:64,max_non_split_rounding_mb:40,garbage_collection_threshold:0.5,roundup_power2_divisions:4,\
         large_segment_size_mb:32,expandable_segments:True,pinned_num_register_threads:4,per_process_memory_fraction:0.5,\
         release_lock_on_cudamalloc:True,graph_capture_record_stream_reuse:True,pinned_use_background_threads:True",
    );
    let before = config.clone();
    config.apply("").unwrap();
    assert_eq!((config.text(), config.max_split_size_signed()), ("", -1));
    assert_eq!(config.max_non_split_rounding(), Bytes::mib(32), "the large segment as it is now");
    assert!(config.garbage_collection_threshold().abs() < f64::EPSILON);
    assert_eq!(config.roundup_table(), [0; 16]);
    assert_eq!(config.large_segment_size(), Bytes::mib(32));
    assert!(config.expandable_segments() && config.release_lock_on_device_malloc());
    assert!(config.graph_capture_record_stream_reuse());
    assert_eq!(config.pinned(), before.pinned());
    assert!((config.per_process_memory_fraction() - 0.5).abs() < f64::EPSILON);
    config.apply("expandable_segments:False,large_segment_size_mb:20").unwrap();
    assert!(!config.expandable_segments());
    assert_eq!(config.max_non_split_rounding(), Bytes::mib(20));
}

#[test]
fn at_run_time_an_error_keeps_what_was_read_before_it() {
    let mut config = config("max_split_size_mb:64,roundup_power2_divisions:4");
    let text = "release_lock_on_cudamalloc:True,expandable_segments:True,garbage_collection_threshold:2,max_split_size_mb:40";
    let error = config.apply(text).unwrap_err();
    assert_eq!(error, ConfigError::GarbageCollectionThreshold);
    assert_eq!(config.text(), text, "the text is replaced first");
    assert!(config.expandable_segments(), "it stands before the bad one");
    assert_eq!(config.max_split_size_signed(), -1, "it was reset, and stands behind the bad one");
    assert!(!config.release_lock_on_device_malloc(), "CUDA's own parser never came to it");

    let error = config.apply("large_segment_size_mb:5,roundup_power2_divisions:2").unwrap_err();
    assert_eq!(error, ConfigError::LargeSegmentTooSmall);
    assert_eq!(config.roundup_table(), [0; 16]);
}

#[test]
fn at_run_time_both_parsers_read_all_of_the_text() {
    let mut config = AllocatorConfig::default();
    let unknown = config.apply("max_split_size_mb:64,foo:1").unwrap_err();
    assert_eq!(unknown.to_string(), "Unrecognized key 'foo' in Accelerator allocator config.");
    assert_eq!(config.max_split_size(), Bytes::mib(64));
    let list = config.apply("per_process_memory_fraction:[1").unwrap_err();
    assert_eq!(list, ConfigError::UnclosedList, "the parser for all devices passes over it first");
    let late = config.apply("pinned_num_register_threads:3,max_split_size_mb:32").unwrap_err();
    assert_eq!(late, ConfigError::RegisterThreadsNotPowerOfTwo(3));
    assert_eq!(config.max_split_size(), Bytes::mib(32), "read by the other parser, before");
}

#[test]
fn at_run_time_the_backend_stays() {
    let mut config = AllocatorConfig::default();
    config.apply("backend:native").unwrap();
    let error = config.apply("backend:cudaMallocAsync").unwrap_err();
    assert_eq!(
        error.to_string(),
        "Allocator backend parsed at runtime != allocator backend parsed at load time, cudaMallocAsync != native"
    );
    assert_eq!(config.backend(), Backend::Native);
    assert_eq!(config.apply("backend:foo").unwrap_err(), ConfigError::Backend);
    let mut other = self::config("backend:cudaMallocAsync");
    other.apply("backend:cudaMallocAsync,pinned_num_register_threads:2").unwrap();
    assert_eq!(other.warnings().len(), 1);
    other.apply("").unwrap();
    assert_eq!(other.backend(), Backend::CudaMallocAsync);
    assert!(other.warnings().is_empty());
}

#[test]
fn releases_up_to_2_9_have_one_parser_and_its_errors() {
    let error = |text: &str| AllocatorConfig::parse(text, Release::V2_9).unwrap_err().to_string();
    let cases = [
        ("max_split_size_mb:20", "CachingAllocator option max_split_size_mb too small, must be > 20"),
        ("max_split_size_mb", "Error parsing CachingAllocator settings, expected :"),
        ("max_split_size_mb:", "Error, expecting max_split_size_mb value"),
        ("backend:native;", "Unknown allocator backend, options are native and cudaMallocAsync"),
        ("expandable_segments:true", "Expected a single True/False argument for expandable_segments"),
        (
            "per_process_memory_fraction:0.5",
            "Unrecognized CachingAllocator option: per_process_memory_fraction",
        ),
        ("garbage_collection_threshold:1", "garbage_collect_threshold too big, set it 0.0~1.0"),
    ];
    for (text, message) in cases {
        assert_eq!(error(text), message, "{text}");
    }
    let mut config = AllocatorConfig::parse(
        "max_split_size_mb:21,roundup_power2_divisions:[4:2,8:4,>:8],max_non_split_rounding_mb:64",
        Release::V2_8,
    )
    .unwrap();
    assert_eq!(config.max_split_size(), Bytes::mib(21));
    assert_eq!(config.roundup_table()[..5], [2, 2, 2, 8, 8]);
    // What is not named keeps its value.
    config.apply("").unwrap();
    assert_eq!(config.max_non_split_rounding(), Bytes::mib(64));
}

#[test]
fn releases_up_to_2_9_read_one_variable() {
    let environment =
        Environment { alloc_conf: Some("max_split_size_mb:64".to_owned()), ..Environment::default() };
    assert_eq!(environment.config_under(Release::V2_9).unwrap(), AllocatorConfig::of(Release::V2_9));
    let config = environment.config_under(Release::V2_10).unwrap();
    assert_eq!(config.max_split_size(), Bytes::mib(64));
}

#[test]
fn of_the_settings_xpu_reads_expandable_segments_alone() {
    let text = "max_split_size_mb:64,roundup_power2_divisions:4,expandable_segments:True";
    let xpu = AllocatorConfig::parse(text, Release::V2_11.with_dialect(Dialect::Xpu)).unwrap();
    assert!(xpu.expandable_segments() && xpu.max_split_size() == UNLIMITED && !xpu.has_roundup());
    assert_eq!(xpu.text(), text);
    let ascend = AllocatorConfig::parse(text, Release::V2_11.with_dialect(Dialect::Ascend)).unwrap();
    assert_eq!(ascend.max_split_size(), Bytes::mib(64));
    // 480 bytes and 32 more fill a block; of 481, they do not.
    assert_eq!(crate::size::rounded(Bytes::new(480), &ascend).get(), 512);
    assert_eq!(crate::size::rounded(Bytes::new(481), &ascend).get(), 1024);
}
