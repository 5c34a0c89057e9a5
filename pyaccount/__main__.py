"""`python -m pyaccount`: the command, where it is not on the path."""

from pyaccount.cli import main

main()
