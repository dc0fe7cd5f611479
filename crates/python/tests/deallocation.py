import gc


class T:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("-" + self.name, end=" ")


def many(*names):
    return [T(name) for name in names]


def case(name):
    print("|", name, end=": ")


case("list"); xs = many("a", "b", "c"); del xs
case("list.clear"); xs = many("a", "b", "c"); xs.clear()
case("list of lists"); xs = [many("a", "b"), many("c", "d")]; del xs
case("tuple"); xs = (T("a"), T("b"), T("c")); del xs
case("tuple in list"); xs = [(T("a"), T("b")), (T("c"), T("d"))]; del xs
case("rebinding"); xs = many("a", "b"); xs = many("c", "d"); del xs
case("pop"); xs = many("a", "b"); xs.pop(0); print("/", end=" "); del xs
case("dict"); d = {"x": T("a"), "y": T("b"), "z": T("c")}; del d
case("dict.clear"); d = {"x": T("a"), "y": T("b")}; d.clear()
case("attributes")


class Holder:
    pass


h = Holder(); h.x, h.y = T("a"), T("b"); del h
case("locals")


def f():
    one, two = T("a"), T("b")
    three = T("c")


f()
case("enumerate")


def names(*all_names):
    for name in all_names:
        yield T(name)


for i, x in enumerate(names("a", "b", "c")):
    del x
    print(i, end=" ")
case("items")
d = {"x": T("a"), "y": T("b")}
for k, v in d.items():
    d[k] = None
    del v
    print(k, end=" ")
case("pairs of enumerate")
for pair in enumerate(names("a", "b", "c", "d")):
    print(pair[0], end=" ")
del pair
case("generator closed")


def g():
    t = T("a")
    yield 1
    yield 2


it = g(); next(it); it.close(); print("closed", end=" "); del it
case("generator closed in try")


def g2():
    t = T("a")
    try:
        yield 1
    finally:
        print("finally", end=" ")


it = g2(); next(it); it.close(); print("closed", end=" "); del it
case("cycle")
gc.disable()
h = Holder(); h.me, h.x, h.y = h, T("a"), T("b"); del h
print("lost", end=" "); gc.collect()
case("list cycle"); xs = many("a", "b"); xs.append(xs); del xs; gc.collect()
case("closure cycle")


def outer():
    t = T("a")

    def inner():
        return inner, t
    return inner


fn = outer(); del fn; print("lost", end=" "); gc.collect()
case("exception")


def fails():
    big = T("a")
    raise ValueError


try:
    fails()
except ValueError as e:
    print("handler", end=" ")
print("after", end=" ")
case("star"); a, *b = many("a", "b", "c"); del a, b
case("swap"); a, b = T("a"), T("b"); a, b = b, a; del a, b
case("comprehension"); sq = [x.name for x in many("a", "b")]
case("nested tuple"); x = (T("a"), (T("b"), T("c"))); x = None
case("set result"); x = sorted(many("b", "a"), key=lambda t: t.name); del x
case("map"); x = list(map(lambda t: t.name, many("a", "b")))


def rebinds(first, second=None, third=0):
    first = second = None
    print("body", end=" ")


def deletes(first, *, last=None):
    del first, last
    print("body", end=" ")


def gathers(first, *others, **names):
    first = others = names = None
    print("body", end=" ")


class Holder:
    def method(self, first, third=0):
        first = None
        print("body", end=" ")


case("positional argument"); rebinds(T("a"))
case("and a keyword"); rebinds(T("a"), third=1)
case("two keywords"); rebinds(T("a"), second=T("b"), third=1)
case("keywords alone"); rebinds(first=T("a"), second=T("b"))
case("keyword only"); deletes(T("a"), last=T("b"))
case("gathered"); gathers(T("a"), T("b"), k=T("c"))
case("method"); Holder().method(T("a"))
case("method and a keyword"); Holder().method(T("a"), third=2)
case("unpacked"); rebinds(*[T("a")], **{"second": T("b")})
case("lambda"); (lambda x, y=0: print("body", end=" "))(T("a"), y=T("b"))
class Temporary:
    def __init__(self, *names):
        self.parts = [T(name) for name in names]

    def method(self, given=None):
        x = T("x")
        print("body", end=" ")


class Derived(Temporary):
    def method(self, given=None):
        y = T("y")
        return super().method(given)


case("method of a temporary"); Temporary("a", "b").method()
case("with an argument"); Temporary("a").method(T("v"))
case("again and again"); [Temporary("a").method(T("v")) for _ in range(6)]
case("of a derived class"); Derived("a").method(T("v"))
case("keywords again and again")
for _ in range(5):
    rebinds(T("a"), second=T("b"))
case("of a method")
for _ in range(5):
    Holder().method(first=T("a"), third=2)
case("of a bound method"); bound = Holder().method
for _ in range(5):
    bound(T("a"), third=2)
case("of many functions")
for each in [rebinds, gathers, lambda first, second: rebinds(first, second=second)] * 2:
    each(T("a"), second=T("b"))
case("end")
print()
