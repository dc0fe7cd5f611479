"""Heaps in lists: no item is larger than the two below it."""


def _up(heap, at):
    item = heap[at]
    while at > 0:
        above = (at - 1) >> 1
        if not item < heap[above]:
            break
        heap[at] = heap[above]
        at = above
    heap[at] = item


def _down(heap, at):
    item, end = heap[at], len(heap)
    while True:
        below = 2 * at + 1
        if below >= end:
            break
        if below + 1 < end and not heap[below] < heap[below + 1]:
            below += 1
        if not heap[below] < item:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = item


def heappush(heap, item):
    heap.append(item)
    _up(heap, len(heap) - 1)


def heappop(heap):
    last = heap.pop()
    if not heap:
        return last
    first, heap[0] = heap[0], last
    _down(heap, 0)
    return first


def heapreplace(heap, item):
    first, heap[0] = heap[0], item
    _down(heap, 0)
    return first


def heappushpop(heap, item):
    if heap and heap[0] < item:
        return heapreplace(heap, item)
    return item


def heapify(x):
    for at in reversed(range(len(x) // 2)):
        _down(x, at)


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[: max(n, 0)]


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[: max(n, 0)]


def merge(*iterables, key=None, reverse=False):
    yield from sorted((item for iterable in iterables for item in iterable), key=key, reverse=reverse)
