"""`python -m selfmaint`."""

from selfmaint.cli import main

if __name__ == "__main__":
    main()
