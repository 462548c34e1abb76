"""The convolutions of the attention networks by our kernels and by cuDNN, on a GPU.

    python benchmarks/attention_kernels.py [--sweep [16-32 8-16 ...]]

For each setting: the time of a forward and backward pass of the attention network from a CUDA
graph, the error of its output and gradients against float64, and where the time goes. With --sweep,
layers are first timed on their own under several ways to cut them up; the fastest are used in what
follows, and printed as entries for `foveate.models.convolve_blocks.BLOCKS`.
"""

from __future__ import annotations

import argparse
import copy
import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn

from foveate.kernels import plain_pytorch
from foveate.models import ConvAttention, PooledAttention, layer_kernel
from foveate.models.convolve_blocks import BLOCKS, Block, block_of
from foveate.models.layer_kernel import Layer

SETTINGS: dict[str, tuple[Callable[[], nn.Module], tuple[int, int, int, int]]] = {
    "roads, 16": (lambda: PooledAttention(3), (16, 3, 288, 384)),
    "roads, 1": (lambda: PooledAttention(3), (1, 3, 288, 384)),
    "mnist deep, 32": (lambda: ConvAttention(1, channels=16, layers=4), (32, 1, 180, 180)),
    "colon deep, 10": (lambda: ConvAttention(3, channels=16, layers=4), (10, 3, 100, 100)),
}

LAYERS: dict[str, tuple[tuple[int, int, int, int], int, tuple[int, int]]] = {
    "3-8": ((16, 3, 288, 384), 0, (3, 8)),
    "8-16": ((16, 8, 286, 382), 0, (8, 16)),
    "16-32": ((16, 16, 284, 380), 0, (16, 32)),
    "32-1": ((16, 32, 282, 378), 0, (32, 1)),
    "1-16": ((32, 1, 180, 180), 1, (1, 16)),
    "16-16": ((32, 16, 180, 180), 1, (16, 16)),
    "16-1": ((32, 16, 180, 180), 1, (16, 1)),
}
"""The input, padding and channels of each layer that is tried on its own."""

OVERRIDES: dict[tuple[str, int, int], Block] = {}
"""Blocks to try in this run: (kernel, channels in, channels out), as in BLOCKS."""

CANDIDATES = {
    "forward": [
        Block(8, 16),
        Block(8, 32),
        Block(8, 16, warps=2),
        Block(4, 16, warps=1),
    ],
    "back": [
        Block(8, 16, apart=True),
        Block(8, 32, apart=True),
        Block(8, 32, warps=8, apart=True),
        Block(8, 8, warps=2, programs=4),
        Block(8, 16, warps=2, programs=4),
        Block(4, 16, warps=1, programs=8),
    ],
    "weights": [
        Block(4, 8, warps=1, programs=8),
        Block(4, 16, warps=1, programs=8),
        Block(4, 16, warps=1, programs=12),
        Block(8, 16, warps=2, programs=4),
        Block(8, 16, warps=2, programs=6),
    ],
}


def milliseconds(work: Callable[[], object], repeats: int = 30) -> float:
    """The median time of some work, replayed from a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    times = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return float(statistics.median(times))


def results(network: nn.Module, x: Tensor, weight: Tensor) -> list[Tensor]:
    """The logits, and the gradients of all parameters."""
    logits = network(x)
    gradients = torch.autograd.grad(logits, list(network.parameters()), weight.to(logits.dtype))
    return [logits.detach(), *gradients]


def errors(network: nn.Module, x: Tensor, weight: Tensor) -> tuple[float, float]:
    """The error of the logits, and the largest of a gradient, relative to float64's norm."""
    found = results(network, x, weight)
    expected = results(copy.deepcopy(network).double(), x.double(), weight)
    relative = [
        float((one.double() - other).norm() / other.norm())
        for one, other in zip(found, expected, strict=True)
    ]
    return relative[0], max(relative[1:])


