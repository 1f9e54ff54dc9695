# SPDX-License-Identifier: Apache-2.0
"""Tasks of asyncio, each with a function of its own: a sample in the function has the name of the task.

Two threads run an event loop each, and a third has no task. All three sleep at times, or one would keep the interpreter's
lock for seconds. New tasks start and end at full speed. Runs until it is killed. With the argument "renames", one task has
another name in each step.
"""
import asyncio
import sys
import threading
import time


def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def named():
    while True:
        burn(0.0002)
        time.sleep(0.001)
        await asyncio.sleep(0)


async def second():
    while True:
        burn(0.0002)
        await asyncio.sleep(0.001)


async def unnamed():
    while True:
        burn(0.0002)
        await asyncio.sleep(0)


async def almost_unnamed():
    while True:
        burn(0.0002)
        await asyncio.sleep(0)


async def foreign():
    while True:
        burn(0.0002)
        await asyncio.sleep(0)


async def very_long():
    while True:
        burn(0.0002)
        await asyncio.sleep(0)


def no_task():
    while True:
        burn(0.0002)
        time.sleep(0.001)


def in_executor():
    burn(0.0005)


async def waits():
    while True:
        await asyncio.get_running_loop().run_in_executor(None, in_executor)


async def renamed_0():
    burn(0.0005)


async def renamed_1():
    burn(0.0005)


async def renamed_2():
    burn(0.0005)


async def starts():
    """Short tasks; the later one has the freed memory of the one before."""
    functions = [renamed_0, renamed_1, renamed_2]
    while True:
        for function in functions:
            task = asyncio.ensure_future(function())
            task.set_name(function.__name__)
            await task
            del task


def name(coroutine, text):
    task = asyncio.ensure_future(coroutine)
    task.set_name(text)
    return task


async def first_loop():
    # the first one has asked for its name, which makes it a string in all releases
    asyncio.ensure_future(unnamed()).get_name()
    await asyncio.gather(name(named(), "named"), name(almost_unnamed(), "Task-7-b"), name(foreign(), "\u00e9t\u00e9"),
                         name(very_long(), "a-name-of-more-than-thirty-one-bytes"), name(waits(), "waits"),
                         name(starts(), "starts"))


async def renames():
    for i in range(1 << 62):
        asyncio.current_task().set_name("name-%d" % i)
        burn(0.0002)
        await asyncio.sleep(0)


async def second_loop():
    task = asyncio.ensure_future(second())
    task.set_name("second")
    await task


if sys.argv[1:] == ["renames"]:
    asyncio.run(renames())
for function in (lambda: asyncio.run(second_loop()), no_task):
    threading.Thread(target=function, daemon=True).start()
asyncio.run(first_loop())
