"""The nearest of 256 centroids for each of many short vectors."""

from __future__ import annotations

from foreword.arrays import Bytes, Floats
from foreword.native.jit import kernel


@kernel
def assign(points: Floats, first: int, width: int, table: Floats, codes: Bytes, distances: Floats) -> float:
    """``codes[i]`` becomes the centroid nearest to ``points[i, first:first + width]``; the sum of squared distances.

    table: (width, centroids), a column a centroid, so that the distances to all of them are taken side by side.
    distances: room for them.
    """
    total = 0.0
    centroids = table.shape[1]
    for point in range(len(points)):
        distances[:] = 0
        for k in range(width):
            value = points[point, first + k]
            for centroid in range(centroids):
                distances[centroid] += (value - table[k, centroid]) * (value - table[k, centroid])
        best = 0
        for centroid in range(1, centroids):
            if distances[centroid] < distances[best]:
                best = centroid
        codes[point] = best
        total += distances[best]
    return total
