"""The doctor: one line for each thing a learner's machine can lack, OK or the mend.

Only the standard library is imported here; each check imports what it looks at, so a missing package is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from labsupport.lab import doctor_content as content
from labsupport.lab import doctor_machine as machine
from labsupport.lab.doctor_machine import INSTALL, MEND, Check
from labsupport.pipeline import LabError
from labsupport.pipeline.terminal import Parser, use_utf8


def examine(corpus: Path = Path("corpus"), index: Path | str = Path("index.sqlite")) -> list[Check]:
    """All checks, in the order in which one would mend what they find. Changes nothing."""
    checks: list[tuple[str, Callable[[], Iterator[Check]]]] = [
        ("python", machine.python_version),
        ("packages", machine.packages),
        ("sqlite", machine.sqlite_fts5),
        ("c++ runtime", machine.libraries),
        ("models", machine.models),
        ("jupyterlab", machine.jupyterlab),
        ("disk", machine.disk),
        ("corpus", lambda: content.documents(corpus)),
        ("inventory", lambda: content.inventory(corpus)),
        ("versions", lambda: content.versions(corpus)),
        ("index", lambda: content.index_file(corpus, index)),
        ("workspace", content.workspace),
        ("snapshots", content.snapshots),
        ("extras", machine.extras),
    ]
    return [found for name, check in checks for found in _guarded(name, check)]


def _guarded(name: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(check())
    except ImportError as error:
        return [Check(name, MEND, f"the package {error.name} is missing.", INSTALL)]
    except LabError as error:
        return [Check(name, MEND, str(error))]
    except Exception as error:  # whatever is wrong with a machine, the other checks go on
        return [Check(name, MEND, f"could not be checked ({type(error).__name__}: {error}).")]


def main(argv: list[str]) -> int:
    """`python -m labsupport doctor [--corpus DIR] [--index FILE] [--json]`; 1 where something needs mending."""
    parser = Parser(prog="python -m labsupport doctor", description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=Path("corpus"), metavar="DIR")
    parser.add_argument("--index", default="index.sqlite", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    options = parser.parse_args(argv)
    use_utf8()
    checks = examine(options.corpus, options.index)
    if options.json:
        print(json.dumps([asdict(check) for check in checks], ensure_ascii=False, indent=2))
    else:
        print("\n".join(map(str, checks)))
    return 1 if any(check.state == MEND for check in checks) else 0
