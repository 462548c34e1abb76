"""How the kernels of the convolutions are cut up, by the channels that they have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """How a kernel is cut up.

    Attributes:
        rows: pixels that a tile is high, a power of two.
        columns: pixels that a tile is wide, a power of two.
        warps: warps of 32 threads in a program.
        programs: programs on a multiprocessor, where each goes through many tiles.
        apart: whether "back" leaves the weights to a kernel of their own.
    """

    rows: int = 8
    columns: int = 16
    warps: int = 4
    programs: int = 2
    apart: bool = False


BLOCKS: dict[tuple[str, int, int], Block] = {
    ("forward", 16, 32): Block(8, 32),
    ("forward", 32, 1): Block(8, 32),
    ("back", 32, 1): Block(4, 16, warps=1, programs=8),
    ("weights", 3, 8): Block(8, 16, warps=2, programs=6),
    ("weights", 8, 16): Block(4, 16, warps=1, programs=12),
    ("weights", 16, 32): Block(4, 16, warps=1, programs=8),
    ("weights", 1, 16): Block(4, 8, warps=1, programs=16),
}
"""What was measured to be better than `block_of`'s rule: (kernel, channels in, channels out)."""


def block_of(kernel: str, channels_in: int, channels_out: int) -> Block:
    """The block of a kernel, "forward", "back", "weights" or "total", for a pair of channels.

    The rule is read off the compiler's report for Hopper (Triton 3.6): the fewest instructions for
    a pixel without spilling registers.
    """
    measured = BLOCKS.get((kernel, channels_in, channels_out))
    if measured is not None:
        return measured
    if kernel == "forward":
        return Block(8, 32) if channels_in <= 3 else Block(8, 16)
    if kernel == "back":
        few = channels_out <= 3
        return Block(8, 8, warps=2, programs=4) if few else Block(8, 16, apart=True)
    if kernel == "total":  # of a table of programs by sums
        return Block(128, 32, warps=8)
    if channels_in <= 3:
        return Block(8, 16, programs=4)
    if channels_in < 16:
        return Block(8, 8, warps=2, programs=5)
    # One warp has room for the sums of 16 x 32 channels.
    sums = max(16, power_of_two(channels_in)) * max(16, power_of_two(channels_out))
    warps = max(1, sums // 512)
    return Block(4, 8 * min(2, warps), warps=warps, programs=max(1, 8 // warps))


def power_of_two(number: int) -> int:
    """The smallest that is not below a number."""
    return 1 << (number - 1).bit_length()


@dataclass(frozen=True)
class Groups:
    """The columns (tap, channel) of a gathered matrix: groups x taps = 9."""

    taps: int
    columns: int

    @classmethod
    def of(cls, channels: int, three_below: int = 16) -> Groups:
        """Nine taps of few channels, three of less than `three_below`, and one of many."""
        taps = 9 if channels <= 3 else 3 if channels < three_below else 1
        return cls(taps, max(16, power_of_two(taps * channels)))
