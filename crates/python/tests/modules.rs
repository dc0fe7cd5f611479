//! Modules of Python's standard library and of `NumPy`. `modules.txt` is what CPython printed for `modules.py`,
//! `random.txt` what PyTorch 2.11 printed for `random.py`.

#![allow(clippy::expect_used, reason = "helpers of tests")]

#[path = "support/run.rs"]
mod support;

use support::run;

#[test]
fn the_standard_library_prints_what_cpythons_does() {
    let (printed, finished) = run(include_str!("modules.py"));
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, include_str!("modules.txt"));
}

#[test]
fn seeded_random_numbers_of_the_host_are_pytorchs() {
    let (printed, finished) = run(include_str!("random.py"));
    assert_eq!(finished.traceback, None);
    assert_eq!(printed, include_str!("random.txt"));
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
fn files_of_the_program_itself_are_kept_and_no_others_are_there() {
    let (printed, finished) = run(
        "import os\nwith open('a.txt', 'w') as f:\n    f.write('x')\nprint(open('a.txt').read(), os.listdir())\n\
                                   print(os.path.exists('b.txt'))\nopen('b.txt')\n",
    );
    assert_eq!(printed, "x ['a.txt']\nFalse\n");
    let traceback = finished.traceback.expect("b.txt is not there");
    assert!(
        traceback.contains("line 6") && traceback.contains("put the contents into the program"),
        "{traceback}"
    );
}

#[test]
fn what_is_not_here_can_be_imported_and_says_what_to_use_when_it_is_called() {
    let (printed, finished) =
        run("import requests\nfrom matplotlib import pyplot as plt\nfrom tqdm import tqdm\nplt.plot([1])\n\
                                   print(list(tqdm([1, 2])))\nrequests.get('x')\n");
    assert_eq!(printed, "[1, 2]\n");
    let traceback = finished.traceback.expect("there is no network");
    assert!(traceback.contains("line 6") && traceback.contains("there is no network here"), "{traceback}");
}
