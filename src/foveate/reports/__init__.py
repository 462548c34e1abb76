"""What people look at: curves, where a model looked, and what it decided."""

from foveate.reports.curves import draw_curves
from foveate.reports.example import Example, example_of
from foveate.reports.folder import PredictionFolder, fingerprint
from foveate.reports.geojson import geojson_of
from foveate.reports.geotiff import write_heatmap
from foveate.reports.page import Report, write_page
from foveate.reports.pictures import draw_attention
from foveate.reports.record import Patch, Record, record_of

__all__ = [
    "Example",
    "Patch",
    "PredictionFolder",
    "Record",
    "Report",
    "draw_attention",
    "draw_curves",
    "example_of",
    "fingerprint",
    "geojson_of",
    "record_of",
    "write_heatmap",
    "write_page",
]
