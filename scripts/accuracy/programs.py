"""The programs whose memory is compared: models by family, and their batches.

The families are those of two papers on estimates of GPU memory, xMem (arXiv 2510.21048) and arXiv 2602.17817; sizes are those of the
published models.
"""

VISION = {  # family, optimizer, autocast
    "vgg16": ("VGG", "sgd", False),
    "vgg19": ("VGG", "sgd", False),
    "resnet18": ("ResNet", "sgd", False),
    "resnet50": ("ResNet", "sgd", False),
    "resnet101": ("ResNet", "sgd", False),
    "resnet152": ("ResNet", "sgd", True),
    "mobilenet_v2": ("MobileNet", "adam", False),
    "mobilenet_v3_small": ("MobileNet", "adam", False),
    "mobilenet_v3_large": ("MobileNet", "adam", False),
    "convnext_tiny": ("ConvNeXt", "adamw", True),
    "convnext_base": ("ConvNeXt", "adamw", True),
}
LANGUAGE = {  # family, class in transformers, sizes
    "distilgpt2": ("GPT-2", "GPT2", {"n_layer": 6, "n_head": 12, "n_embd": 768}),
    "gpt2": ("GPT-2", "GPT2", {"n_layer": 12, "n_head": 12, "n_embd": 768}),
    "gpt2-medium": ("GPT-2", "GPT2", {"n_layer": 24, "n_head": 16, "n_embd": 1024}),
    "opt-125m": (
        "OPT",
        "OPT",
        {
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "ffn_dim": 3072,
            "word_embed_proj_dim": 768,
        },
    ),
    "opt-350m": (
        "OPT",
        "OPT",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "ffn_dim": 4096,
            "word_embed_proj_dim": 512,
            "do_layer_norm_before": False,
        },
    ),
    "pythia-160m": (
        "Pythia",
        "GPTNeoX",
        {
            "hidden_size": 768,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "intermediate_size": 3072,
            "vocab_size": 50304,
        },
    ),
    "pythia-410m": (
        "Pythia",
        "GPTNeoX",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "vocab_size": 50304,
        },
    ),
    "pythia-1b": (
        "Pythia",
        "GPTNeoX",
        {
            "hidden_size": 2048,
            "num_hidden_layers": 16,
            "num_attention_heads": 8,
            "intermediate_size": 8192,
            "vocab_size": 50304,
        },
    ),
    "qwen2.5-0.5b": (
        "Qwen",
        "Qwen2",
        {
            "hidden_size": 896,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "intermediate_size": 4864,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3-0.6b": (
        "Qwen",
        "Qwen3",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "vocab_size": 151936,
            "tie_word_embeddings": True,
        },
    ),
}
SMALL = {"mlp": ("MLP", "adam"), "mlp-deep": ("MLP", "adam"), "cnn": ("CNN", "sgd"), "cnn-deep": ("CNN", "sgd")}
# 70 is in no table of convolutions.
BATCHES = {"vision": [8, 32, 64, 70], "language": [1, 3, 8, 12], "MLP": [32, 128, 500, 2048], "CNN": [32, 64, 256, 500]}


def family(name):
    return (VISION.get(name) or LANGUAGE.get(name) or SMALL[name])[0]


def programs():
    """Each model with each batch."""
    for name in [*VISION, *LANGUAGE, *SMALL]:
        group = "vision" if name in VISION else "language" if name in LANGUAGE else SMALL[name][0]
        for batch in BATCHES[group]:
            yield name, batch


def optimizer_kind(name):
    return "adamw" if name in LANGUAGE else VISION[name][1] if name in VISION else SMALL[name][1]


def is_autocast(name):
    return name in LANGUAGE or (name in VISION and VISION[name][2])
