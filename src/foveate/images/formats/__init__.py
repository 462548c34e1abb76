"""The formats of image files: each has a reader, which gives a layout and decoded tiles."""
