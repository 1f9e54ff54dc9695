#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
Draws the figures of growth.py: a row of plots for each kind of growth, with the line of least squares.

  plots.py GROWTH.json OUT.svg
"""
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import growth  # noqa: E402

WIDTH, HEIGHT, GAP = 190, 110, 44
SHOWN = ["system calls/s", "wake-ups/s", "CPU ms/s"]


def text(x, y, what, anchor="middle"):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{what}</text>'


def plot(left, top, title, points):
    """A frame from 0 to the largest values, its points and their line."""
    x_max = max(x for x, _ in points)
    y_max = max(max(y for _, y in points), 1e-9) * 1.1
    x_mean, y_mean = (sum(values) / len(points) for values in zip(*points))
    slope = growth.slope(points)

    def at(x, y):
        return left + WIDTH * x / x_max, top + HEIGHT * (1 - min(max(y / y_max, 0), 1))

    (x1, y1), (x2, y2) = (at(x, y_mean + slope * (x - x_mean)) for x in (0, x_max))
    yield f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>'
    yield f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#36c"/>'
    for x, y in points:
        cx, cy = at(x, y)
        yield f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="3" fill="#c33"/>'
    yield text(left + WIDTH / 2, top - 5, title)
    yield text(left, top + HEIGHT + 13, "0")
    yield text(left + WIDTH, top + HEIGHT + 13, f"{x_max:,}", "end")
    yield text(left - 4, top + 10, f"{y_max:,.{0 if y_max > 20 else 1}f}", "end")


def draw(found):
    width = GAP + len(SHOWN) * (WIDTH + GAP + 16)
    height = len(found) * (HEIGHT + GAP) + 10
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
           f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">')
    yield f'<rect width="{width}" height="{height}" fill="#fff"/>'
    for i, (kind, rows) in enumerate(found.items()):
        for k, column in enumerate(SHOWN):
            points = [(n, growth.COLUMNS[column](row)) for n, row in rows]
            yield from plot(GAP + 16 + k * (WIDTH + GAP + 16), 24 + i * (HEIGHT + GAP), f"{column}, by {kind}",
                            points)
    yield "</svg>"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: plots.py GROWTH.json OUT.svg")
    with open(sys.argv[1], encoding="utf-8") as f:
        found = json.load(f)
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("\n".join(draw(found)) + "\n")


if __name__ == "__main__":
    main()
