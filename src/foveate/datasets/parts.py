"""Which images are for training, validation and test, decided by what is said of them alone.

No file is opened here. So the parts of a table stay what they are when a file goes missing, when
lines change places, or when the folder moves; only other rows, or another seed, change them.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from foveate.datasets.problem import Problem
from foveate.datasets.table import Row

SHARE = 0.15
"""What validation and test each get of the images that nobody assigned to them."""


def divide(rows: Sequence[Row], seed: int = 0) -> list[str]:
    """The part of each row: train, validation or test.

    Parts that rows name themselves are kept. Validation and test, where no row names them, get 15 %
    each of the images that are left for training (see `deal`); so a table that says nothing is
    divided 70/15/15. A table with no image for training is for evaluation, and stays as it is.

    Args:
        rows: the images.
        seed: decides which go where.
    """
    open_parts = unnamed_parts(rows)
    if not open_parts:
        return [row.part for row in rows]
    free = [i for i, row in enumerate(rows) if row.part in ("train", "")]
    shares = {"train": 1 - SHARE * len(open_parts)} | dict.fromkeys(open_parts, SHARE)
    dealt = deal(
        [rows[i].label for i in free],
        # A row without a group is one by itself; no group can have the name that it gets.
        [f"={rows[i].group}" if rows[i].group else f"/{rows[i].name}" for i in free],
        shares,
        seed,
    )
    parts = [row.part for row in rows]
    for i, part in zip(free, dealt, strict=True):
        parts[i] = part
    return parts


def unnamed_parts(rows: Sequence[Row]) -> tuple[str, ...]:
    """The parts that images must be dealt out to."""
    named = {row.part for row in rows}
    if not named & {"train", ""}:
        return ()
    return tuple(part for part in ("validation", "test") if part not in named)


def divided_groups(rows: Sequence[Row], parts: Sequence[str]) -> list[Problem]:
    """Groups that a table's own column has in several parts: they stay, and are named."""
    found: dict[str, set[str]] = defaultdict(set)
    for row, part in zip(rows, parts, strict=True):
        if row.group:
            found[row.group].add(part)
    return [
        Problem(
            "group in two parts",
            f"group {group}",
            f"is in {' and '.join(sorted(places))}, as the table has it: figures may be too good",
            left_out=False,
        )
        for group, places in found.items()
        if len(places) > 1
    ]


def deal(
    labels: Sequence[str], groups: Sequence[str], shares: Mapping[str, float], seed: int = 0
) -> list[str]:
    """Deal groups out to parts so that each part has its share of each label.

    Groups go one by one, the largest first and those of one size in an order that the seed decides,
    to the part that lacks most of their labels. A label of as many groups as there are parts, or
    more, is in every part; one of two groups is in the first part and in the last.

    Args:
        labels: the label of each image.
        groups: the group of each.
        shares: what each part is to get; together 1. The first takes what is left over.
        seed: decides the order.

    Returns:
        The part of each image.

    Example:
        >>> deal(list("aaaabb"), list("123456"), {"train": 0.5, "test": 0.5})
        ['test', 'test', 'train', 'train', 'test', 'train']
    """
    members: dict[str, list[int]] = defaultdict(list)
    for i, group in enumerate(groups):
        members[group].append(i)
    total = Counter(labels)
    waiting = Counter(label for _, label in {*zip(groups, labels, strict=True)})
    wanted = {label: _wanted(total[label], waiting[label], shares) for label in total}
    seen: set[tuple[str, str]] = set()
    parts = [""] * len(labels)
    for group in sorted(members, key=lambda name: (-len(members[name]), _chance(seed, name))):
        counts = Counter(labels[i] for i in members[group])
        choice = list(shares)
        for label in sorted(counts, key=lambda label: (total[label], label)):
            unseen = [part for part in wanted[label] if (part, label) not in seen]
            if 0 < waiting[label] <= len(unseen):  # the last chance for these parts to get it
                choice = unseen
                break
        lacks = {
            part: sum(n * wanted[name].get(part, 0.0) / total[name] for name, n in counts.items())
            for part in choice
        }
        part = max(choice, key=lacks.__getitem__)
        for label, n in counts.items():
            waiting[label] -= 1
            wanted[label][part] = wanted[label].get(part, 0.0) - n
            seen.add((part, label))
        for i in members[group]:
            parts[i] = part
    return parts


def _wanted(images: int, groups: int, shares: Mapping[str, float]) -> dict[str, float]:
    """How many images of a label each part is to get: one at least, if there are groups enough."""
    first, *others = shares
    # The last part is served before those between: to report comes before to choose.
    served = [*others[::-1]][: max(groups - 1, 0)]
    wanted = {part: max(1.0, shares[part] * images) for part in served}
    return {first: float(images) - sum(wanted.values())} | wanted


def _chance(seed: int, name: str) -> str:
    """A place in an order at random, which no version of any library changes."""
    return hashlib.sha256(f"{seed}|{name}".encode()).hexdigest()
