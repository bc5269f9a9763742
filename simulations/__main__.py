"""``python -m simulations`` is the command line, too."""

from simulations.cli import main

if __name__ == "__main__":
    main()
