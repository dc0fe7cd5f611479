//! What students see beside numbers of memory: the texts of errors, and how tensors print. `mistakes.txt` and
//! `printed.txt` are what PyTorch 2.11 prints on the CPU.

use crate::support::run;

#[test]
fn mistakes_of_students_have_the_errors_of_pytorch() {
    compare(include_str!("../mistakes.py"), include_str!("../mistakes.txt"));
}

#[test]
fn tensors_of_known_values_print_as_those_of_pytorch() {
    compare(include_str!("../printed.py"), include_str!("../printed.txt"));
}

fn compare(source: &str, expected: &str) {
    let (printed, finished) = run(source);
    assert_eq!(finished.traceback, None);
    for (number, (ours, pytorchs)) in printed.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, pytorchs, "line {}", number + 1);
    }
    assert_eq!(printed.lines().count(), expected.lines().count());
}

/// The texts are those of an H200.
#[test]
fn tensors_on_two_devices_have_the_errors_of_pytorch() {
    let (printed, finished) = run("import torch\nfrom torch import nn\n\
         def wrong(call):\n    try:\n        call()\n    except Exception as e:\n        print(type(e).__name__, str(e).splitlines()[0])\n\
         c, g = torch.ones(2, 2), torch.ones(2, 2, device='cuda')\n\
         wrong(lambda: nn.Linear(2, 2).cuda()(c))\nwrong(lambda: nn.Conv2d(1, 1, 1).cuda()(c[None]))\nwrong(lambda: g + c)\n\
         wrong(lambda: torch.cat([g, c]))\nwrong(lambda: nn.Embedding(2, 2).cuda()(torch.tensor([1])))\n\
         wrong(lambda: c.gather(0, g.long()))\nwrong(lambda: c[g.long()])\nwrong(lambda: nn.functional.cross_entropy(g, torch.tensor([0, 1])))\n\
         wrong(lambda: nn.functional.cross_entropy(g, g[0]))\nwrong(lambda: torch.zeros(3, device='cuda:1'))\n\
         wrong(lambda: (g + nn.Parameter(g)).numpy())\n");
    assert_eq!(finished.traceback, None);
    let same = "RuntimeError Expected all tensors to be on the same device, but";
    let one = |name: &str, at: &str, other: &str, method: &str| {
        format!(
            "{same} got {name} is on {at}, different from other tensors on {other} (when checking argument in method \
             wrapper_CUDA_{method})"
        )
    };
    let expected = [
        one("mat1", "cpu", "cuda:0", "addmm"),
        "RuntimeError Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input \
         should be a MKLDNN tensor and weight is a dense tensor"
            .to_owned(),
        format!("{same} found at least two devices, cuda:0 and cpu!"),
        one("tensors", "cpu", "cuda:0", "cat"),
        one("index", "cpu", "cuda:0", "_index_select"),
        one("index", "cuda:0", "cpu", "gather"),
        "RuntimeError indices should be either on cpu or on the same device as the indexed tensor (cpu)".to_owned(),
        one("target", "cpu", "cuda:0", "nll_loss_forward"),
        "RuntimeError \"nll_loss_forward_reduce_cuda_kernel_2d_index\" not implemented for 'Float'".to_owned(),
        "AcceleratorError CUDA error: invalid device ordinal".to_owned(),
        "TypeError can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory \
         first."
            .to_owned(),
    ];
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
}

/// An operator that writes into a tensor whose values are known, and that is not computed, leaves no old value.
#[test]
fn no_value_is_left_behind_where_an_operator_writes() {
    let (printed, finished) = run("import torch\nF = torch.nn.functional\n\
         i, one = torch.tensor([0, 1]), torch.tensor([1.0, 2.0])\n\
         z = lambda: torch.zeros(2)\n\
         kept = [z().scatter(0, i, one), z().scatter_(0, i, one), z().index_add(0, i, one), z().index_add_(0, i, one),\n\
         z().index_copy(0, i, one), z().index_fill(0, i, 3.0), z().masked_scatter(i == 0, one), z().put(i, one),\n\
         z().scatter_reduce(0, i, one, 'sum'), z().index_put((i,), one), z().exp_(), z().add_(one, alpha=3), z().lerp_(one, 0.3)]\n\
         x = torch.zeros(4)\nx[:2].exp_()\nkept.append(x[:2])\n\
         e = torch.nn.Embedding(2, 1)\ne(i).sum().backward()\nkept.append(e.weight.grad.flatten())\n\
         w = torch.zeros(2, 3, requires_grad=True)\nF.cross_entropy(w, i).backward()\nkept.append(w.grad.flatten())\n\
         v = torch.zeros(2, requires_grad=True)\nv.gather(0, i).sum().backward()\nkept.append(v.grad)\n\
         print([n for n, t in enumerate(kept) if any(not getattr(value, 'is_unknown', False) for value in t.tolist())])\n\
         print(x[2:], x.shape)\n");
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "[]\ntensor([0., 0.]) torch.Size([4])\n");
}

