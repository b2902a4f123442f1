"""Finding free positions for boxes: the inner loop of the word cloud."""

from __future__ import annotations

import numpy as np

from foreword.arrays import Bytes, Ints, Longs
from foreword.native.jit import inlined, kernel


def plain_place_boxes(widths: Longs, heights: Longs, cells: Ints, rows: int, columns: int) -> list[tuple[int, int]]:
    """Place boxes as ``place_boxes`` does, in plain Python: the left and upper edge of each, until one does not fit."""
    taken = np.zeros((rows, columns), bool)
    found: list[tuple[int, int]] = []
    for width, height in zip(widths.tolist(), heights.tolist(), strict=True):
        for cell in cells.tolist():
            left, top = cell % columns - width // 2, cell // columns - height // 2
            inside = left >= 0 and top >= 0 and left + width <= columns and top + height <= rows
            if inside and not taken[top : top + height, left : left + width].any():
                taken[top : top + height, left : left + width] = True
                found.append((left, top))
                break
        else:
            break
    return found


@inlined
def is_free(taken: Bytes, left: int, top: int, width: int, height: int, step_x: int, step_y: int) -> bool:
    """Return whether a box lies within the grid and overlaps no other.

    ``taken`` is a union of boxes at least ``step_x`` wide and ``step_y`` high, so it is enough to test the points of a
    lattice as dense as that: no such box slips through.
    """
    rows, columns = taken.shape
    if left < 0 or top < 0 or left + width > columns or top + height > rows:
        return False
    y = top
    while True:
        x = left
        while True:
            if taken[y, x]:
                return False
            if x == left + width - 1:
                break
            x = min(x + step_x, left + width - 1)
        if y == top + height - 1:
            break
        y = min(y + step_y, top + height - 1)
    return True


@inlined
def strike_out(
    cells: Ints,
    live: int,
    taken: Bytes,
    least_x: int,
    least_y: int,
    step_x: int,
    step_y: int,
    moved: Ints,
) -> int:
    """Keep only cells around which the smallest box to come is free; return their number. moved: their new indices."""
    columns = taken.shape[1]
    kept = 0
    for place in range(live):
        moved[place] = kept
        y, x = cells[place] // columns, cells[place] % columns
        if is_free(taken, x - least_x // 2, y - least_y // 2, least_x, least_y, step_x, step_y):
            cells[kept] = cells[place]
            kept += 1
    moved[live] = kept
    return kept


@kernel
def place_boxes(
    widths: Longs,
    heights: Longs,
    least: Longs,
    cells: Ints,
    moved: Ints,
    reached: Ints,
    taken: Bytes,
    lefts: Longs,
    tops: Longs,
) -> int:
    """Put each box, in turn, around the first cell of a list where it is free; return how many fitted.

    least: int64 (n, 2), the smallest width and height from each box on.
    cells: int32 (c,), the grid's cells, y · columns + x, in the order in which they are tried; overwritten.
    moved: int32 (c + 1,), workspace. reached: int32 (largest height + 1, largest width + 1), zeros: the index before
    which a box of that size is never free. taken: uint8 (rows, columns), zeros. lefts, tops: int64 (n,), the result.
    """
    rows, columns = taken.shape
    live = len(cells)
    step_x, step_y = columns, rows
    tried = 0
    for number in range(len(widths)):
        width, height = widths[number], heights[number]
        if tried > live:  # as many tests as testing every cell once: fewer cells pay
            live = strike_out(cells, live, taken, least[number, 0], least[number, 1], step_x, step_y, moved)
            for row in range(reached.shape[0]):
                for column in range(reached.shape[1]):
                    reached[row, column] = moved[reached[row, column]]
            tried = 0
        # Where a smaller box was not free, this one is not either.
        place = np.int32(0)
        for row in range(height + 1):
            for column in range(width + 1):
                place = max(place, reached[row, column])
        before = place
        while place < live:
            y, x = cells[place] // columns, cells[place] % columns
            if not taken[y, x] and is_free(taken, x - width // 2, y - height // 2, width, height, step_x, step_y):
                break
            place += np.int32(1)
        reached[height, width] = place
        tried += place - before
        if place == live:
            return number
        lefts[number], tops[number] = x - width // 2, y - height // 2
        taken[tops[number] : tops[number] + height, lefts[number] : lefts[number] + width] = 1
        step_x, step_y = min(step_x, width), min(step_y, height)
    return len(widths)
