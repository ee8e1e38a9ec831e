"""`python -m weightloom.runtime` is the command line."""

from weightloom.runtime.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
