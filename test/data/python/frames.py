# -*- coding: utf-8 -*-
"""Threads parked in every kind of Python frame. Writes the frames as the interpreter itself sees
them to the file argv[1]: a line "T thread-id" for each thread, and a line "F name file line" for
each frame, innermost first, separated by tabs. Runs in CPython 3.6 and later."""
import asyncio, functools, os, sys, threading, time

STOP = threading.Event()
parked = []


def park():
    parked.append(threading.get_ident())
    STOP.wait()


def recursion(n):
    if n == 0:
        return park()
    return recursion(n - 1)


def generator(n):
    if n:
        yield from generator(n - 1)
    park()
    yield n


def in_generator():
    for _ in generator(3):
        pass


def in_sorted():
    sorted([3, 1, 2], key=lambda x: park() or x)


def partial_target(a, b):
    return [y for y in map(lambda y: park(), [a, b])]


def in_class():
    class Outer:
        class Inner:
            park()


def two_lambdas():
    f, g = (lambda: park()), (lambda: (
        f()))
    g()


def naïve():
    函数()


def 函数():
    𠀀()


def 𠀀():
    park()


def long_lines(a):
    total = (
        a +

        1)












































































































































































































































































































    total = [
        total,
        sorted([
            total],
            key=lambda x:
            park()),
        3]
    return total


def in_exec():
    source = '\n' * 400 + 'def made(x):\n  y = x\n  if y:\n' + '    y = 1\n' * 150 + '    (park(\n\n))\nmade(\n  1)\n'
    names = {'park': park}
    exec(compile(source, '<gem\u00e4cht>/\u0444\u0430\u0439\u043b.py', 'exec'), names)


async def awaited():
    park()


async def coroutine():
    return await awaited()


def in_coroutine():
    asyncio.new_event_loop().run_until_complete(coroutine())


class Thing:
    @property
    def value(self):
        try:
            raise KeyError
        except KeyError:
            with self:
                return 1

    def __enter__(self):
        park()

    def __exit__(self, *args):
        pass

    @staticmethod
    def static():
        return Thing().value


def deep():
    recursion(400)


def reporter(path, count, main):
    while len(parked) < count:
        time.sleep(0.01)
    time.sleep(0.2)
    mine = threading.get_ident()
    with open(path, 'wb') as out:
        for ident, frame in sys._current_frames().items():
            if ident == mine:
                continue
            out.write(b'T\t%d\n' % ident)
            while frame:
                code = frame.f_code
                name = getattr(code, 'co_qualname', code.co_name)
                text = 'F\t%s\t%s\t%d\n' % (name, code.co_filename, frame.f_lineno)
                out.write(text.encode('utf-8'))
                frame = frame.f_back
    print('ready', flush=True)
    time.sleep(1000)


def start():
    jobs = [functools.partial(recursion, 20), in_generator, in_sorted,
            functools.partial(partial_target, 1, b=2), in_class, two_lambdas, naïve,
            functools.partial(long_lines, 1), in_exec, in_coroutine, Thing.static, deep]
    for job in jobs:
        threading.Thread(target=job, daemon=True).start()
    threading.Thread(target=reporter, args=(sys.argv[1], len(jobs) + 1, threading.get_ident()),
                     daemon=True).start()
    recursion(3)


threading.stack_size(16 << 20)
start()
