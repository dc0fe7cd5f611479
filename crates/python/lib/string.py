"""Constants with the characters of each kind, and templates."""

import re as _re

whitespace = " \t\n\r\v\f"
ascii_lowercase = "abcdefghijklmnopqrstuvwxyz"
ascii_uppercase = ascii_lowercase.upper()
ascii_letters = ascii_lowercase + ascii_uppercase
digits = "0123456789"
hexdigits = digits + "abcdefABCDEF"
octdigits = "01234567"
punctuation = r"""!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"""
printable = digits + ascii_letters + punctuation + whitespace


def capwords(s, sep=None):
    return (sep or " ").join(word.capitalize() for word in s.split(sep))


_NOTHING = {}


class Template:
    def __init__(self, template):
        self.template = template

    def _fill(self, values, is_strict):
        def one(found):
            if found.group(1) is not None:
                return "$"
            name = found.group(2) or found.group(3)
            if name not in values and not is_strict:
                return found.group()
            return str(values[name])

        return _re.sub(r"\$(?:(\$)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", one, self.template)

    def substitute(self, mapping=_NOTHING, /, **kws):
        return self._fill({**mapping, **kws}, True)

    def safe_substitute(self, mapping=_NOTHING, /, **kws):
        return self._fill({**mapping, **kws}, False)


class Formatter:
    def format(self, format_string, /, *args, **kwargs):
        return format_string.format(*args, **kwargs)

    def vformat(self, format_string, args, kwargs):
        return format_string.format(*args, **kwargs)
