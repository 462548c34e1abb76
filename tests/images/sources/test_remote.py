"""Files at addresses, of which only the needed ranges are fetched."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image as PillowImage
from torch.utils.data import DataLoader

from foveate import open_image, read_patches
from foveate.errors import DataError, InputError, MissingExtraError
from foveate.images import convert_image
from images.example_files import coloured, pyramid, write_pyramid

registry = pytest.importorskip("fsspec.registry")
pytest.importorskip("aiohttp")


@dataclass
class Server:
    """Files, and what was asked for."""

    address: str
    files: dict[str, bytes] = field(default_factory=dict)
    sent: int = 0
    requests: int = 0
    ranges: bool = True


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, with_body: bool) -> None:
            content = state.files.get(self.path.lstrip("/"))
            if content is None:
                self.send_error(404)
                return
            asked = self.headers.get("Range") if state.ranges else None
            self.send_response(206 if asked else 200)
            total = len(content)
            if asked:
                first, last = (int(part) for part in asked.removeprefix("bytes=").split("-"))
                content = content[first : last + 1]
                self.send_header("Content-Range", f"bytes {first}-{last}/{total}")
            if state.ranges:
                self.send_header("Accept-Ranges", "bytes")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if with_body:
                state.requests += 1
                state.sent += len(content)
                self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    state.address = f"http://127.0.0.1:{http.server_port}"
    yield state
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture(scope="module")
def slide(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("images") / "slide.tif"
    write_pyramid(path, pyramid(2048, 2560, 5), subifds=False, tile=(128, 128))
    return path.read_bytes()


def expected_patches(yx: torch.Tensor, size: tuple[int, int]) -> torch.Tensor:
    pixels = torch.from_numpy(coloured(2048, 2560)).permute(2, 0, 1)
    return read_patches([pixels] * len(yx), yx, size)


def test_only_what_is_needed_is_fetched(server: Server, slide: bytes) -> None:
    server.files["slide.tif"] = slide
    image = open_image(f"{server.address}/slide.tif")
    assert image.levels == tuple((2048 >> i, 2560 >> i) for i in range(5))
    assert server.sent < 10 * 2**16  # a block for each directory, and some over
    server.sent = 0
    yx = torch.tensor([[[300, 300], [1500, 2000], [2000, 2500]]])
    patches = read_patches([image], yx, (50, 60))
    assert torch.equal(patches, expected_patches(yx, (50, 60)))
    assert server.sent == 6 * 128 * 128 * 3  # the second patch lies in four tiles
    server.sent = 0
    image.overview((100, 100))
    assert server.sent == 2 * 128 * 128 * 3  # the coarsest level
    assert len(slide) > 20e6


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_pickled_address_and_workers(server: Server, slide: bytes) -> None:
    server.files["slide.tif"] = slide
    image = open_image(f"{server.address}/slide.tif")
    expected = image.read((200, 210), (40, 40))
    assert torch.equal(pickle.loads(pickle.dumps(image)).read((200, 210), (40, 40)), expected)
    images: Any = [image, image]
    loader: DataLoader[Any] = DataLoader(
        images,
        batch_size=None,
        num_workers=1,
        collate_fn=_read,
        multiprocessing_context="fork",
        timeout=60,
    )
    for got in loader:
        assert torch.equal(got, expected)


def _read(image: Any) -> torch.Tensor:
    pixels: torch.Tensor = image.read((200, 210), (40, 40))
    return pixels.clone()


def test_other_formats_are_fetched_as_a_whole(server: Server, tmp_path: Path) -> None:
    PillowImage.fromarray(coloured(60, 70)).save(tmp_path / "a.png")
    PillowImage.fromarray(coloured(60, 70)).save(tmp_path / "a.jpg")
    for name in ("a.png", "a.jpg"):
        server.files[name] = (tmp_path / name).read_bytes()
        here, there = open_image(tmp_path / name), open_image(f"{server.address}/{name}")
        assert torch.equal(there.read((5, 5), (20, 20)), here.read((5, 5), (20, 20)))
        assert torch.equal(there.overview((6, 7)), here.overview((6, 7)))


def test_what_goes_wrong_is_named(server: Server, slide: bytes) -> None:
    address = f"{server.address}/slide.tif"
    with pytest.raises(DataError, match=r"slide\.tif: there is no such file; check the address"):
        open_image(address)
    server.files["slide.tif"] = b"no image" * 9
    with pytest.raises(DataError, match=r"cannot read http.*slide\.tif: it is damaged or no image"):
        open_image(address)
    server.files["slide.tif"] = slide
    image = open_image(address)
    server.files.clear()
    with pytest.raises(DataError, match=r"slide\.tif.*check the address, the network"):
        image.read((900, 900), (10, 10))
    server.files["slide.tif"], server.ranges = slide, False
    with pytest.raises(DataError, match="sends more than the range that was asked for; download"):
        open_image(address)
    with pytest.raises(DataError, match=r"nonsense://a: .*; check the address"):
        open_image("nonsense://a")
    with pytest.raises(InputError, match="download it first"):
        convert_image(address, "a.tif")


def test_nothing_listens() -> None:
    with pytest.raises(DataError, match=r"127\.0\.0\.1:9/a\.tif: .*check the address, the network"):
        open_image("http://127.0.0.1:9/a.tif")


@pytest.mark.parametrize("package", ["fsspec", "aiohttp", "s3fs"])
def test_missing_packages(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    for module in [name for name in sys.modules if name.startswith("fsspec.implementations.http")]:
        monkeypatch.delitem(sys.modules, module)
    for protocol in ("http", "s3"):  # what fsspec has imported before
        monkeypatch.delitem(registry._registry, protocol, raising=False)
    address = "s3://bucket/a.tif" if package == "s3fs" else "http://127.0.0.1:9/a.tif"
    with pytest.raises(MissingExtraError, match=r"pip install 'foveate\[remote\]'"):
        open_image(address)


def test_an_s3_bucket(monkeypatch: pytest.MonkeyPatch, slide: bytes) -> None:
    moto = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        storage = {"client_kwargs": {"endpoint_url": f"http://{host}:{port}"}}
        files = s3fs.S3FileSystem(**storage)
        files.mkdir("slides")
        files.pipe_file("slides/a.tif", slide)
        image = open_image("s3://slides/a.tif", storage=storage)
        yx = torch.tensor([[[300, 300], [1500, 2000]]])
        assert torch.equal(read_patches([image], yx, (50, 60)), expected_patches(yx, (50, 60)))
        again = pickle.loads(pickle.dumps(image))
        assert torch.equal(again.overview((50, 60)), image.overview((50, 60)))
        with pytest.raises(DataError, match=r"s3://slides/b\.tif: there is no such file"):
            open_image("s3://slides/b.tif", storage=storage)
    finally:
        server.stop()
