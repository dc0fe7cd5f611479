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
fn a_whole_number_of_an_unknown_number_is_unknown_until_a_size_is_made_of_it() {
    let (printed, finished) = run("import torch\nx = torch.ones(2, device='cuda').sum()\n\
                                   print(int(x), f'{int(x.item()):5d}', int(x) // 2, int('12', 16), int(3.7), int(True), int(torch.tensor(5)))\n\
                                   print(torch.roll(torch.ones(4, device='cuda'), int(x)).shape, isinstance(7, int), int())\n\
                                   print(bool(x > 1), bool((x > 1).item()), bool(x), bool([]), bool(torch.tensor(0)), bool(torch.tensor(2.5)))\n\
                                   if bool(x > 1):\n    print('wrong')\nassert bool(x > 1)\n\
                                   class Large(int):\n    pass\n\
                                   print(Large(4), int(b'5'), int(' 6 '))\ntorch.zeros(int(x))\n");
    assert_eq!(
        printed, "?     ? ? 18 3 1 5\ntorch.Size([4]) True 0\n? ? ? False False True\n4 5 6\n",
        "{:?}",
        finished.traceback
    );
    assert!(finished.traceback.is_some_and(|text| text.contains("depends on a value")));
}

/// PyTorch writes more bytes of a view than of its clone; how many is not known here.
#[test]
fn the_size_of_a_state_in_a_stream_is_not_known_and_the_state_comes_back() {
    let (printed, finished) = run("import io, torch\nfrom torch import nn\nbuffer = io.BytesIO()\n\
                                   torch.save({'w': torch.ones(2, device='cuda')}, buffer)\n\
                                   print(buffer.tell(), buffer.getbuffer().nbytes, buffer.seek(0, 2), buffer.seek(0), buffer.tell())\n\
                                   print(torch.load(buffer)['w'].shape)\nnet, whole = nn.Linear(2, 3).cuda(), io.BytesIO()\ntorch.save(net, whole)\n\
                                   before = torch.cuda.memory_allocated()\n\
                                   try:\n    torch.load(whole)\nexcept Exception as error:\n    print(type(error).__name__, str(error)[:24])\n\
                                   copy = torch.load(whole, weights_only=False)\n\
                                   print(copy, copy.weight.device, copy.weight is net.weight, torch.cuda.memory_allocated() - before)\n\
                                   other = io.BytesIO(b'abc')\nprint(other.read(), other.tell(), other.getvalue(), len(other.getbuffer()))\n\
                                   len(buffer.getvalue())\n");
    assert_eq!(
        printed,
        "? ? ? 0 0\ntorch.Size([2])\nUnpicklingError Weights only load failed\n\
         Linear(in_features=2, out_features=3, bias=True) cuda:0 False 1024\nb'abc' 3 b'abc' 3\n"
    );
    assert!(finished.traceback.is_some_and(|text| text.contains("tell() prints their number as ?")));
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
