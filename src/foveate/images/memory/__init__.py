"""Pixels in memory, on the host or on a device: patches, overviews and what networks take."""
