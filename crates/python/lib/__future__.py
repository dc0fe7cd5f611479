"""Names that `from __future__ import ...` may take; each is always on here."""

annotations = division = print_function = absolute_import = unicode_literals = generator_stop = None
