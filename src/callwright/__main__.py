"""`python -m callwright` is the command `callwright`."""

from callwright.cli import main

if __name__ == "__main__":
    main(prog_name="callwright")
