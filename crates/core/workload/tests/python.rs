//! Spellings of PyTorch programs, and the lines about the whole run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use blockyard_record::Bytes;
use blockyard_workload::{Request, Workload, parse_size};

fn sizes(text: &str) -> Vec<u64> {
    let workload = Workload::parse(text).unwrap();
    let sizes = workload.requests().iter().filter_map(|request| match request {
        Request::Allocate { size, .. } => Some(size.get()),
        _ => None,
    });
    sizes.collect()
}

#[test]
fn tensors_are_made_as_pytorch_programs_make_them() {
    let cases = [
        ("x = torch.empty(1000, 1000)", 4_000_000),
        ("x = torch.empty(1000, 1000, device=\"cuda\")", 4_000_000),
        ("x = torch.empty(1000, 1000, device='cuda:0', dtype=torch.float16)", 2_000_000),
        ("x = torch.zeros((2, 3, 4), dtype=torch.int64, requires_grad=True)", 192),
        ("x = torch.randn([8], dtype=torch.half)", 16),
        ("x = torch.ones(0, 5)", 0),
        ("x = torch.empty(1_000)", 4_000),
    ];
    for (text, bytes) in cases {
        assert_eq!(sizes(text), [bytes], "{text}");
    }
}

#[test]
fn a_small_program_runs_as_it_is_written() {
    let text = "
        a = torch.empty(1024, 1024, device=\"cuda\")
        b = torch.empty(1024, 1024, device=\"cuda\")
        del a, b
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    ";
    let plain = "a = alloc 4 MiB\nb = alloc 4 MiB\nfree a, b\nempty_cache\nreset_peak";
    assert_eq!(Workload::parse(text).unwrap().requests(), Workload::parse(plain).unwrap().requests());
}

#[test]
fn what_is_no_tensor_on_the_gpu_is_an_error_with_its_place() {
    for (text, part) in [
        ("x = torch.empty(10, device=\"cpu\")", "only the GPU"),
        ("x = torch.empty(10, device='cpu')", "only the GPU"),
        ("x = torch.empty(10", "expected"),
        ("x = torch.empty(ten)", "expected"),
        ("x = torch.empty(10, dtype=torch.float7)", "dtype"),
        ("x = torch.empty(4294967296, 4294967296, 4294967296)", "large"),
        ("x = torch.empty(10, device='cuda)", "closing quote"),
        ("torch.cuda.empty_cache", "()"),
    ] {
        let error = Workload::parse(text).unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn names_that_look_like_torch_stay_names() {
    assert_eq!(
        sizes("torch = alloc 512\ntorch.weight = alloc 1024\ncapacity = alloc 2048\nconf = alloc 512"),
        [512, 1024, 2048, 512]
    );
}

#[test]
fn units_of_a_thousand_are_sizes() {
    assert_eq!(parse_size("3 GB"), Ok(Bytes::new(3_000_000_000)));
    assert_eq!(parse_size("1.5MB"), Ok(Bytes::new(1_500_000)));
    assert!(parse_size("0.0001 KB").is_err());
}

#[test]
fn a_text_says_what_it_is_meant_to_run_on() {
    let workload =
        Workload::parse("capacity 64 MiB\nconf expandable_segments:True, max_split_size_mb:64\na = alloc 1")
            .unwrap();
    assert_eq!(workload.capacity(), Some(Bytes::mib(64)));
    assert_eq!(workload.conf(), Some("expandable_segments:True, max_split_size_mb:64"));
    assert_eq!(workload.requests().len(), 1);
    assert!(Workload::parse("capacity 1 GiB\ncapacity 2 GiB").is_err());
    assert!(Workload::parse("repeat 2 { capacity 1 GiB }").is_err());
}
