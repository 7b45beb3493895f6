"""`python -m mnemon`."""

from mnemon.cli import main

main()
