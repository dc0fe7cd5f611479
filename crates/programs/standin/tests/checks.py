"""Generates checks and ordinary branches over unknown values, and runs them with the stand-in's decisions.

`python checks.py PATH_OF_CHECKS [SEED] [COUNT]`. A check must not raise where some values make it pass. An
ordinary branch is decided as without the stand-in.
"""

import contextlib
import random
import re
import sys
import types


class Unknown:
    """A value of the device: each read asks `decide` with the frame that reads."""

    def __init__(self, name, kind, decide):
        self.name, self.kind, self.decide = name, kind, decide

    def __bool__(self):
        return bool(self.decide(self, sys._getframe(1)))

    def item(self):
        return self.decide(self, sys._getframe(1))

    def _compared(sign):
        return lambda self, other: Unknown(f"{self.name}{sign}{other}", 11, self.decide)

    __lt__, __le__, __gt__, __ge__ = _compared("<"), _compared("<="), _compared(">"), _compared(">=")


class Expressions:
    """Random conditions; each value is in one of them once."""

    def __init__(self, draw):
        self.draw, self.count, self.names, self.known, self.numbers = draw, 0, {}, {}, []

    def name(self, kind):
        self.count += 1
        name = f"v{self.count}"
        self.names[name] = kind
        return name

    def leaf(self):
        draw = self.draw
        choice = draw.randrange(11)
        if choice == 0:
            self.count += 1
            self.known[f"k{self.count}"] = draw.random() < 0.5
            return f"k{self.count}"
        if choice < 4:
            return self.name(11)
        if choice == 4:
            return f"bool({self.name(11)})"
        if choice == 5:
            return f"{self.name(11)}.item()"
        if choice == 6:
            return f"{self.name(6)} > {draw.randrange(4)}"
        if choice == 7:
            return f"0 <= {self.name(4)} < limit"
        if choice == 8:
            self.count += 1
            return f"(w{self.count} := {self.name(11)}{draw.choice(['', '.item()'])})"
        limit = draw.choice(["0", "0.5", "3", "1e-05", "limit", "-2"])
        self.numbers.append(float({"limit": 7}.get(limit, limit)))
        if choice == 9:
            sign = draw.choice(["<", "<=", ">", ">="])
            read = f"{self.name(6)}.item()"
            return draw.choice([f"{read} {sign} {limit}", f"{limit} {sign} {read}"])
        self.numbers.append(2.5)
        return f"abs({self.name(6)}.item() - 2.5) < 0.1"

    def any(self, depth):
        if depth == 0 or self.draw.random() < 0.25:
            return self.leaf()
        kind = self.draw.choice(["and", "or", "not"])
        if kind == "not":
            return f"not {self.within(depth)}"
        return f" {kind} ".join(self.within(depth) for _ in range(self.draw.choice([2, 2, 3])))

    def within(self, depth):
        return f"({self.any(depth - 1)})"


