//! Modules that programs import: beside the program, over PyTorch, fallbacks.

use crate::support::{run, run_with};
use blockyard_python::ProgramSettings;

macro_rules! printed {
    ($($test:ident $name:literal;)*) => {
        $(#[test]
        fn $test() {
            let (printed, finished) = run(include_str!(concat!("../", $name, ".py")));
            assert_eq!(finished.traceback, None);
            assert_eq!(printed, include_str!(concat!("../", $name, ".txt")));
        })*
    };
}

// The texts are what PyTorch 2.11 printed for the programs of the same name, over `einops` for `patterns.py`.
printed! {
    seeded_random_numbers_of_the_host_are_pytorchs "random";
    what_published_programs_use_prints_what_pytorch_prints "published";
    schedules_of_learning_rates_are_pytorchs "schedules";
    patterns_of_einops_make_the_same_views_and_copies "patterns";
    sparse_gradients_show_what_pytorchs_show "sparse";
}

#[test]
fn numpys_seeded_generator_gives_its_numbers() {
    let (printed, finished) = run(
        "import numpy as np\nnp.random.seed(0)\nprint(np.random.randint(0, 10, 5))\n\
                                   np.random.seed(0)\nprint(np.random.permutation(10))\nprint(np.linspace(0, 1, 5))\n\
                                   np.random.seed(42)\nprint(np.random.rand(3))\n",
    );
    assert_eq!(finished.traceback, None);
    let expected = "[5 0 3 3 7]\n[2 8 4 9 1 6 7 3 0 5]\n[0.   0.25 0.5  0.75 1.  ]\n[0.37454012 0.95071431 0.73199394]\n";
    assert_eq!(printed, expected);
}

#[test]
fn a_state_that_is_saved_is_there_again_and_no_file_is_written() {
    let (printed, finished) = run(
        "import os, torch\ntorch.save({'w': torch.ones(2, device='cuda')}, 'never_written.pt')\n\
         print(os.path.exists('never_written.pt'), torch.load('never_written.pt')['w'].device, os.path.getsize('never_written.pt'))\n\
         os.remove('never_written.pt')\nprint(os.path.exists('never_written.pt'))\ntorch.load('b.pt')\n",
    );
    assert_eq!(printed, "True cuda:0 ?\nFalse\n");
    assert!(finished.notes.iter().any(|note| note.line == 2 && note.text.contains("no file is written")));
    let traceback = finished.traceback.expect("b.pt is not there");
    assert!(
        traceback.contains("line 6") && traceback.contains("No such file or directory: 'b.pt'"),
        "{traceback}"
    );
    assert!(
        finished.notes.iter().any(|note| note.line == 6 && note.text.contains("start from a fresh module"))
    );
}

#[test]
fn what_is_not_here_can_be_imported_and_says_what_to_use_when_it_is_called() {
    let (printed, finished) = run(
        "import transformers\nfrom matplotlib import pyplot as plt\nfrom tqdm import tqdm\nplt.plot([1])\n\
                                   print(list(tqdm([1, 2])))\ntransformers.AutoModel('x')\n",
    );
    assert_eq!(printed, "[1, 2]\n");
    let traceback = finished.traceback.expect("it is not here");
    assert!(
        traceback.contains("line 6") && traceback.contains("write the model out with torch.nn"),
        "{traceback}"
    );
}

