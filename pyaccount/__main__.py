"""`python -m pyaccount` runs the command if it is not on the path."""

from pyaccount.cli import main

main()
