"""Operators as functions."""

from _operator import *

__add__, __sub__, __mul__, __eq__, __lt__ = add, sub, mul, eq, lt
