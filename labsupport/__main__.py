"""`python -m labsupport`: the command line. See `labsupport/cli.py`."""

import sys


def main() -> int:
    # The evidence check needs the standard library only, so it starts without the rest of the command line.
    if sys.argv[1:2] == ["evidence"]:
        from labsupport.pipeline.evidence import main as evidence

        return evidence(sys.argv[2:])
    from labsupport.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