def kernel_times(work: Callable[[], object]) -> list[str]:
    """A line for each kernel that takes 2 microseconds or more."""
    work()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(5):
            work()
        torch.cuda.synchronize()
    # One name stands for several layers, so that each launch is a line, in the order of the work.
    spans = [event for event in profiler.events() if event.device_type.name == "CUDA"]
    spans.sort(key=lambda event: event.time_range.start)
    spans = [span for span in spans[len(spans) * 4 // 5 :] if span.time_range.elapsed_us() >= 2]
    return [f"{span.time_range.elapsed_us():8.1f} us  {span.name[:80]}" for span in spans]


def compare(name: str) -> None:
    """Print what a setting costs in each way."""
    build, shape = SETTINGS[name]
    torch.manual_seed(0)
    network = build().cuda()
    x = torch.rand(shape, device="cuda")
    weight = torch.randn_like(network(x))
    last = copy.deepcopy(network)
    nn.Module.to(last, memory_format=torch.channels_last)  # type: ignore[call-overload]
    x_last = x.contiguous(memory_format=torch.channels_last)
    with plain_pytorch():
        cudnn = milliseconds(lambda: results(network, x, weight))
        cudnn_last = milliseconds(lambda: results(last, x_last, weight))
        cudnn_errors = errors(network, x, weight)
    ours = milliseconds(lambda: results(network, x, weight))
    ours_errors = errors(network, x, weight)
    print(
        f"| {name} | {ours:.3f} | {cudnn:.3f} | {cudnn_last:.3f} "
        f"| {min(cudnn, cudnn_last) / ours:.1f} "
        f"| {ours_errors[0]:.1e}, {ours_errors[1]:.1e} "
        f"| {cudnn_errors[0]:.1e}, {cudnn_errors[1]:.1e} |",
        flush=True,
    )


def sweep(shape: tuple[int, int, int, int], padding: int, pair: tuple[int, int]) -> None:
    """Print the times of a layer's kernels under each way to cut them up, the best last."""
    torch.manual_seed(0)
    x = torch.rand(shape, device="cuda")
    x = x.contiguous(memory_format=torch.channels_last) if pair[0] > 3 else x
    weight = torch.randn(3, 3, *pair, device="cuda")
    layer = Layer(padding, "none" if pair[0] <= 3 else "relu", "relu", "tf32")
    layer = layer if pair[1] > 1 else Layer(padding, "relu", "none", "tf32")
    x = x.half() if layer.below != "none" else x
    dz = torch.randn_like(layer_kernel.forward(x, weight, None, layer))
    own = weight.permute(3, 2, 0, 1).contiguous()
    works: dict[str, Callable[[], object]] = {
        "forward": lambda: layer_kernel.forward(x, weight, None, layer),
        "weights": lambda: layer_kernel.total(layer_kernel.weights(dz, x, layer), own, True),
        "back": lambda: layer_kernel.total(layer_kernel.back(dz, x, weight, layer)[1], own, True),
    }
    if pair[0] <= 3:
        del works["back"]
    if pair[1] <= 3:
        del works["weights"]
    for kernel, work in works.items():  # the weights are settled before "back" uses them
        key = (kernel, *pair)
        BLOCKS.pop(key, None)
        rule = block_of(*key)
        times: dict[Block, float] = {}
        for block in dict.fromkeys([rule, *CANDIDATES[kernel]]):
            BLOCKS[key] = block
            try:
                times[block] = milliseconds(work, repeats=10)
            except Exception as error:  # too much shared memory, for one
                print(f"    {key}: {block} {type(error).__name__}: {str(error)[:80]}")
        best = min(times, key=times.__getitem__)
        BLOCKS[key] = best
        for block, time in sorted(times.items(), key=lambda item: item[1]):
            print(f"    {1e3 * time:8.1f} us  {block}{'  (the rule)' if block == rule else ''}")
        print(f"    {key!r}: {best!r},", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sweep", nargs="*", choices=list(LAYERS), help="try several ways to cut layers up"
    )
    args = parser.parse_args()
    BLOCKS.update(OVERRIDES)
    if args.sweep is not None:
        for name in args.sweep or LAYERS:
            print(f"{name}:")
            sweep(*LAYERS[name])
    print(
        "| setting | ours, ms | cuDNN | channels last | faster | error: logits, gradients | cuDNN |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in SETTINGS:
        compare(name)
    for name in ["roads, 16", "mnist deep, 32"]:
        build, shape = SETTINGS[name]
        network, x = build().cuda(), torch.rand(shape, device="cuda")
        weight = torch.randn_like(network(x))
        print(f"{name}:")
        for line in kernel_times(lambda: results(network, x, weight)):  # noqa: B023
            print("  " + line)


if __name__ == "__main__":
    main()
