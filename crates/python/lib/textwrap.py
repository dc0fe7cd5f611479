"""Texts in lines of a width."""


def dedent(text):
    lines = text.split("\n")
    margin = None
    for line in lines:
        if line.strip():
            indent = line[: len(line) - len(line.lstrip())]
            if margin is None:
                margin = indent
            while not indent.startswith(margin):
                margin = margin[:-1]
    margin = margin or ""
    return "\n".join(line[len(margin) :] if line.strip() else "" for line in lines)


def indent(text, prefix, predicate=None):
    return "".join(prefix + line if (predicate or str.strip)(line) else line for line in text.splitlines(True))


def wrap(text, width=70, *, initial_indent="", subsequent_indent="", **kwargs):
    lines, line = [], initial_indent
    is_empty = True
    for word in text.split():
        while True:
            joined = line + ("" if is_empty else " ") + word
            if len(joined) <= width:
                line, is_empty = joined, False
                break
            if is_empty:
                room = max(1, width - len(line))
                lines.append(line + word[:room])
                word, line = word[room:], subsequent_indent
            else:
                lines.append(line)
                line, is_empty = subsequent_indent, True
            if not word:
                break
    if not is_empty:
        lines.append(line)
    return lines


def fill(text, width=70, **kwargs):
    return "\n".join(wrap(text, width, **kwargs))


def shorten(text, width, *, placeholder=" [...]", **kwargs):
    words = text.split()
    if len(" ".join(words)) <= width:
        return " ".join(words)
    while words and len(" ".join(words) + placeholder) > width:
        words.pop()
    return " ".join(words) + placeholder if words else placeholder.strip()