# Each has a condition E; `ONE` is a single value, `ACT` a line that is recorded.
CHECKS = [
    "assert E",
    "assert E, f'{limit} is wrong'",
    "if E:\n    raise ValueError",
    "if E:\n    raise ValueError('no') from None",
    "if not (E):\n    raise ValueError(f'{[n for n in range(3)]} {limit:>3}')",
    "if E:\n    ACT\nelse:\n    raise ValueError('no')",
    "if E:\n    pass\nelse:\n    ACT\n    raise ValueError('no')",
    "with context():\n    assert E\n    ACT",
    "with context():\n    if E:\n        raise ValueError",
    "try:\n    assert E\n    ACT\nexcept KeyError:\n    ACT",
    "try:\n    if not (E):\n        raise ValueError\nfinally:\n    ACT",
    "try:\n    raise KeyError\nexcept KeyError:\n    assert E",
    "for _ in range(2):\n    assert E\n    ACT",
    "for _ in range(2):\n    if E:\n        raise ValueError",
    "k = 0\nwhile k < 2:\n    k += 1\n    assert E",
    "if limit:\n    if E:\n        raise ValueError",
    "if not limit:\n    ACT\nelif E:\n    raise ValueError\nelse:\n    ACT",
    "match bool(E):\n    case True:\n        ACT\n    case _:\n        raise ValueError",
    "match bool(E):\n    case False:\n        raise ValueError",
    "if E:\n    if limit > 3:\n        raise ValueError('large')\n    raise ValueError('small')",
    "if E:\n    raise ValueError\nelif not limit:\n    raise KeyError\nACT",
    "test.fail('no') if E else None",
    "if E:\n    test.fail('no')",
    "yes = bool(ONE)\nACT\nassert yes",
    "yes = E\nassert yes",
    "def valid():\n    return E\nassert valid()",
    "def valid():\n    return bool(E)\nassert valid(), 'no'",
    "def valid():\n    yes = bool(E)\n    return yes\nif not valid():\n    raise ValueError",
    "def wrong():\n    return bool(E)\nif wrong():\n    raise ValueError",
    "def valid():\n    if not (E):\n        return False\n    return True\nassert valid()",
    "def valid():\n    if not (E):\n        return 'no'\nif valid() is not None:\n    raise ValueError",
    "def inner():\n    return bool(E)\ndef valid(*a, **k):\n    return inner(*a, **k)\nassert valid()",
    "def inner():\n    return bool(E)\ndef valid():\n    return inner() and limit > 0\nassert valid()",
    "def valid():\n    return bool(E)\nyes = valid()\nassert yes",
    "class Valid:\n    @property\n    def yes(self):\n        return bool(E)\nassert Valid().yes",
    "class Valid:\n    def __contains__(self, _number):\n        return bool(E)\nassert 3 in Valid()",
    "assert all(bool(E) for _ in range(2))",
    "if any(bool(E) for _ in range(2)):\n    raise ValueError",
]
ENDING_CHECKS = [
    "if E:\n    return 1\nraise ValueError",
    "if not (E):\n    raise ValueError\nreturn 1",
    "if E:\n    return 1\nelse:\n    raise ValueError",
]
ORDINARY = [
    "if E:\n    ACT",
    "if E:\n    ACT\nelse:\n    ACT",
    "x = E",
    "x = 1 if E else 2",
    "if not (E):\n    ACT\nif not limit:\n    raise ValueError",
    "if E:\n    ACT\n    if not limit:\n        raise ValueError",
    "for _ in range(2):\n    if E:\n        break\nelse:\n    raise KeyError",
    "for _ in range(3):\n    if E:\n        continue\n    ACT",
    "k = 0\nwhile k < 3 and (E):\n    k += 1",
    "with context():\n    if E:\n        ACT",
    "try:\n    if E:\n        ACT\nexcept ValueError:\n    raise KeyError from None",
    "helper(E)",
    "if helper(E):\n    raise ValueError",
    "x = [E, limit]",
    "match E:\n    case True:\n        ACT\n    case _:\n        ACT",
    "if E:\n    raise StopIteration",
    "if E:\n    ACT\nelif not limit:\n    raise ValueError",
    "if limit:\n    if E:\n        ACT\n        assert limit",
    "print_ = E\nif limit > 100:\n    raise ValueError",
    "x = (lambda: E)()",
    "x = {'a': E}",
    "def valid():\n    return bool(E)\nif valid():\n    ACT",
    "def valid():\n    return bool(E)\nhelper(valid())",
    "def valid(_):\n    return bool(E)\nif sum(map(valid, [1])) > 2:\n    raise ValueError",
    "def valid(_):\n    return bool(E)\nif sorted([1], key=valid) == [2]:\n    raise ValueError",
    "def valid():\n    return bool(E)\nvalid()\nassert limit == 7",
    "def valid():\n    if E:\n        ACT\n    return limit\nassert valid() == 7",
    "x = all(bool(E) for _ in range(2))",
    "x = [bool(E) for _ in range(2)]\nassert len(x) == 2",
]
ENDING_ORDINARY = [
    "return E",
    "if E:\n    return 1\nACT\nreturn 2",
    "if E:\n    return 1\nreturn 2",
    "if E:\n    return 1\nassert limit\nACT",
]


