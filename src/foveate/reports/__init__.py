"""What people look at: curves, and where a model looked."""

from foveate.reports.curves import draw_curves
from foveate.reports.pictures import draw_attention

__all__ = ["draw_attention", "draw_curves"]
