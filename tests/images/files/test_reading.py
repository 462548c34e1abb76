"""How much of a file is read, how often, and by how many threads."""

from __future__ import annotations

import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile
import torch
from PIL import Image as PillowImage

from foveate import open_image, read_patches
from foveate.errors import DataError, InputError
from foveate.images import set_cache_limit, set_threads, tiles_for_training
from foveate.images.files.handles import Handles
from foveate.images.files.threads import ahead, each, thread_count
from foveate.images.files.tile_cache import TILES, TileCache
from foveate.images.formats.layout import Layout, Level
from foveate.images.formats.pillow_reader import PillowReader
from foveate.images.formats.reader import Reader
from foveate.images.formats.tiff_reader import TiffReader
from images.example_files import coloured, pyramid, write_pyramid

Tile = tuple[int, int, int]


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Tile]:
    """The (level, row, column) of every tile that is decoded."""
    tiles: list[Tile] = []
    original = TiffReader.tile

    def tile(reader: TiffReader, level: int, row: int, column: int) -> np.ndarray:
        tiles.append((level, row, column))
        return original(reader, level, row, column)

    monkeypatch.setattr(TiffReader, "tile", tile)
    return tiles


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOVEATE_CACHE_MB", "0")


@pytest.fixture
def slide(tmp_path: Path) -> Path:
    path = tmp_path / "slide.tif"
    write_pyramid(path, pyramid(512, 640), subifds=False, tile=(64, 64), compression="zlib")
    return path


def test_a_read_touches_only_the_tiles_it_needs(slide: Path, decoded: list[Tile]) -> None:
    image = open_image(slide)
    assert decoded == []
    image.read((70, 70), (50, 50))
    assert decoded == [(0, 1, 1)]
    image.read((100, 130), (50, 30), level=1)
    assert sorted(decoded[1:]) == [(1, 1, 2), (1, 2, 2)]
    image.read((-100, 0), (50, 50))
    assert len(decoded) == 3


@pytest.mark.usefixtures("no_cache")
def test_each_tile_is_decoded_once_for_all_patches(
    slide: Path, decoded: list[Tile], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOVEATE_THREADS", "1")  # they are sorted, too
    image = open_image(slide)
    corners = torch.tensor([[0, 0], [10, 10], [50, 50], [200, 200], [205, 195], [0, 0]])
    image.read_patches(corners, (20, 20))
    assert decoded == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 3, 3)]


def test_tiles_are_kept_for_the_next_read(slide: Path, decoded: list[Tile]) -> None:
    image = open_image(slide)
    first = image.read((0, 0), (100, 100))
    assert len(decoded) == 4
    assert torch.equal(open_image(slide).read((0, 0), (100, 100)), first)
    assert len(decoded) == 4
    first.zero_()  # what was read is the reader's own
    assert image.read((0, 0), (100, 100)).count_nonzero() == first.numel()


def test_a_file_that_is_written_anew_is_read_anew(slide: Path) -> None:
    before = open_image(slide).read((0, 0), (10, 10))
    write_pyramid(slide, [255 - level for level in pyramid(512, 640)], False, tile=(64, 64))
    assert torch.equal(open_image(slide).read((0, 0), (10, 10)), 255 - before)


def test_a_file_that_changes_its_shape_while_it_is_used_is_an_error(slide: Path) -> None:
    image = open_image(slide)
    image.close()
    write_pyramid(slide, pyramid(256, 320), False, tile=(64, 64))
    with pytest.raises(DataError, match=r"slide\.tif: it was changed since it was opened"):
        image.read((0, 0), (10, 10))


@pytest.mark.parametrize(("size", "level"), [((100, 100), 2), ((200, 160), 1), ((129, 10), 1)])
def test_an_overview_comes_from_the_coarsest_level_that_is_large_enough(
    slide: Path, decoded: list[Tile], size: tuple[int, int], level: int
) -> None:
    open_image(slide).overview(size)
    assert {tile[0] for tile in decoded} == {level}
    assert len(decoded) == len(set(decoded))


