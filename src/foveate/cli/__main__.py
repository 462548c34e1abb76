"""`python -m foveate.cli`."""

from foveate.cli import main

main()
