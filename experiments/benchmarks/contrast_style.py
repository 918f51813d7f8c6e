"""ContrastGCM given two columns in NumPy, several data sets at a time: the peer of its benchmark.

Windows of four records along Hilbert curves; of four points the contrast orthogonal to 1 and to both columns of Z is,
up to its sign, the four triangles' signed areas.
"""

import numpy as np

from jaxdp.statistics.neighbours import hilbert

GRID = 2.0**10
SIZE, BITS, CURVES = 4, 24, 4


def sums(x, y, z, side: float, width: float):
    """T and Q of each data set, (2, batch): x, y (batch, n), z (batch, n, 2); side: caliper, width: of psi."""
    place = 0.5 + np.arctan(z) / np.pi
    total = 0.0
    for rotation, shift in (hilbert.public_motion(2, seed) for seed in range(CURVES)):
        position = ((place - 0.5) @ rotation.T.astype(z.dtype) / 2.0**0.5 + 0.5 + shift) / 2.0
        order = np.argsort(keys(position), axis=1)
        total = total + along(
            *(np.take_along_axis(part, order, 1) for part in (x, y)), *ordered(z, place, order), side, width
        )
    return total / CURVES


def ordered(z, place, order):
    """z and place in this order."""
    return [np.take_along_axis(part, order[:, :, None], 1) for part in (z, place)]


def along(x, y, z, place, side, width):
    """The sums over windows of records in the order of one curve."""
    weights = contrasts(windows(z[..., 0]), windows(z[..., 1]))
    kept = np.ones(weights.shape[1:], bool)
    for axis in range(2):
        kept &= np.ptp(windows(place[..., axis]), axis=0) <= side
    applied = [soft(np.einsum("rbn,rbn->bn", weights, windows(part)), width) for part in (x, y)]
    squares = [part * part for part in applied]
    return np.stack([np.einsum("bn,bn,bn->b", kept, *parts, dtype=float) for parts in (applied, squares)])


def windows(values):
    """(4, batch, n - 3)."""
    count = values.shape[1] - SIZE + 1
    return np.stack([values[:, r : r + count] for r in range(SIZE)])


def contrasts(first, second):
    """Unit vectors (4, batch, windows)."""
    found = []
    for r in range(SIZE):
        a, b, c = (k for k in range(SIZE) if k != r)
        area = (first[b] - first[a]) * (second[c] - second[a]) - (first[c] - first[a]) * (second[b] - second[a])
        found.append((-1.0) ** r * area)
    found = np.stack(found)
    return found / np.sqrt(np.maximum(np.sum(found**2, axis=0), 1e-30))


def soft(values, width):
    """clip(t / width, -1, 1) on the grid."""
    return np.round(np.clip(values / width, -1.0, 1.0) * GRID) / GRID


def keys(position):
    """Of points (..., 2) in [0, 1] along the Hilbert curve, as whole numbers (Skilling's algorithm)."""
    cell = np.clip(np.floor(position * 2.0**BITS), 0, 2**BITS - 1).astype(np.uint32)
    a, b = cell[..., 0].copy(), cell[..., 1].copy()
    for level in range(BITS - 1, 0, -1):
        bit = np.uint32(1 << level)
        low = np.uint32(bit - 1)
        a ^= np.where(a & bit, low, np.uint32(0))
        swap = (a ^ b) & low
        inverted = (b & bit) != 0
        a ^= np.where(inverted, low, swap)
        b ^= np.where(inverted, np.uint32(0), swap)
    b ^= a
    flip = np.zeros_like(a)
    for level in range(BITS - 1, 0, -1):
        flip ^= np.where(b & np.uint32(1 << level), np.uint32((1 << level) - 1), np.uint32(0))
    return spread(a ^ flip) << np.uint64(1) | spread(b ^ flip)


def spread(values):
    """Zeros between the bits."""
    found = values.astype(np.uint64)
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF),
        (8, 0x00FF00FF00FF00FF),
        (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333),
        (1, 0x5555555555555555),
    ):
        found = (found | found << np.uint64(shift)) & np.uint64(mask)
    return found
