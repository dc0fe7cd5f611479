"""Losses and distances."""

from torch.nn import functional as F
from torch.nn.module import Module

CosineSimilarity = type(
    "CosineSimilarity",
    (Module,),
    {
        "__init__": lambda self, dim=1, eps=1e-8: (Module.__init__(self), self.__dict__.update(dim=dim, eps=eps), None)[
            -1
        ],
        "forward": lambda self, x1, x2: F.cosine_similarity(x1, x2, self.dim, self.eps),
    },
)


def _loss(name, function, extra="", defaults=()):
    names = [part.strip() for part in extra.split(",") if part.strip()]

    class Made(Module):
        def __init__(self, *args, **kwargs):
            super().__init__()
            weight = kwargs.pop("weight", args[0] if args and "weight" in names else None)
            for key in ("size_average", "reduce"):
                kwargs.pop(key, None)
            self.reduction = kwargs.pop("reduction", "mean")
            for key, default in zip(names, defaults):
                if key not in ("weight", "pos_weight"):
                    setattr(self, key, kwargs.pop(key, default))
            if "weight" in names:
                self.register_buffer("weight", weight)
            if "pos_weight" in names:
                self.register_buffer("pos_weight", kwargs.pop("pos_weight", None))
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")

        def forward(self, input, target):
            return function(self, input, target)

    Made.__name__ = Made.__qualname__ = name
    Made.forward.__qualname__ = f"{name}.forward"
    Made.__module__ = "torch.nn"
    return Made


CrossEntropyLoss = _loss(
    "CrossEntropyLoss",
    lambda self, input, target: F.cross_entropy(
        input,
        target,
        weight=self.weight,
        ignore_index=self.ignore_index,
        reduction=self.reduction,
        label_smoothing=self.label_smoothing,
    ),
    "weight, ignore_index, label_smoothing",
    (None, -100, 0.0),
)
NLLLoss = _loss(
    "NLLLoss",
    lambda self, input, target: F.nll_loss(
        input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction
    ),
    "weight, ignore_index",
    (None, -100),
)
MSELoss = _loss("MSELoss", lambda self, input, target: F.mse_loss(input, target, reduction=self.reduction))
L1Loss = _loss("L1Loss", lambda self, input, target: F.l1_loss(input, target, reduction=self.reduction))
SmoothL1Loss = _loss(
    "SmoothL1Loss",
    lambda self, input, target: F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta),
    "beta",
    (1.0,),
)
HuberLoss = _loss(
    "HuberLoss",
    lambda self, input, target: F.huber_loss(input, target, reduction=self.reduction, delta=self.delta),
    "delta",
    (1.0,),
)
BCELoss = _loss(
    "BCELoss",
    lambda self, input, target: F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction),
    "weight",
    (None,),
)
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss",
    lambda self, input, target: F.binary_cross_entropy_with_logits(
        input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
    ),
    "weight, pos_weight",
    (None, None),
)
KLDivLoss = _loss(
    "KLDivLoss",
    lambda self, input, target: F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target),
    "log_target",
    (False,),
)
SoftMarginLoss = _loss(
    "SoftMarginLoss", lambda self, input, target: F.soft_margin_loss(input, target, reduction=self.reduction)
)
MultiLabelSoftMarginLoss = _loss(
    "MultiLabelSoftMarginLoss",
    lambda self, input, target: F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction),
    "weight",
    (None,),
)
HingeEmbeddingLoss = _loss(
    "HingeEmbeddingLoss",
    lambda self, input, target: F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction),
    "margin",
    (1.0,),
)
PoissonNLLLoss = _loss(
    "PoissonNLLLoss",
    lambda self, log_input, target: F.poisson_nll_loss(
        log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
    ),
    "log_input, full, eps",
    (True, False, 1e-8),
)
MultiMarginLoss = _loss(
    "MultiMarginLoss",
    lambda self, input, target: F.multi_margin_loss(
        input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
    ),
    "p, margin, weight",
    (1, 1.0, None),
)
MultiLabelMarginLoss = _loss(
    "MultiLabelMarginLoss",
    lambda self, input, target: F.multilabel_margin_loss(input, target, reduction=self.reduction),
)
NLLLoss2d = NLLLoss


class GaussianNLLLoss(Module):
    def __init__(self, *, full=False, eps=1e-6, reduction="mean"):
        super().__init__()
        self.full, self.eps, self.reduction = full, eps, reduction

    def forward(self, input, target, var):
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class TripletMarginWithDistanceLoss(Module):
    def __init__(self, *, distance_function=None, margin=1.0, swap=False, reduction="mean"):
        super().__init__()
        self.distance_function = distance_function if distance_function is not None else PairwiseDistance()
        self.margin, self.swap, self.reduction = margin, swap, reduction

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class PairwiseDistance(Module):
    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1, x2):
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineEmbeddingLoss(Module):
    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input1, input2, target):
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(Module):
    def __init__(self, margin=1.0, p=2.0, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"):
        super().__init__()
        self.margin, self.p, self.eps, self.swap, self.reduction = margin, p, eps, swap, reduction

    def forward(self, anchor, positive, negative):
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class MarginRankingLoss(Module):
    def __init__(self, margin=0.0, reduction="mean"):
        super().__init__()
        self.margin, self.reduction = margin, reduction

    def forward(self, input1, input2, target):
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)
