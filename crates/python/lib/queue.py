"""Queues of one thread."""

from collections import deque as _deque


class Empty(Exception):
    pass


class Full(Exception):
    pass


class Queue:
    def __init__(self, maxsize=0):
        self.maxsize, self.queue = maxsize, _deque()

    def put(self, item, block=True, timeout=None):
        if 0 < self.maxsize <= len(self.queue):
            raise Full
        self._put(item)

    def get(self, block=True, timeout=None):
        if not self.queue:
            raise Empty
        return self._get()

    def _put(self, item):
        self.queue.append(item)

    def _get(self):
        return self.queue.popleft()

    def put_nowait(self, item):
        self.put(item)

    def get_nowait(self):
        return self.get()

    def qsize(self):
        return len(self.queue)

    def empty(self):
        return not self.queue

    def full(self):
        return 0 < self.maxsize <= len(self.queue)

    def task_done(self):
        pass

    def join(self):
        pass


SimpleQueue = Queue


class LifoQueue(Queue):
    def _get(self):
        return self.queue.pop()


class PriorityQueue(Queue):
    def __init__(self, maxsize=0):
        self.maxsize, self.queue = maxsize, []

    def _put(self, item):
        from heapq import heappush

        heappush(self.queue, item)

    def _get(self):
        from heapq import heappop

        return heappop(self.queue)