/// A comparison that nobody can make prints as `?`; a number is taken for finite, so that a first loss is the
/// best so far.
#[test]
fn comparisons_of_unknown_numbers_are_unknown_themselves() {
    let (printed, finished) = run(
        "import torch\na = torch.ones(2, device='cuda').sum()\nx, y = a.item(), (a * 2).item()\n\
         print(x < y, x == y, torch.equal(a, a), torch.allclose(a, a), sum(b == x for b in [1, 2]))\n\
         best = float('inf')\nif x < best:\n    best = x\n    print('saved', best)\nprint(x > float('inf'), max(float('-inf'), x))\n\
         if x < y:\n    print('never')\nassert x < y\n",
    );
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "? ? ? ? ?\nsaved ?\nFalse ?\n");
    assert!(finished.notes.iter().any(|note| note.line == 6 && note.text.contains("assumed to be finite")));
    assert!(finished.notes.iter().any(|note| note.line == 10 && note.text.contains("assumed to be false")));
}

/// An assertion that nobody can check holds, also in parts and negated.
#[test]
fn an_assertion_about_unknown_numbers_holds_however_it_is_written() {
    let (printed, finished) = run("import torch\na = torch.ones(2, device='cuda')\nx = a.sum().item()\n\
         assert not torch.isnan(a).any(), 'nan'\nassert 0 <= x <= 1 and x > 0.5, x\nassert not (x < 0 or x > 9)\nassert x > 3 or x < 2\n\
         assert len(a) == 2 and not x > 5\nif not x > 1:\n    print('assumed')\n");
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "assumed\n");
    assert_eq!(finished.notes.iter().filter(|note| note.text.contains("assumed to hold")).count(), 5);
}

/// An element with an unknown index is unknown, in lists and in dictionaries, and its class has no name.
#[test]
fn an_element_with_an_unknown_index_prints_as_a_question_mark() {
    let (printed, finished) = run(
        "import torch\nfrom torch import nn\ni = torch.ones(3, device='cuda').argmax()\n\
         names, letters, sizes = ['cat', 'dog'], {0: 'a', 1: 'b'}, [[1, 2], [3, 4]]\n\
         print(names[i], ''.join(letters[k] for k in [i.item()] * 9), 'xyz'[i.item()], sizes[i], {1: 2.5}[i.item()], type(i.item()))\n\
         print(nn.ModuleList([nn.ReLU()])[0], names[-1], [nn.ReLU()][i], {True: 3}[len(names) == 2])\n",
    );
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "? ????????? ? [?, ?] ? <class '?'>\nReLU() dog ReLU() 3\n");
    assert!(
        finished
            .notes
            .iter()
            .any(|note| note.line == 6 && note.text.contains("the first element is assumed"))
    );
}

/// What a line prints after an assumed branch has a note at that line.
#[test]
fn lines_that_print_after_an_assumed_branch_are_noted() {
    let (printed, finished) = run(
        "import torch\nx = torch.ones(1, device='cuda').item()\nbad, seen = 0, []\nfor epoch in range(5):\n    \
         if x < 1:\n        bad = 0\n    else:\n        bad += 1\n        if bad > 2:\n            print('stop')\n            break\n\
         seen.append(bad)\nprint('ended', epoch)\nprint(seen)\nstate = 'good' if x > 2 else 'bad'\nprint(state)\nprint(x, len('a'))\n",
    );
    assert_eq!(printed, "stop\nended 2\n[3]\nbad\n? 1\n");
    let noted = finished.notes.iter().filter(|note| note.text.contains("this line prints"));
    let noted: Vec<_> = noted.map(|note| (note.line, note.text.contains("depends on line 5"))).collect();
    assert_eq!(noted, [(10, true), (13, true), (14, true), (16, false)]);
}

/// The texts are those of an H200.
#[test]
fn recurrent_layers_say_that_a_state_lies_elsewhere_and_files_without_versions_count_no_batches() {
    let (printed, finished) = run(
        "import torch\nfrom torch import nn\nlstm = nn.LSTM(2, 3, batch_first=True).cuda()\n\
         x, state = torch.ones(1, 4, 2, device='cuda'), torch.zeros(1, 1, 3)\n\
         for input, hx in ((x, (state, state)), (x.cpu(), None)):\n    try:\n        lstm(input, hx)\n    except RuntimeError as error:\n        print(error)\n\
         norm = nn.BatchNorm1d(2)\nprint(norm.load_state_dict({'weight': norm.weight}, strict=False).missing_keys)\n\
         hooks = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1)).cuda()\n\
         hooks[2].register_full_backward_hook(lambda module, inputs, outputs: print(inputs[0].shape, outputs[0].shape))\n\
         hooks(torch.ones(4, 2, device='cuda')).sum().backward()\n\
         print(torch.ones(2).round(decimals=2).shape, torch.autograd.gradcheck(torch.sin, (x,)))\n",
    );
    assert_eq!(finished.traceback, None);
    assert_eq!(
        printed,
        "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu\n\
         Input and parameter tensors are not at the same device, found input tensor at cpu and parameter tensor at cuda:0\n\
         ['bias', 'running_mean', 'running_var']\ntorch.Size([4, 2]) torch.Size([4, 1])\ntorch.Size([2]) ?\n"
    );
}
