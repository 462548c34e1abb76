from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch

from foveate import Prediction
from foveate.images import as_batch
from foveate.reports import Example, Report, example_of, write_page
from foveate.reports.chart import line_chart
from reports.planted import CLASSES, planted_model, planted_prediction

LOG = [
    {
        "epoch": str(epoch),
        "seconds": str(10 * epoch),
        "train/loss": str(1 / epoch),
        "train/error": "0.5",
        "train/entropy": "",
        "validation/loss": "nan",
        "validation/error": "0.4",
    }
    for epoch in (1, 2, 3)
]


def planted_example(true: str = "dark", name: str = "a.png") -> Example:
    images, out = planted_prediction(row=20, column=7, n_patches=3)
    truth = torch.tensor([[400.0, 140.0, 420.0, 160.0]], dtype=torch.float64)
    border = planted_model().border
    return example_of(as_batch(images), out, 0, CLASSES, true, name, truth, border)


def write(path: Path, **changes: Any) -> str:
    values: dict[str, Any] = {
        "title": "my <run> & more",
        "settings": {"dataset": "digits", "method": "ats", "recipe": "default", "seed": 0},
        "log": LOG,
        "part": "test",
        "summary": {"error": 0.1, "balanced accuracy": 0.9, "AUROC": 0.95},
        "spread": {},
        "classes": CLASSES,
        "confusion": [[8, 2], [0, 10]],
        "count": 20,
        "wrong": [planted_example("dark", "<script>alert(1)</script>")],
        "right": [planted_example("bright"), planted_example("bright")],
    }
    write_page(Report(**values | changes), path)
    return path.read_text()


class Reader(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += " " + data.strip()

    def all(self, tag: str, kind: str = "") -> list[dict[str, str | None]]:
        found = [attributes for name, attributes in self.elements if name == tag]
        return [a for a in found if not kind or kind in (a.get("class") or "").split()]


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    return reader


def test_the_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    text = write(tmp_path / "page.html")
    page = read(text)
    assert {"script", "link", "iframe", "object"}.isdisjoint(tag for tag, _ in page.elements)
    images = page.all("img")
    assert len(images) == 3 * (2 + 3)  # picture and attention, and three patches
    for image in images:
        assert (image["src"] or "").startswith("data:image/webp;base64,")
        assert image["alt"]
    assert not re.search(r"url\(|@import|http", re.sub(r'"data:[^"]*"', "", text))


def test_the_page_says_it_all(tmp_path: Path) -> None:
    page = read(write(tmp_path / "page.html"))
    for said in (
        *("my <run> & more", "10.00 %", "95 % interval 2.79 to 30.10 %", "90.00 %", "0.9500"),
        *(
            "30 s of training",
            "80.0 %",
            "said",
            "Wrong, the surest first",
            "<script>alert(1)</script>",
        ),
    ):
        assert said in page.text, said
    assert len(page.all("svg", "chart")) == 2  # no entropy was measured
    counts = [attributes for attributes in page.all("td") if "style" in attributes]
    assert len(counts) == 3  # a count of zero has no colour
    assert len(page.all("rect", "patch")) == 9
    assert len(page.all("rect", "truth")) == 3


def test_outlines_are_where_the_patches_are(tmp_path: Path) -> None:
    page = read(write(tmp_path / "page.html", right=[]))
    first, truth = page.all("rect", "patch")[0], page.all("rect", "truth")[0]
    for box in (first, truth):
        place = [float(box[side] or "") for side in ("x", "y", "width", "height")]
        expected = [100 * 140 / 880, 100 * 400 / 680, 100 * 20 / 880, 100 * 20 / 680]
        assert place == pytest.approx(expected, abs=1e-3)
    (heat,) = page.all("img", "heat")
    shares = [float(number) for number in re.findall(r"[\d.]+(?=%)", heat["style"] or "")]
    assert shares == pytest.approx([200 / 44, 200 / 34, 4000 / 44, 3000 / 34], abs=1e-3)


def test_a_run_without_log_attention_or_mistakes(tmp_path: Path) -> None:
    images = as_batch(torch.zeros(1, 1, 50, 60, dtype=torch.uint8))
    out = Prediction(torch.tensor([[0.0, 9.0]]))
    example = example_of(images, out, 0, CLASSES, "bright", "a.png")
    page = read(write(tmp_path / "page.html", log=[], wrong=[], right=[example]))
    assert page.all("svg", "chart") == []
    assert page.all("img", "heat") == []
    assert len(page.all("img")) == 1
    assert "None of 20 images." in page.text


def test_the_spread_over_draws_is_shown(tmp_path: Path) -> None:
    page = read(write(tmp_path / "page.html", spread={"error": 0.01, "AUROC": 0.002}))
    assert "± 1.00 % over draws" in page.text
    assert "± 0.0020 over draws" in page.text


@pytest.mark.parametrize("largest", [0.0, 1e-6, 0.83, 7.0, 1234.0])
def test_charts_hold_all_their_points(largest: float) -> None:
    drawing = line_chart({"a <b>": [(0.0, 0.0), (1.0, largest), (2.0, float("nan"))]}, "t", "x")
    (points,) = re.findall(r'points="([^"]*)"', drawing)
    places = [tuple(map(float, place.split(","))) for place in points.split()]
    assert len(places) == 2
    for x, y in places:
        assert 44 <= x <= 348
        assert 12 <= y <= 186
    assert "a &lt;b&gt;" in drawing


BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)

PROBE = """<script>
addEventListener("load", () => {
  const images = [...document.images];
  document.documentElement.dataset.probe = [
    images.length,
    images.filter(image => image.complete && image.naturalWidth > 0).length,
    document.documentElement.scrollWidth > innerWidth,
  ].join(" ");
});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason="no Chromium to look at the page with")
@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_opens_in_a_browser(tmp_path: Path, width: int) -> None:
    text = write(tmp_path / "page.html")
    (tmp_path / "page.html").write_text(text.replace("</body>", PROBE + "</body>"))
    assert BROWSER is not None
    opened = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            *("--enable-logging=stderr", f"--window-size={width},900"),
            *(f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "page.html").as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "<title>my &lt;run&gt; &amp; more</title>" in opened.stdout
    assert 'data-probe="15 15 false"' in opened.stdout
    assert "CONSOLE" not in opened.stderr
