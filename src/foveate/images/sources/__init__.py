"""Where the bytes of a file are, and how they are read in ranges."""
