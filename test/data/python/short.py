# A program that ends soon: outer() calls middle() calls burn().
import time


def burn(end):
    while time.process_time() < end:
        for _ in range(500):
            pass


def middle(end):
    burn(end)  # in middle


def outer(end):
    middle(end)  # in outer


outer(0.12)  # in <module>