class Case:
    """A function with one check, or one ordinary branch, among others."""

    def __init__(self, draw, is_check):
        forms, endings = (CHECKS, ENDING_CHECKS) if is_check else (ORDINARY, ENDING_ORDINARY)
        self.form = draw.choice(forms * 2 + endings)
        self.expressions = Expressions(draw)
        self.condition = condition = self.expressions.any(draw.choice([0, 1, 1, 2, 2, 3]))
        is_ending = self.form in endings
        body = (
            re.sub(r"\bE\b", f"({condition})", self.form)
            .replace("ONE", self.expressions.name(11))
            .replace("ACT", "acts.append(0)")
        )
        if not is_check and draw.random() < 0.3:
            body = f"acts.append(1)\n{body}"
        names = list(self.expressions.names)
        self.is_module = not is_ending and draw.random() < 0.3
        after = (
            ""
            if is_ending
            else "\nacts.append(2)"
            + draw.choice(["", "\nassert limit == 7", "\nif limit < 0:\n    raise KeyError"])
        )
        if self.is_module:
            self.text = body + after
        else:
            given = ", ".join(["limit", *draw.sample(names, draw.randrange(len(names) + 1))])
            lines = "\n    ".join((body + after).split("\n"))
            self.given = given.split(", ")
            self.text = f"def run({given}):\n    {lines}\n"
        self.code = compile(self.text, "<case>", "exec")

    def run(self, decide):
        """Runs with these decisions; returns whether a check raised, and what was done."""
        acts = []

        class Test:
            def fail(self, _why):
                raise AssertionError

        def helper(value):
            return False

        values = {name: Unknown(name, kind, decide) for name, kind in self.expressions.names.items()}
        space = {
            "acts": acts,
            "context": contextlib.nullcontext,
            "limit": 7,
            "test": Test(),
            "helper": helper,
            **self.expressions.known,
            **values,
        }
        try:
            exec(self.code, space)
            if not self.is_module:
                space["run"](*(space[name] for name in self.given))
        except (AssertionError, ValueError):
            return True, acts
        except (KeyError, StopIteration):
            return False, acts
        return False, acts


def can_pass(case):
    """Whether some values of the unknown make the case pass. Each value stays the same in a run."""
    numbers = {0.0, 1.0, -1.0, *(number + more for number in case.expressions.numbers for more in (0, 1, -1))}
    script, chosen = [], {}

    def decide(value, _frame):
        key = value.name
        if key not in chosen:
            options = [False, True] if value.kind == 11 else sorted(numbers)
            place = len(chosen)
            if place == len(script):
                script.append([0, len(options)])
            chosen[key] = options[script[place][0]]
        return chosen[key]

    for _ in range(20_000):
        chosen.clear()
        if not case.run(decide)[0]:
            return True
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return False
        script[-1][0] += 1
    return False


def main(path, seed=0, count=2000):
    space = types.ModuleType("checks").__dict__
    with open(path) as file:
        exec(compile(file.read(), path, "exec"), space)
    passing, locals_known = space["passing"], space["_variable"] is not None
    draw = random.Random(int(seed))
    said = {True: 0, False: 0}
    for number in range(int(count)):
        is_check = number % 2 == 0
        case = Case(draw, is_check)
        answers = []

        def decide(value, frame, answers=answers):
            usual = False if value.kind == 11 else 1.0 if draw.random() < 0.5 else 0.75
            answer = passing(frame, value.kind, usual)
            answers.append(answer)
            return usual if answer is None else answer

        raised, _ = case.run(decide)
        # Before Python 3.12 the number in a local variable is not known.
        is_known = locals_known or case.is_module or "limit" not in case.condition
        if is_check and raised and is_known and can_pass(case):
            raise SystemExit(f"{sys.version}\nit can pass: {answers}\n{case.expressions.known}\n{case.text}")
        if not is_check and any(answer is not None for answer in answers):
            raise SystemExit(f"{sys.version}\nno check, but a decision: {answers}\n{case.text}")
        said[is_check] += any(answer is not None for answer in answers)
    print(f"{sys.version.split()[0]}: {said[True]} of {count} decided")


if __name__ == "__main__":
    main(*sys.argv[1:])
