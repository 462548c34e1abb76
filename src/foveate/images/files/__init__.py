"""Images in files, read in parts: tiles that are kept, threads, rectangles and overviews."""
