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


def sized(hidden, layers, heads, **others):
    return {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads, **others}


def opt(hidden, layers, heads, wide, words, **others):
    return sized(hidden, layers, heads, ffn_dim=wide, word_embed_proj_dim=words, **others)


def pythia(hidden, layers, heads):
    return sized(hidden, layers, heads, intermediate_size=4 * hidden, vocab_size=50304)


def qwen(hidden, layers, heads, shared, wide, **others):
    more = {"num_key_value_heads": shared, "intermediate_size": wide, "vocab_size": 151936}
    return sized(hidden, layers, heads, **more, tie_word_embeddings=True, **others)


LANGUAGE = {  # family, class in transformers, sizes
    "distilgpt2": ("GPT-2", "GPT2", {"n_layer": 6, "n_head": 12, "n_embd": 768}),
    "gpt2": ("GPT-2", "GPT2", {"n_layer": 12, "n_head": 12, "n_embd": 768}),
    "gpt2-medium": ("GPT-2", "GPT2", {"n_layer": 24, "n_head": 16, "n_embd": 1024}),
    "opt-125m": ("OPT", "OPT", opt(768, 12, 12, 3072, 768)),
    "opt-350m": ("OPT", "OPT", opt(1024, 24, 16, 4096, 512, do_layer_norm_before=False)),
    "pythia-160m": ("Pythia", "GPTNeoX", pythia(768, 12, 12)),
    "pythia-410m": ("Pythia", "GPTNeoX", pythia(1024, 24, 16)),
    "pythia-1b": ("Pythia", "GPTNeoX", pythia(2048, 16, 8)),
    "qwen2.5-0.5b": ("Qwen", "Qwen2", qwen(896, 24, 14, 2, 4864)),
    "qwen3-0.6b": ("Qwen", "Qwen3", qwen(1024, 28, 16, 8, 3072, head_dim=128)),
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