#[test]
fn modules_beside_the_program_are_its_own() {
    let temporary = tempfile::tempdir().expect("a folder");
    let folder = temporary.path();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("below the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    };
    write("data.py", "class Corpus:\n    size = 3\n");
    write("settings.py", "rate = 0.1\n");
    write("models/__init__.py", "from .small import *\n");
    write("models/small.py", "def width():\n    return 7\n\ndef fail():\n    return 1 / 0\n");
    write("plain/part.py", "from data import Corpus\nsize = Corpus.size + 1\n");
    let settings = ProgramSettings { folder: Some(folder.to_owned()), ..ProgramSettings::default() };
    let source = "import data\nfrom models import *\nfrom plain.part import size\nfrom settings import rate\n\
                  print(data.Corpus.size, width(), size, rate)\n\
                  import missing_one\n";
    let (printed, finished) = run_with(source, "main.py", settings.clone());
    assert_eq!(printed, "3 7 4 0.1\n");
    let traceback = finished.traceback.expect("the last module is missing");
    assert!(traceback.ends_with("ModuleNotFoundError: No module named 'missing_one'\n"), "{traceback}");
    let (_, finished) = run_with("from models import fail\nfail()\n", "main.py", settings);
    let traceback = finished.traceback.expect("a division by zero");
    let frame = format!(
        "  File \"{}\", line 5, in fail\n    return 1 / 0\n",
        folder.join("models/small.py").display()
    );
    assert!(traceback.contains(&frame) && traceback.contains("line 2, in <module>"), "{traceback}");
}

#[test]
fn parts_of_pytorch_that_are_not_here_can_be_imported_and_say_so_when_they_are_used() {
    let (printed, finished) = run("import torch\nprint(torch.cuda.memory._snapshot()['segments'])\n");
    assert_eq!((printed.as_str(), finished.notes.len()), ("[]\n", 1));
    for (source, advice) in [
        ("import torch.fx\ntorch.fx.symbolic_trace(1)", "call the module itself"),
        ("from torch import masked\nmasked.masked_tensor(1)", "use torch.where"),
        (
            "from torch.distributed.fsdp import FullyShardedDataParallel as F\nF(1)",
            "run one process of the program",
        ),
        ("import torchvision.io as io\nio.read_image('x')", "put the data into the program"),
        (
            "import torch\ntorch.cat([torch.ones(2, 2, device='cuda')] * 2, out=torch.ones(4, 2, device='cuda'))",
            "assign the result",
        ),
    ] {
        let (_, finished) = run(source);
        let traceback = finished.traceback.expect("it is not here");
        assert!(traceback.contains("line 2") && traceback.contains(advice), "{traceback}");
    }
}

#[test]
fn an_element_and_an_assertion_that_nobody_can_know_are_noted_at_their_lines() {
    let source = "import torch\nx = torch.rand(4, device='cuda')\nprint('abcd'[x.argmax()], [1, 2][x.sum().item() > 0])\n\
                  assert x.max() < 2, 'no'\nassert torch.allclose(x, x)\nif x.max() < 2:\n    print('wrong')\nrange(x.argmax())\n";
    let (printed, finished) = run(source);
    assert_eq!(printed, "? ?\n");
    let lines: Vec<u32> = finished.notes.iter().map(|note| note.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 8, 7], "{:?}", finished.notes);
    assert!(finished.traceback.expect("a range needs its number").contains("use a number in its place"));
}

#[test]
fn storages_of_the_host_have_addresses_of_their_own() {
    let (printed, finished) = run("import torch\na, b = torch.ones(4, 4), torch.ones(4, 4)\n\
         print(a.data_ptr() == b.data_ptr(), a.data_ptr() == a.view(-1).data_ptr(), a[1:].data_ptr() - a.data_ptr())\n\
         print(torch.empty(0).data_ptr(), a.untyped_storage().data_ptr() == a[2:].untyped_storage().data_ptr())\n");
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, "False True 16\n0 True\n");
}

#[test]
fn engines_that_cudnn_would_measure_are_marked() {
    let program = |setting: &str| {
        format!(
            "import torch\n{setting}\nx = torch.randn(32, 3, 224, 224, device='cuda')\ntorch.nn.Conv2d(3, 64, 7, 2, 3).cuda()(x)\n"
        )
    };
    let estimates = |setting: &str| {
        let (_, finished) = run(&program(setting));
        assert_eq!(finished.traceback, None);
        finished.estimates.iter().filter(|estimate| estimate.reason.contains("cudnn.")).count()
    };
    assert_eq!(estimates("torch.backends.cudnn.benchmark = False"), 0);
    assert_eq!(estimates("torch.backends.cudnn.benchmark = True"), 1);
    assert_eq!(estimates("torch.backends.cudnn.deterministic = True"), 1);
}

#[test]
fn distributions_of_common_programs_run_and_rare_ones_name_the_command_that_runs_them() {
    let (printed, finished) = run(
        "import torch\nimport torch.distributions as D\nfrom torch.distributions.gamma import Gamma\n\
         from torch.distributions.transforms import TanhTransform\n\
         policy = D.Categorical(logits=torch.randn(2, 3))\nprint(policy.log_prob(policy.sample()).shape)\n\
         a = torch.zeros(2, 3, device='cuda')\nd = D.Independent(D.Normal(a, torch.exp(a)), 1)\n\
         print(D.kl_divergence(d, d).shape, isinstance(d, D.Gamma))\n\
         print(D.kl_divergence(D.Uniform(a, a + 1), D.Normal(a, a + 1)).shape)\n\
         for call in [lambda: D.Gamma(1, 1), lambda: Gamma(1, 1), lambda: TanhTransform(),\n\
         \x20            lambda: D.constraints.lower_triangular, lambda: D.kl_divergence(d, D.Normal(a, a + 1)),\n\
         \x20            lambda: torch.poisson(a), lambda: torch.signal.windows.hann(4), lambda: torch.lu(a)]:\n\
         \x20   try:\n        call()\n    except (AttributeError, NotImplementedError) as error:\n\
         \x20       print(type(error).__name__, 'blockyard dry-run' in str(error))\n",
    );
    assert_eq!(finished.traceback, None);
    let expected = "torch.Size([2])\ntorch.Size([2]) False\ntorch.Size([2, 3])\n\
                    NotImplementedError True\nNotImplementedError True\nNotImplementedError True\n\
                    AttributeError True\nNotImplementedError False\n\
                    AttributeError True\nNotImplementedError True\nAttributeError True\n";
    assert_eq!(printed, expected);
}
