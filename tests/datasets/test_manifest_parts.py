from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.datasets.parts import deal, divide, divided_groups, unnamed_parts
from foveate.datasets.table import Row

SHARES = {"train": 0.7, "validation": 0.15, "test": 0.15}


def rows(*said: tuple[str, str, str]) -> list[Row]:
    """Rows of label, part and group."""
    return [
        Row(f"line {i}", f"{i}.png", f"/{i}.png", label, part, group)
        for i, (label, part, group) in enumerate(said)
    ]


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        (1, (1, 0, 0)),
        (2, (1, 0, 1)),
        (3, (1, 1, 1)),
        (4, (2, 1, 1)),
        (7, (5, 1, 1)),
        (20, (14, 3, 3)),
        (100, (70, 15, 15)),
    ],
)
def test_a_label_of_so_many_images_is_divided_so(
    images: int, expected: tuple[int, int, int]
) -> None:
    parts = divide(rows(*[("x", "", "")] * images, *[("other", "", "")] * 40))
    counts = Counter(parts[:images])
    assert tuple(counts[part] for part in SHARES) == expected


def test_parts_depend_on_the_seed_and_not_on_the_order() -> None:
    said = rows(*[("ab"[i % 2], "", "") for i in range(60)])
    parts = dict(zip(said, divide(said, seed=1), strict=True))
    assert dict(zip(said[::-1], divide(said[::-1], seed=1), strict=True)) == parts
    assert dict(zip(said, divide(said, seed=2), strict=True)) != parts


@given(
    st.lists(st.tuples(st.sampled_from("aaaaab"), st.integers(0, 12)), min_size=1, max_size=120),
    st.integers(0, 5),
)
def test_a_group_is_never_divided_and_labels_go_everywhere(
    images: list[tuple[str, int]], seed: int
) -> None:
    labels = [label for label, _ in images]
    groups = [str(group) for _, group in images]
    parts = deal(labels, groups, SHARES, seed)
    where = defaultdict(set)
    for group, part in zip(groups, parts, strict=True):
        where[group].add(part)
    assert all(len(found) == 1 for found in where.values())
    if len(set(labels)) == 1 and len(where) >= 3:
        assert set(parts) == set(SHARES)
    assert "train" in parts


def test_shares_are_kept_as_well_as_groups_allow() -> None:
    labels = [("common", "rare")[i % 10 == 0] for i in range(600)]
    groups = [str(i // 6) for i in range(600)]  # a hundred patients, of six images each
    parts = deal(labels, groups, SHARES)
    for label, images in Counter(labels).items():
        counts = Counter(part for part, said in zip(parts, labels, strict=True) if said == label)
        for part, share in SHARES.items():
            assert abs(counts[part] - share * images) <= 6


def test_parts_that_are_named_are_kept_and_others_dealt_from_train() -> None:
    said = rows(*[("a", "train", "")] * 40, *[("a", "test", "")] * 10)
    parts = divide(said)
    assert unnamed_parts(said) == ("validation",)
    assert parts[40:] == ["test"] * 10
    assert Counter(parts[:40]) == {"train": 34, "validation": 6}
    assert Counter(divide(said[:40])) == {"train": 28, "validation": 6, "test": 6}
    complete = [*said, *rows(("a", "validation", ""))]
    assert divide(complete) == [row.part for row in complete]
    assert unnamed_parts(complete) == ()


def test_a_table_for_evaluation_stays_as_it_is() -> None:
    said = rows(*[("a", "test", "")] * 10)
    assert unnamed_parts(said) == ()
    assert divide(said) == ["test"] * 10


def test_groups_that_the_table_itself_divides_are_named_and_kept() -> None:
    said = rows(("a", "train", "p1"), ("a", "test", "p1"), ("a", "train", "p2"), ("a", "test", ""))
    (problem,) = divided_groups(said, divide(said))
    assert problem.where == "group p1"
    assert problem.what.startswith("is in test and ")
    assert not problem.left_out
