"""`timeit`: statements run as often as asked, on the program's clock."""

import time

default_timer = time.perf_counter


class Timer:
    def __init__(self, stmt="pass", setup="pass", timer=default_timer, globals=None):
        self._names = {} if globals is None else globals
        self._stmt, self._setup, self._timer = self._made(stmt), self._made(setup), timer

    def _made(self, statement):
        if callable(statement):
            return statement
        code = compile(statement, "<timeit>", "exec")
        return lambda: exec(code, self._names)

    def timeit(self, number=1000000):
        self._setup()
        start = self._timer()
        for _ in range(number):
            self._stmt()
        return self._timer() - start

    def repeat(self, repeat=5, number=1000000):
        return [self.timeit(number) for _ in range(repeat)]

    def autorange(self, callback=None):
        number = 1
        while True:
            taken = self.timeit(number)
            if callback:
                callback(number, taken)
            if taken >= 0.2 or number >= 1000:
                return number, taken
            number *= 10


def timeit(stmt="pass", setup="pass", timer=default_timer, number=1000000, globals=None):
    return Timer(stmt, setup, timer, globals).timeit(number)


def repeat(stmt="pass", setup="pass", timer=default_timer, repeat=5, number=1000000, globals=None):
    return Timer(stmt, setup, timer, globals).repeat(repeat, number)
