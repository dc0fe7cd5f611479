//! Our `NumPy`: `numpy.txt` has what `NumPy` itself printed for some 1,770 calls
//! (`python numpy_calls.py` writes it). Each is equal, unknown (`?`), or refused in words.

use crate::support::{run, run_program};
use blockyard_python::{ProgramSettings, ProgramSource};

#[test]
fn each_call_gives_what_numpy_gives_or_is_refused_in_words() {
    let program = ProgramSource {
        file: "numpy_check.py".to_owned(),
        source: include_str!("../numpy_check.py").to_owned(),
        arguments: vec![concat!(env!("CARGO_MANIFEST_DIR"), "/tests").to_owned()],
    };
    let (printed, finished) = run_program(&program, ProgramSettings::default());
    assert_eq!(finished.traceback, None, "{printed}");
    assert_eq!(printed, "{'equal': 1716, 'refused': 53, 'unknown': 5}\n");
}

/// What a program sees of numbers that nobody knows, in `NumPy` itself where it is installed and else in ours.
#[test]
fn numbers_that_nobody_knows_stay_unknown_in_arrays() {
    let (printed, finished) = run("import torch, numpy as np\n\
        x = torch.rand(4, 3, device='cuda')\nlosses = [x.sum().item() for _ in range(3)]\na = x.cpu().numpy()\n\
        print(np.mean(losses), np.std(losses), np.argmax(losses), f'{np.mean(losses):.3f}', np.array(losses))\n\
        print((a.argmax(axis=1) == np.array([0, 1, 2, 0])).mean(), a.mean(axis=0), a.shape, a.dtype)\n\
        print(np.percentile(losses, 50), np.array(losses) > 0.5, np.abs(losses), np.concatenate([losses, losses]).shape)\n\
        for use in (lambda: np.save('x.npy', losses), lambda: a[a > 0], lambda: np.unique(a), lambda: range(int(np.mean(losses)))):\n    \
            try:\n        use()\n        print('wrong')\n    except ValueError as error:\n        print('not computed here' in str(error))\n");
    assert_eq!(finished.traceback, None);
    let expected =
        "? ? ? ? [? ? ?]\n? [? ? ?] (4, 3) float32\n? [? ? ?] [? ? ?] (6,)\nTrue\nTrue\nTrue\nTrue\n";
    assert_eq!(printed, expected);
}

#[test]
fn an_array_of_a_tensor_changes_with_it() {
    let (printed, finished) = run(
        "import torch, numpy as np\nt = torch.ones(3)\nn = t.numpy()\nt.add_(1)\nprint(n)\n\
        n[0] = 5\nprint(t, n.sum())\nprint(torch.tensor(np.arange(4).reshape(2, 2)), torch.tensor(np.float32(1.5)).dtype)\n\
        print(torch.ones(2) * np.float32(2), torch.from_numpy(np.array([1.5, 2.5], np.float32)))\n\
        torch.from_numpy(n[1:]).zero_()\nprint(n, t)\n",
    );
    assert_eq!(finished.traceback, None);
    let expected = "[2. 2. 2.]\ntensor([5., 2., 2.]) 9.0\ntensor([[0, 1],\n        [2, 3]]) torch.float32\ntensor([2., 2.]) tensor([1.5000, 2.5000])\n[5. 0. 0.] tensor([5., 0., 0.])\n";
    assert_eq!(printed, expected);
}

/// Our `NumPy` does not know the last digit of what processors round in more than one way.
#[test]
fn a_number_prints_where_its_digits_do_not_depend_on_the_processor() {
    let (printed, finished) = run(
        "import sys\nsys.path.insert(0, sys.path.pop())\nimport numpy as np\nx = np.exp(1.0)\n\
         print(x, '%.4f' % x, f'{x:.6f}', round(x, 3), '%.3f' % float(x), np.exp(0.0), np.exp([0.5, 1.0]), x > 2, int(x))\n\
         p = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()\nprint(p, p.argmax(), np.power(2.0, 3))\n",
    );
    assert_eq!(finished.traceback, None);
    assert_eq!(
        printed,
        "? 2.7183 2.718282 2.718 2.718 1.0 [1.64872127 2.71828183] True 2\n[0.26894142 0.73105858] 1 8.0\n"
    );
}

#[test]
fn a_generator_without_a_seed_gives_numbers_that_nobody_knows() {
    let (printed, finished) = run(
        "import sys\nsys.path.insert(0, sys.path.pop())\nimport numpy as np\nprint(np.random.rand(2), np.random.randint(5))\n\
         print(np.random.default_rng().normal(size=2), np.random.permutation(3))\nnp.random.seed(0)\nprint(np.random.randint(0, 10, 5))\n\
         rng = np.random.default_rng(0)\nprint(rng.integers(0, 10, 3), rng.random())\n",
    );
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "[? ?] ?\n[? ?] [? ? ?]\n[5 0 3 3 7]\n[8 6 5] 0.04097352393619469\n");
}
