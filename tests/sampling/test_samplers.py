"""What every sampler promises, and the hard cases."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from foveate import (
    Draw,
    Replacement,
    Sampler,
    Sequential,
    Systematic,
    TopK,
    Unordered,
    expectation,
)
from foveate.errors import InputError
from foveate.sampling.chance import Share

ALL: list[Sampler] = [Systematic(), Unordered(), Sequential(), Replacement(), TopK()]
DISTINCT: list[Sampler] = [Systematic(), Unordered(), Sequential(), TopK()]
every_sampler = pytest.mark.parametrize("sampler", ALL, ids=repr)
every_distinct = pytest.mark.parametrize("sampler", DISTINCT, ids=repr)

INF = math.inf


def log_attention_of(*shape: int, scale: float = 3.0, dtype: torch.dtype = torch.float32) -> Tensor:
    logits = scale * torch.randn(*shape, dtype=dtype)
    return logits.flatten(1).log_softmax(-1).view(shape)


def is_distinct(index: Tensor) -> bool:
    return all(len(row.unique()) == len(row) for row in index)


@every_sampler
@pytest.mark.parametrize("cells", [(12,), (3, 4), (2, 3, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_cell_axes_and_either_precision(
    sampler: Sampler, cells: tuple[int, ...], dtype: torch.dtype, device: torch.device
) -> None:
    log_attention = log_attention_of(5, *cells, dtype=dtype).to(device).requires_grad_()
    draw = sampler.draw(log_attention, 4)
    assert draw.index.shape == draw.weight.shape == (5, 4)
    assert draw.weight.dtype == dtype
    assert draw.index.device.type == draw.weight.device.type == device.type
    assert not draw.weight.requires_grad
    assert ((draw.index >= 0) & (draw.index < 12)).all()


@every_sampler
def test_processes_draw_together_what_one_draws(sampler: Sampler, device: torch.device) -> None:
    log_attention = log_attention_of(6, 50).to(device)
    whole = sampler.draw(log_attention, 4, generator=torch.Generator(device).manual_seed(3))
    shares = [
        sampler.draw(part, 4, generator=Share(device, rank, 3).manual_seed(3))
        for rank, part in enumerate(log_attention.chunk(3))
    ]
    assert torch.equal(torch.cat([share.index for share in shares]), whole.index)
    torch.testing.assert_close(torch.cat([share.weight for share in shares]), whole.weight)


@every_sampler
def test_the_generator_decides_every_draw(sampler: Sampler, device: torch.device) -> None:
    log_attention = log_attention_of(8, 50).to(device)
    first, again = (
        sampler.draw(log_attention, 5, torch.Generator(device).manual_seed(7)) for _ in range(2)
    )
    torch.manual_seed(1)  # the global state has no say
    third = sampler.draw(log_attention, 5, torch.Generator(device).manual_seed(7))
    for other in (again, third):
        assert torch.equal(first.index, other.index)
        assert torch.equal(first.weight, other.weight)


@pytest.mark.parametrize("sampler", [s for s in ALL if not isinstance(s, TopK)], ids=repr)
def test_other_seeds_give_other_draws(sampler: Sampler) -> None:
    log_attention = log_attention_of(8, 50, scale=0.1)
    draws = [sampler.draw(log_attention, 5, torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    assert not torch.equal(draws[0].index, draws[1].index)


@every_sampler
def test_a_generator_on_the_host_serves_any_device(sampler: Sampler, device: torch.device) -> None:
    log_attention = log_attention_of(2, 50)
    here, there = (
        sampler.draw(log_attention.to(where), 5, torch.Generator().manual_seed(7))
        for where in ("cpu", device)
    )
    assert torch.equal(here.index, there.index.cpu())


@every_sampler
@pytest.mark.parametrize("scale", [0.0, 3.0, 30.0])
def test_weights_sum_to_one_so_constants_come_back(sampler: Sampler, scale: float) -> None:
    log_attention = log_attention_of(16, 200, scale=scale)
    draw = sampler.draw(log_attention, 10)
    z = expectation(log_attention, draw, torch.full((16, 10, 2), 3.5))
    torch.testing.assert_close(z, torch.full((16, 2), 3.5), rtol=1e-6, atol=0)


@every_sampler
def test_one_hot_attention_returns_that_cell(sampler: Sampler) -> None:
    log_attention = torch.full((3, 9), -INF).index_fill(1, torch.tensor([4]), 0.0)
    draw = sampler.draw(log_attention, 1)
    assert draw.index.tolist() == [[4]] * 3
    assert draw.weight.tolist() == [[1.0]] * 3


@every_distinct
def test_more_draws_than_possible_cells_weigh_the_impossible_by_zero(sampler: Sampler) -> None:
    log_attention = torch.tensor([[0.25, 0.0, 0.75, 0.0, 0.0]]).log().requires_grad_()
    draw = sampler.draw(log_attention, 4)
    assert is_distinct(draw.index)
    impossible = log_attention.detach().gather(1, draw.index) == -INF
    assert impossible.sum() == 2
    assert (draw.weight[impossible] == 0).all()
    z = expectation(log_attention, draw, torch.arange(5.0)[draw.index])
    (gradient,) = torch.autograd.grad(z.sum(), log_attention)
    if isinstance(sampler, Sequential):  # it averages over prefixes even when all are seen
        assert gradient.isfinite().all()
    else:
        torch.testing.assert_close(z, torch.tensor([1.5]))
        torch.testing.assert_close(gradient, torch.tensor([[0.0, 0, 1.5, 0, 0]]))


@every_distinct
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0])
def test_drawing_every_cell_is_the_full_model(sampler: Sampler, scale: float) -> None:
    log_attention = log_attention_of(4, 30, scale=scale, dtype=torch.float64)
    features = torch.randn(4, 30, 2, dtype=torch.float64)
    draw = sampler.draw(log_attention, 30)
    assert is_distinct(draw.index)
    if not isinstance(sampler, Sequential):
        drawn = features.gather(1, draw.index[..., None].expand(-1, -1, 2))
        full = (log_attention.exp()[..., None] * features).sum(1)
        torch.testing.assert_close(expectation(log_attention, draw, drawn), full, rtol=0, atol=1e-9)


@settings(max_examples=200)
@given(
    logits=st.lists(
        st.one_of(st.floats(-80, 80), st.just(-INF), st.just(0.0)), min_size=1, max_size=40
    ).filter(lambda values: max(values) > -INF),
    data=st.data(),
)
def test_systematic_draws_distinct_possible_cells(logits: list[float], data: st.DataObject) -> None:
    log_attention = torch.tensor([logits], dtype=torch.float64).log_softmax(-1)
    possible = int((log_attention.exp() > 0).sum())
    n = data.draw(st.integers(1, possible))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    draw = Systematic().draw(log_attention, n, generator)
    assert is_distinct(draw.index)
    assert (log_attention.gather(1, draw.index) > -INF).all()
    assert abs(draw.weight.sum().item() - 1) < 1e-12


@pytest.mark.parametrize("u", [0.0, 1 - 2**-53])
def test_systematic_at_the_ends_of_chance(u: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, u, dtype=torch.float64))
    log_attention = torch.tensor([[0.0, 0.3, 0.3, 0.2, 0.2, 0.0]]).log()
    index = Systematic().draw(log_attention, 3).index
    assert is_distinct(index)
    assert ((index > 0) & (index < 5)).all()


@pytest.mark.parametrize("n", [1, 10, 100, 1000])
@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 100.0])
def test_unordered_weights_sum_to_one_for_many_draws(n: int, scale: float) -> None:
    log_attention = log_attention_of(4, 1024, scale=scale)
    weight = Unordered().draw(log_attention, n).weight.double()
    assert (weight >= 0).all()
    assert (weight.sum(-1) - 1).abs().max() < 1e-6


@pytest.mark.parametrize("sampler", [Unordered(), Sequential()], ids=repr)
def test_the_mass_not_drawn_may_round_to_zero(sampler: Sampler) -> None:
    # In float32, 1 - sum_S a is 0 or below for all of these.
    log_attention = torch.tensor([[0.0, -30, -31, -32], [-0.693147, -0.693147, -90, -95]])
    log_attention = log_attention.log_softmax(-1)
    for n in (1, 2, 3):
        weight = sampler.draw(log_attention, n).weight
        assert weight.isfinite().all()
        assert (weight >= 0).all()
        torch.testing.assert_close(weight.sum(-1), torch.ones(2))


@every_sampler
def test_ten_million_cells(sampler: Sampler) -> None:
    log_attention = torch.zeros(1, 10**7).log_softmax(-1)
    draw = sampler.draw(log_attention, 20, torch.Generator().manual_seed(0))
    assert abs(draw.weight.sum().item() - 1) < 1e-5
    if isinstance(sampler, Systematic):  # one cell from each twentieth of the map
        assert (draw.index // (10**7 // 20)).tolist() == [list(range(20))]
    elif not isinstance(sampler, TopK):  # a flat map is drawn from all over
        assert 0.2 < draw.index.double().mean() / 10**7 < 0.8


@every_sampler
def test_half_precision_regions_leave_the_draw_alone(
    sampler: Sampler, device: torch.device
) -> None:
    log_attention = log_attention_of(4, 60).to(device)
    plain = sampler.draw(log_attention, 6, torch.Generator(device).manual_seed(3))
    with torch.autocast(device.type, dtype=torch.bfloat16):
        mixed = sampler.draw(log_attention, 6, torch.Generator(device).manual_seed(3))
        z = expectation(log_attention, mixed, torch.randn(4, 6, 3, device=device).bfloat16())
    assert torch.equal(plain.index, mixed.index)
    assert torch.equal(plain.weight, mixed.weight)
    assert z.dtype == torch.float32


@every_sampler
def test_settled_draws_need_no_chance_and_no_neighbours(sampler: Sampler) -> None:
    log_attention = log_attention_of(6, 80)
    batch = sampler.draw_settled(log_attention, 7)
    alone = [sampler.draw_settled(row[None], 7) for row in log_attention]
    assert torch.equal(batch.index, torch.cat([draw.index for draw in alone]))
    torch.testing.assert_close(batch.weight.sum(-1), torch.ones(6))


def test_settled_draws_spread_where_topk_crowds() -> None:
    attention = torch.full((1, 100), 0.1 / 90)
    attention[0, 40:50] = torch.linspace(0.08, 0.1, 10)
    log_attention = (attention / attention.sum()).log()
    crowded = TopK().draw_settled(log_attention, 5).index
    settled = Systematic().draw_settled(log_attention, 5).index
    assert crowded.tolist() == [[49, 48, 47, 46, 45]]
    assert settled.max() - settled.min() > 5


def test_systematic_draws_are_sorted() -> None:
    index = Systematic().draw(log_attention_of(20, 300), 12).index
    assert (index.diff(dim=-1) > 0).all()


@every_sampler
@pytest.mark.parametrize(
    ("log_attention", "n", "message"),
    [
        (torch.full((2, 4), 0.25).log(), 0, "n=0 cells; ask for at least one"),
        (torch.full((2, 4), math.nan), 2, "image 0 of the batch holds NaN"),
        (torch.tensor([[0.0, -INF], [INF, 0.0]]), 1, "image 1 of the batch holds NaN or"),
        (torch.full((1, 4), -INF), 1, "-inf in every cell"),
        (torch.randn(2, 4) + 3, 1, "apply log_softmax over all cell axes"),
        (torch.zeros(4), 1, r"shape is \(4,\); .*log_attention\[None\]"),
        (torch.zeros(4, 0), 1, "at least one cell"),
        (torch.zeros(1, 1).half(), 1, r"float16; call \.float\(\) before log_softmax"),
    ],
)
def test_bad_attention_says_what_to_do(
    sampler: Sampler, log_attention: Tensor, n: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sampler.draw(log_attention, n)
    with pytest.raises(InputError, match=message):
        sampler.draw_settled(log_attention, n)


@every_distinct
def test_more_draws_than_cells_says_what_to_do(sampler: Sampler) -> None:
    message = r"cannot draw n=40 cells without replacement from 36; lower n_patches or use Repl"
    with pytest.raises(InputError, match=message):
        sampler.draw(torch.full((1, 6, 6), 1 / 36).log(), 40)


def test_replacement_draws_more_than_there_are() -> None:
    draw = Replacement().draw(torch.full((1, 6, 6), 1 / 36).log(), 40)
    assert draw.index.shape == (1, 40)


@every_sampler
def test_without_value_checks_nan_stays_nan(sampler: Sampler, device: torch.device) -> None:
    # What happens on a GPU, where checking values would make the host wait.
    nan = torch.full((2, 8), math.nan, dtype=torch.float64, device=device)
    index, weight = sampler.sample(nan, 3, None)
    assert weight.isnan().all()
    assert ((index >= 0) & (index < 8)).all()


def test_a_sampler_of_your_own() -> None:
    class Middle(Sampler):
        def sample(
            self, attention: Tensor, n: int, generator: torch.Generator | None
        ) -> tuple[Tensor, Tensor]:
            index = torch.full((len(attention), n), attention.shape[-1] // 2)
            return index, torch.full(index.shape, 1 / n, dtype=torch.float64)

    draw = Middle().draw(log_attention_of(2, 3, 3), 2)
    assert isinstance(draw, Draw)
    assert draw.index.tolist() == [[4, 4]] * 2
    with pytest.raises(InputError, match="cannot draw n=10 cells"):
        Middle().draw(log_attention_of(2, 3, 3), 10)