@pytest.mark.parametrize("options", [{"tile": (256, 256)}, {"rowsperstrip": 16}])
def test_the_overview_of_a_large_flat_file_takes_little_memory(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = tmp_path / "flat.tif"
    tifffile.imwrite(
        path,
        np.full((3000, 4000, 3), 77, np.uint8),
        photometric="rgb",
        compression="zlib",
        **options,
    )
    image = open_image(path)
    image.read((0, 0), (1, 1))
    tracemalloc.start()
    overview = image.overview((30, 40))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (overview == 77).all()
    assert peak < 12e6  # the file has 36 million bytes


def test_an_overview_does_not_fill_the_cache(slide: Path) -> None:
    before = TILES.bytes
    open_image(slide).overview((300, 400))
    assert TILES.bytes == before


@pytest.mark.parametrize("threads", [1, 4])
def test_threads_read_the_same(
    slide: Path, monkeypatch: pytest.MonkeyPatch, threads: int, no_cache: None
) -> None:
    monkeypatch.setenv("FOVEATE_THREADS", str(threads))
    yx = torch.randint(-30, 600, (3, 20, 2))
    expected = read_patches(
        [torch.from_numpy(coloured(512, 640)).permute(2, 0, 1)] * 3, yx, (50, 60)
    )
    assert torch.equal(read_patches([slide] * 3, yx, (50, 60)), expected)
    assert torch.equal(open_image(slide).overview((99, 77)), open_image(slide).overview((99, 77)))


@pytest.mark.parametrize("threads", [1, 4])
def test_a_damaged_tile_ends_the_call_and_the_next_works(
    slide: Path, monkeypatch: pytest.MonkeyPatch, threads: int, no_cache: None
) -> None:
    monkeypatch.setenv("FOVEATE_THREADS", str(threads))
    with tifffile.TiffFile(slide) as tiff:
        offset, count = tiff.pages.first.dataoffsets[11], tiff.pages.first.databytecounts[11]
    content = bytearray(slide.read_bytes())
    content[offset : offset + count] = bytes(count)
    slide.write_bytes(content)
    image = open_image(slide)
    for _ in range(2):
        with pytest.raises(DataError, match=r"tile \(1, 1\) of level 0 of .*slide\.tif: it is dam"):
            image.read((0, 0), (512, 640))
        assert image.read((200, 200), (300, 300)).all()


def test_images_are_read_from_many_threads_at_once(slide: Path, no_cache: None) -> None:
    image, expected = open_image(slide), torch.from_numpy(coloured(512, 640)).permute(2, 0, 1)
    wrong = []

    def read(seed: int) -> None:
        places = np.random.default_rng(seed).integers(0, 400, (20, 2)).tolist()
        for y, x in places:
            if not torch.equal(image.read((y, x), (90, 90)), expected[:, y : y + 90, x : x + 90]):
                wrong.append((y, x))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


class TestThreads:
    def test_how_many(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FOVEATE_THREADS", raising=False)
        assert thread_count() == torch.get_num_threads()
        set_threads(3)
        assert thread_count() == 3
        set_threads(None)
        assert thread_count() == torch.get_num_threads()
        with pytest.raises(InputError, match=r"at least 1 thread .* but 0"):
            set_threads(0)
        monkeypatch.setenv("FOVEATE_THREADS", "many")
        with pytest.raises(InputError, match=r"FOVEATE_THREADS must be .* 'many'"):
            thread_count()

    def test_calls_within_calls_do_not_wait_for_each_other(self) -> None:
        done = []

        def outer(i: int) -> None:
            each(lambda j: done.append((i, j)), range(5), threads=32)

        each(outer, range(200), threads=32)
        assert len(done) == 1000

    def test_the_first_error_is_raised(self) -> None:
        seen = []

        def fail(i: int) -> None:
            seen.append(i)
            raise ValueError(str(i))

        with pytest.raises(ValueError, match=r"\d"):
            each(fail, range(1000), threads=4)
        assert len(seen) <= 4

    def test_results_come_in_order_and_not_all_at_once(self) -> None:
        started: list[int] = []

        def square(i: int) -> int:
            started.append(i)
            return i * i

        results = ahead(square, iter(range(100)), threads=2)
        assert next(results) == (0, 0)
        assert len(started) <= 5
        assert list(results) == [(i, i * i) for i in range(1, 100)]


class TestTileCache:
    def test_the_least_recently_used_goes_first(self) -> None:
        cache = TileCache(lambda: 300)
        tiles = {i: np.full((10, 10, 1), i, np.uint8) for i in range(5)}
        for i in (0, 1, 2):
            cache.put(("a", 1, 0, 0, i), tiles[i])
        assert cache.get(("a", 1, 0, 0, 0)) is tiles[0]
        cache.put(("b", 1, 0, 0, 3), tiles[3])
        assert cache.bytes == 300
        assert [key[4] for key in cache] == [2, 0, 3]
        cache.drop("a")
        assert [key[4] for key in cache] == [3]
        assert cache.bytes == 100

    def test_what_is_larger_than_the_limit_is_not_kept(self) -> None:
        cache = TileCache(lambda: 50)
        cache.put(("a", 1, 0, 0, 0), np.zeros((10, 10, 1), np.uint8))
        assert cache.bytes == 0

    def test_of_newcomers_to_a_full_cache_one_in_so_many_is_kept(self) -> None:
        cache = TileCache(lambda: 300)
        cache.one_of = 3
        tiles = {i: np.full((10, 10, 1), i, np.uint8) for i in range(9)}
        for i in range(9):
            cache.put(("a", 1, 0, 0, i), tiles[i])
        assert [key[4] for key in cache] == [2, 5, 8]
        cache.put(("a", 1, 0, 0, 5), tiles[0])  # one that it knows is replaced
        assert [key[4] for key in cache] == [2, 8, 5]
        assert cache.bytes == 300

    @pytest.mark.parametrize(("one_of", "found"), [(1, 0.15), (8, 0.43)])
    def test_what_is_found_of_tiles_that_are_gone_through_again_and_again(
        self, one_of: int, found: float
    ) -> None:
        """With room for half of them."""
        cache = TileCache(lambda: 100)
        cache.one_of = one_of
        chance, tile, hits = np.random.default_rng(0), np.zeros((1, 1, 1), np.uint8), 0
        for epoch in range(60):
            for i in chance.permutation(200).tolist():
                if cache.get(("a", 1, 0, 0, i)) is None:
                    cache.put(("a", 1, 0, 0, i), tile)
                elif epoch >= 20:
                    hits += 1
        assert hits / (40 * 200) == pytest.approx(found, abs=0.03)

    def test_training_keeps_what_there_is_room_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FOVEATE_CACHE_MB", raising=False)
        usual = 256 * 2**20
        for room, limit in ((0, usual), (2**30, 2**30)):
            with tiles_for_training(room):
                assert TILES.limit() == limit
                assert TILES.one_of > 1
            assert TILES.limit() == usual
            assert TILES.one_of == 1
        monkeypatch.setenv("FOVEATE_CACHE_MB", "3")
        with tiles_for_training(2**30):
            assert TILES.limit() == 3 * 2**20

    def test_a_forked_process_has_the_usual_room(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("FOVEATE_CACHE_MB", raising=False)
        with tiles_for_training(2**30):
            child = os.fork()
            if child == 0:
                os._exit(0 if (TILES.limit(), TILES.one_of) == (2**28, 1) else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_the_limit_can_be_set(self, slide: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("FOVEATE_CACHE_MB", "256")
        open_image(slide).read((0, 0), (512, 640))
        assert TILES.bytes >= 512 * 640 * 3
        set_cache_limit(0)
        assert TILES.bytes == 0
        with pytest.raises(InputError, match="a cache of -1 MB"):
            set_cache_limit(-1)
        monkeypatch.setenv("FOVEATE_CACHE_MB", "1GB")
        with pytest.raises(InputError, match=r"FOVEATE_CACHE_MB must be .* '1GB'"):
            open_image(slide).read((0, 0), (1, 1))

    def test_whole_images_are_decoded_once_if_they_fit(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []
        original = PillowReader.tile

        def tile(reader: PillowReader, level: int, row: int, column: int) -> np.ndarray:
            calls.append((level, row, column))
            return original(reader, level, row, column)

        monkeypatch.setattr(PillowReader, "tile", tile)
        PillowImage.fromarray(coloured(600, 700)).save(tmp_path / "a.png")
        image = open_image(tmp_path / "a.png")
        image.overview((60, 70))
        image.read((10, 10), (20, 20))
        image.read_patches(torch.tensor([[0, 0], [500, 500]]), (50, 50))
        assert len(calls) == 1
        monkeypatch.setenv("FOVEATE_CACHE_MB", "1")
        image.close()
        image.read_patches(torch.tensor([[0, 0], [500, 500]]), (50, 50))
        assert len(calls) == 2
        image.read((10, 10), (20, 20))
        assert len(calls) == 3


class FakeReader(Reader):
    layout = Layout((Level((1, 1), (1, 1)),), 1)

    def __init__(self) -> None:
        self.closed = 0

    def tile(self, level: int, row: int, column: int) -> np.ndarray:
        return np.zeros((1, 1, 1), np.uint8)

    def close(self) -> None:
        self.closed += 1


class TestHandles:
    def test_a_bounded_number_stays_open(self) -> None:
        handles, readers = Handles(limit=3), [FakeReader() for _ in range(5)]
        for i, reader in enumerate(readers):
            with handles.borrow(str(i), lambda reader=reader: reader):  # type: ignore[misc]
                pass
        assert [reader.closed for reader in readers] == [1, 1, 0, 0, 0]
        assert len(handles) == 3

    def test_what_is_in_use_is_closed_afterwards(self) -> None:
        handles, first, second = Handles(limit=1), FakeReader(), FakeReader()
        with handles.borrow("a", lambda: first):
            with handles.borrow("b", lambda: second):
                assert (first.closed, second.closed) == (0, 0)
            handles.close("a")
            assert first.closed == 0
        assert first.closed == 1
        with handles.borrow("a", FakeReader) as reader:
            assert reader is not first

    def test_what_can_not_be_opened_is_forgotten(self) -> None:
        handles = Handles()

        def fail() -> Reader:
            raise DataError("no")

        with pytest.raises(DataError, match="no"), handles.borrow("a", fail):
            pass
        assert len(handles) == 0
        with handles.borrow("a", FakeReader):
            assert "a" in handles

    def test_many_threads_open_once(self) -> None:
        handles, opened = Handles(), []

        def opening() -> Reader:
            opened.append(FakeReader())
            return opened[-1]

        def use(_: int) -> None:
            with handles.borrow("a", opening):
                pass

        each(use, range(100), threads=8)
        assert len(opened) == 1


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs Linux")
def test_two_hundred_files_do_not_stay_open(tmp_path: Path) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    before = open_files()
    images = []
    for i in range(200):
        path = tmp_path / f"{i}.tif"
        tifffile.imwrite(path, np.full((16, 16), i, np.uint8), compression="zlib")
        images.append(open_image(path))
    for i, image in enumerate(images):
        assert (image.read((0, 0), (16, 16)) == i).all()
    assert open_files() <= before + 64
    for image in images:
        image.close()
    assert open_files() <= before
