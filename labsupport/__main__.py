"""`python -m labsupport`: the command line. See `labsupport/cli.py`."""

import sys


def main() -> int:
    try:
        return dispatch()
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] == "labsupport":
            raise
        package = missing.name.partition(".")[0]
        print(f"The package {package} is missing in this Python; install the lab with `make lab`, or, in the course's "
              "folder, with: python -m pip install -e .", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Stopped. What was not finished has changed nothing.", file=sys.stderr)
        return 130


def dispatch() -> int:
    # These two need the standard library only, so they start without the rest of the command line.
    if sys.argv[1:2] == ["evidence"]:
        from labsupport.pipeline.evidence import main as evidence

        return evidence(sys.argv[2:])
    if sys.argv[1:2] == ["doctor"]:
        from labsupport.lab.doctor import main as doctor

        return doctor(sys.argv[2:])
    from labsupport.cli import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
