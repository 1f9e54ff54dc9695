# A cycle of known calls, for ever: steps.py ANSWER. test/unit/bpf/test_walkruntime.c steps through it and has the list of
# its stacks; comments name the lines of the calls, as caller > callee.
import gc
import sys

ONE = [1]
FAULT = ValueError()


def leaf(x):
    return x


def key(x):
    return leaf(x)  # key > leaf


def thrower():
    leaf(1)  # thrower > leaf
    raise FAULT


def made():
    yield leaf(2)  # made > leaf


class Thing:
    def __init__(self):
        self.x = leaf(3)  # __init__ > leaf


def cycle():
    leaf(0)  # cycle > leaf
    sorted(ONE, key=key)  # cycle > key
    try:
        thrower()  # cycle > thrower
    except ValueError:
        pass
    for _ in made():  # cycle > made
        pass
    Thing()  # cycle > __init__


def run(turns):
    while turns:
        cycle()  # run > cycle
        turns -= 1


gc.disable()
run(100)
with open(sys.argv[1], "w") as answer:
    answer.write("ready")
print("ready")
sys.stdout.flush()
run(1 << 40)
