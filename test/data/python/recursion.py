# Python calls C calls Python, twice, and a loop of such calls at the end. recursion.py ANSWER MODE:
# "burn" runs, "sleep" waits. test/bpf/test_python.c has the list of the functions; comments name the
# lines of their calls.
import sys
import time


def tiny(x):
    return x


def leaf(sleeps):
    while True:
        if sleeps:
            time.sleep(0.005)
        else:
            max((1, 2, 3), key=tiny)


def key(sleeps):
    leaf(sleeps)  # in key


def sorter(depth, sleeps):
    return sorted([1], key=lambda v: deep(depth - 1, sleeps) if depth else key(sleeps))  # in sorter


def deep(depth, sleeps):
    sorter(depth, sleeps)  # in deep


def main():
    deep(1, sys.argv[2] == "sleep")  # in main


with open(sys.argv[1], "w") as answer:
    answer.write("ready")
print("ready")
sys.stdout.flush()
main()  # in <module>
