"""The functions of `torch`, which are typed there."""

__all__: list[str]
