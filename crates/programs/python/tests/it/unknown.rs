//! Numbers that lie on the GPU, wherever a program prints or tests them; and settings that a program makes
//! itself.

use crate::support::run;

#[test]
fn a_number_that_nobody_knows_prints_as_a_question_mark_however_it_is_formatted() {
    let (printed, finished) = run("import torch\nt = torch.ones(2, device='cuda').sum()\nx = t.item()\n\
                                   print('%d: %.4f %6.2f|' % (3, x, t), '%s' % x, '%(loss).3f' % {'loss': x}, float(x), float(t) + 1)\n\
                                   print(f'{x:.3f}', '{:8.2f}|'.format(x), round(x, 2), '%5.1f%%' % 2.5, float('1.5'), '%s %s' % (1, 2))\n");
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "3: ?      ?| ? ? ? ?\n?        ?| ?   2.5% 1.5 1 2\n");
}

#[test]
fn a_check_for_numbers_gone_wrong_does_not_end_the_program_and_is_noted() {
    let (printed, finished) = run("import math, torch\nx = torch.ones(2, device='cuda').sum().item()\n\
                                   if not math.isfinite(x):\n    print('stopped')\nprint(math.isnan(x), math.isinf(x), math.isfinite(1e308 * 10))\n\
                                   if x > 3:\n    print('large')\n");
    assert_eq!((printed.as_str(), finished.status), ("False False False\n", 0));
    assert!(finished.notes.iter().any(|note| note.line == 3 && note.text.contains("assumed to be finite")));
    assert!(finished.notes.iter().any(|note| note.line == 6 && note.text.contains("assumed to be false")));
}

/// The bytes are those of PyTorch's own build in a dry run.
#[test]
fn a_mask_of_the_host_selects_what_it_says_where_its_values_are_known() {
    let (printed, finished) = run("import torch\nt = torch.arange(12.).reshape(3, 4)\n\
                                   print(list(t[torch.tensor([True, False, True])].shape), torch.nonzero(torch.tensor([[1, 0], [0, 2]])).tolist())\n\
                                   x = torch.ones(2, 2, 1000, device='cuda')\ny = x[torch.tensor([[True, False], [True, True]])]\n\
                                   print(list(y.shape), torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated())\n");
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "[2, 4] [[0, 0], [1, 1]]\n[3, 1000] 28672 29184\n");
    assert!(finished.estimates.is_empty(), "{:?}", finished.estimates);
    let (_, finished) = run("import torch\nx = torch.ones(3, device='cuda').sum().item()\n\
                             torch.nonzero(torch.tensor([x, 0.0, 2.0]))\n");
    assert_eq!(finished.estimates.len(), 1);
}

#[test]
fn settings_of_the_environment_hold_from_the_first_allocation_on() {
    let program = |before: &str, after: &str| {
        format!(
            "import os, torch\n{before}\nx = torch.empty(3 << 20, dtype=torch.uint8, device='cuda')\n{after}\n\
             print(torch.cuda.memory_reserved())\n"
        )
    };
    let setting = "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'";
    assert_eq!(run(&program("", "")).0, "20971520\n");
    let (printed, finished) = run(&program(setting, ""));
    assert_eq!((printed.as_str(), finished.notes.len()), ("20971520\n", 0));
    assert_eq!(finished.devices.first().map(|device| device.conf.as_str()), Some("expandable_segments:True"));
    let (_, finished) = run(&program("", setting));
    assert!(finished.notes.iter().any(|note| note.line == 4 && note.text.contains("changes nothing")));
    let (_, finished) = run(&program("os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'no_such_setting:1'", ""));
    assert!(finished.traceback.is_some_and(|text| text.contains("line 2") && text.contains("RuntimeError")));
}

#[test]
fn a_program_chooses_among_the_kernels_of_attention_and_what_was_not_recorded_is_marked() {
    let program = |allowed: &str, dtype: &str| {
        format!(
            "import torch\nfrom torch.nn.attention import SDPBackend, sdpa_kernel\n\
             q = torch.empty(2, 4, 512, 64, device='cuda', dtype=torch.{dtype})\n\
             with sdpa_kernel({allowed}):\n    o = torch.nn.functional.scaled_dot_product_attention(q, q, q)\n\
             print(torch.cuda.max_memory_allocated())\n"
        )
    };
    let peak = |allowed: &str| {
        let (printed, finished) = run(&program(allowed, "float16"));
        assert_eq!(finished.traceback, None);
        (printed.trim().parse::<u64>().expect("a number"), finished.estimates.len())
    };
    // The products keep a row of 512 numbers for each query.
    let (products, flash) = (peak("SDPBackend.MATH"), peak("[SDPBackend.FLASH_ATTENTION]"));
    assert!(products.0 > flash.0 + 2 * 4 * 512 * 512 * 2, "{products:?} {flash:?}");
    assert_eq!((products.1, flash.1), (0, 1));
    assert_eq!(peak("list(SDPBackend)[1:5]").1, 0);
    let (_, finished) = run(&program("SDPBackend.CUDNN_ATTENTION", "float32"));
    assert!(finished.traceback.is_some_and(|text| text.contains("No available kernel")));
}
