"""Modules that programs import and that are not modeled: the import succeeds, and the error of a call says what to use instead."""

import sys

_NETWORK = "there is no network here; put the data into the program"
_FILES = "there are no such files here; put the data into the program"
_PROCESS = "a program here is one process; call the function itself"
_MODEL = "write the model out with torch.nn"
_ADVICE = {
    "urllib": _NETWORK,
    "requests": _NETWORK,
    "socket": _NETWORK,
    "http": _NETWORK,
    "ssl": _NETWORK,
    "ftplib": _NETWORK,
    "boto3": _NETWORK,
    "huggingface_hub": _NETWORK,
    "gdown": _NETWORK,
    "fsspec": _NETWORK,
    "aiohttp": _NETWORK,
    "asyncio": _PROCESS,
    "zipfile": _FILES,
    "tarfile": _FILES,
    "gzip": _FILES,
    "bz2": _FILES,
    "lzma": _FILES,
    "sqlite3": _FILES,
    "csv": _FILES,
    "pandas": _FILES,
    "h5py": _FILES,
    "yaml": _FILES,
    "safetensors": _FILES,
    "pyarrow": _FILES,
    "PIL": _FILES,
    "cv2": _FILES,
    "imageio": _FILES,
    "scipy": _FILES,
    "skimage": _FILES,
    "sklearn": "write the function out",
    "librosa": _FILES,
    "soundfile": _FILES,
    "nltk": _FILES,
    "subprocess": _PROCESS,
    "multiprocessing": _PROCESS,
    "concurrent": _PROCESS,
    "signal": _PROCESS,
    "ctypes": "no native code runs here",
    "transformers": _MODEL,
    "timm": _MODEL,
    "diffusers": _MODEL,
    "torchtext": _MODEL,
    "torchaudio": _MODEL,
    "peft": _MODEL,
    "accelerate": _MODEL,
    "datasets": _FILES,
    "tokenizers": "make a tensor of random token numbers",
    "tiktoken": "make a tensor of random token numbers",
    "sentencepiece": "make a tensor of random token numbers",
    "spacy": "make a tensor of random token numbers",
    "flash_attn": "use torch.nn.functional.scaled_dot_product_attention",
    "xformers": "use torch.nn.functional.scaled_dot_product_attention",
    "triton": "kernels of your own are not modeled; use operators of torch",
    "bitsandbytes": "use torch.optim",
    "gym": "make observations with torch",
    "gymnasium": "make observations with torch",
    "unittest": "call the functions themselves",
    "pytest": "call the functions themselves",
    "tensorflow": "use torch",
    "jax": "use torch",
    "keras": "use torch.nn",
    "fairscale": _PROCESS,
    "deepspeed": _PROCESS,
    "horovod": _PROCESS,
    "lightning": "write the training loop out",
    "pytorch_lightning": "write the training loop out",
    "ignite": "write the training loop out",
    "hydra": "put the settings into the program",
    "omegaconf": "put the settings into the program",
    "psutil": _PROCESS,
    "pynvml": "use torch.cuda.memory_allocated()",
    "nvidia_smi": "use torch.cuda.memory_allocated()",
    "GPUtil": _PROCESS,
    "faiss": _FILES,
    "onnx": _FILES,
    "onnxruntime": _FILES,
    "ipywidgets": "print",
    "IPython": "print",
    "seaborn": "print",
    "mpl_toolkits": "print",
    "plotly": "print",
    "tensordict": "use a dict of tensors",
    "torchrl": "make observations with torch",
    "torchmetrics": "write the metric out",
    "captum": "use torch.autograd.grad",
    "ray": _PROCESS,
    "torchao": "quantized tensors are not modeled",
    "torchdata": "use torch.utils.data",
    "tabulate": "print",
    "torchx": _PROCESS,
    "six": "write Python 3's own names",
    "torchinfo": "print the module",
    "torchsummary": "print the module",
    "sentence_transformers": _MODEL,
    "evaluate": "write the metric out",
    "tensorboard": "use torch.utils.tensorboard",
    "bokeh": "print",
    "altair": "print",
    "sympy": "use numbers",
    "networkx": "use lists",
}
# Questions that programs ask these modules before they use them, with an answer that is true here.
_ANSWERS = {
    "torch.xpu.is_available": lambda: False,
    "torch.mps.is_available": lambda: False,
    "torch.mtia.is_available": lambda: False,
    "multiprocessing.cpu_count": lambda: 8,
    "multiprocessing.set_start_method": lambda *args, **kwargs: None,
    "multiprocessing.freeze_support": lambda: None,
    "signal.signal": lambda *args: None,
    "IPython.get_ipython": lambda: None,
}


class Missing:
    """A name of a module that is not modeled."""

    def __init__(self, path, advice):
        self._path, self._advice = path, advice

    def _refuse(self):
        raise NotImplementedError(f"{self._path} is not modeled here: {self._advice}")

    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        path = f"{self._path}.{name}"
        return _ANSWERS.get(path) or Missing(path, self._advice)

    def __call__(self, *args, **kwargs):
        self._refuse()

    def __mro_entries__(self, bases):
        self._refuse()

    def __instancecheck__(self, value):
        return False

    def __getitem__(self, item):
        self._refuse()

    def __iter__(self):
        self._refuse()

    def __enter__(self):
        self._refuse()

    def __repr__(self):
        return f"<{self._path}, which is not modeled here>"


def _advice(name):
    """What to use instead of a module; `None` for a name that nobody thought of."""
    top, _, rest = name.partition(".")
    if top == "torch" and rest:
        from torch import _names

        return _names.advice(rest)
    if top == "torchvision" and rest:
        return _FILES if rest == "io" else "make a tensor of its result's shape"
    return _ADVICE.get(top)


class _Loader:
    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        advice = _advice(name)
        module.__path__ = []
        for path, answer in _ANSWERS.items():
            if path.rpartition(".")[0] == name:
                setattr(module, path.rpartition(".")[2], answer)

        def get(attribute):
            if attribute.startswith("__"):
                raise AttributeError(attribute)
            return Missing(f"{name}.{attribute}", advice)

        module.__getattr__ = get


# Packages over PyTorch itself: an installed one would find our package in its place, and fail somewhere inside.
_OVER_TORCH = set(
    "transformers timm diffusers torchtext torchaudio peft accelerate sentence_transformers flash_attn xformers triton "
    "bitsandbytes fairscale deepspeed lightning pytorch_lightning ignite tensordict torchrl torchmetrics captum torchao "
    "torchdata torchinfo torchsummary torchx safetensors".split()
)


class TorchPackages:
    """The first finder: it refuses packages over PyTorch."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in _OVER_TORCH:
            return None
        return type(sys.__spec__)(name, _Loader(), is_package=True)


class Finder:
    """The last finder: it gets the names of modules that no other finder has."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        package, _, last = name.rpartition(".")
        if package.startswith("torch") and package in sys.modules:
            from torch import _names

            if not _names.is_module(name):
                # `from torch.nn import CTCLoss`: a name that is refused when it is used.
                if _names.is_public(package, last):
                    setattr(sys.modules[package], last, Missing(name, _names.advice(name)))
                return None
        if _advice(name) is None:
            return None
        kind = type(sys.__spec__)
        return kind(name, _Loader(), is_package=True)
