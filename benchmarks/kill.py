"""Break off ingests in every way and look at what is left: the old index or the new one, never half of each.

    python benchmarks/kill.py --runs 300       SIGKILL at random moments
    python benchmarks/kill.py --every 1        SIGKILL at every SQL statement, Ctrl-C at every call (20, 40 and so on of
                                               these), a disk that is full after 4 KB, 8 KB and so on; --every 5 takes
                                               every fifth of all these
Each is followed by an ordinary ingest, which must end in the same rows as one that was never broken off. Needs a system
with fork (Linux, macOS); the embedding model is a fake, so that the time goes into the index.
"""

import argparse
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from fakes import FakeEmbedder
from garden import front_matter, write
from index_state import check, state

from labsupport.pipeline import LabError, index_file, store
from labsupport.pipeline.updates import ingest

WORDS = ["blade", "mower", "chain", "hedge", "tiller", "pump", "winter", "warranty", "refund", "oil", "spark", "cover"]
PAGE = 4096


class Course:
    """A folder that changes at random, and an index that follows it."""

    def __init__(self, home: Path, rng: random.Random, documents: int = 12):
        self.corpus, self.index, self.rng = home / "corpus", home / "index.sqlite", rng
        self.spare = home / "spare.sqlite"
        for number in range(documents):
            self.write(number)
        ingest(self.corpus, self.index, FakeEmbedder())

    def write(self, number: int) -> None:
        sections = "".join(f"\n## Part {part}\n\n{' '.join(self.rng.choices(WORDS, k=60))}.\n" for part in range(4))
        title = f"Guide {number}"
        head = front_matter(doc_id=f"guide-{number}", title=title)
        write(self.corpus, f"guide-{number}.md", f"{head}# {title}\n{sections}")

    def change(self) -> None:
        """Some of: edit, delete, restore or make, rename, swap."""
        for _ in range(self.rng.randint(1, 5)):
            files = sorted((self.corpus / "documents").glob("*.md"))
            one, other = self.rng.sample(files, 2)
            match self.rng.randrange(5):
                case 0 if len(files) > 4:
                    one.unlink()
                case 1:
                    one.rename(one.with_name(f"moved-{self.rng.randrange(10**6)}.md"))
                case 2:
                    swap = one.read_bytes()
                    one.write_bytes(other.read_bytes())
                    other.write_bytes(swap)
                case _:
                    number = self.rng.randrange(14)
                    for path in files:
                        if f"doc_id: guide-{number}\n".encode() in path.read_bytes():
                            path.unlink()
                    self.write(number)

    def save(self) -> None:
        shutil.copyfile(self.index, self.spare)

    def restore(self, none: bool = False) -> None:
        """The index as saved, or none at all."""
        for path in self.index.parent.glob("index.sqlite*"):
            path.unlink()
        if not none:
            shutil.copyfile(self.spare, self.index)

    def expected(self, rebuild: bool) -> tuple[str, float]:
        """The rows after an ingest that nothing breaks off, and its seconds."""
        began = time.perf_counter()
        ingest(self.corpus, self.index, FakeEmbedder(), rebuild=rebuild)
        return state(self.index), time.perf_counter() - began


def in_child(work: Callable[[], None]) -> tuple[int, int]:
    """Run `work` in a forked process; gives its process id and the end of a pipe that tells when it begins."""
    hear, say = os.pipe()
    pid = os.fork()
    if pid:
        os.close(say)
        return pid, hear
    try:
        os.write(say, b"!")
        work()
        os._exit(0)
    except KeyboardInterrupt:
        os._exit(130)
    except LabError:
        os._exit(2)
    except BaseException as error:
        print(f"unexpected: {error!r}", file=sys.stderr)
        os._exit(99)


def ended(pid: int, hear: int) -> int:
    os.close(hear)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def judge(course: Course, before: str | None, after: str, where: str) -> str:
    """Which index was left; then the next ingest must arrive at `after`. Raises AssertionError."""
    left = state(course.index)
    assert left in (before, after), f"half an index after {where}"
    if left is not None:
        check(course.index)
    report = ingest(course.corpus, course.index, FakeEmbedder())
    check(course.index)
    assert state(course.index) == after, f"{where}: the next ingest did not arrive ({report.line})"
    assert not list(course.index.parent.glob("*.new*")), f"{where}: the half-built index was left"
    return "new" if left == after else "old"


def random_kills(home: Path, runs: int, rng: random.Random) -> Counter:
    course, seen = Course(home, rng), Counter()
    for run in range(runs):
        before = state(course.index)
        course.save()
        course.change()
        rebuild, none = run % 3 == 1, run % 10 == 9
        after, seconds = course.expected(rebuild)
        course.restore(none)
        pid, hear = in_child(lambda: ingest(course.corpus, course.index, FakeEmbedder(), rebuild=rebuild))  # noqa: B023
        os.read(hear, 1)
        time.sleep(rng.uniform(0, 1.3 * seconds))
        os.kill(pid, signal.SIGKILL)
        code = ended(pid, hear)
        assert code in (0, -signal.SIGKILL), f"run {run}: exit code {code}"
        seen[judge(course, None if none else before, after, f"kill {run}")] += 1
        seen["too late"] += code == 0
    return seen


def kill_at(number: int) -> None:
    """In a child: SIGKILL at SQL statement `number`, those inside FTS5 and on every connection counted."""
    left = [number]

    def count(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    for module in (store, index_file):
        def connect(*args, plain=module.connect, **kwargs):
            connection = plain(*args, **kwargs)
            connection.set_trace_callback(count)
            return connection
        module.connect = connect


def interrupt_at(number: int) -> None:
    """In a child: KeyboardInterrupt, as by Ctrl-C, at call 20 * `number` that our own code makes."""
    left = [20 * number]

    def count(frame, event, _) -> None:
        if "labsupport" in frame.f_code.co_filename and event in ("call", "c_call"):
            left[0] -= 1
            if left[0] == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    sys.setprofile(count)


def full_disk(number: int) -> None:
    """In a child: no file may grow beyond so many pages."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (number * PAGE, number * PAGE))


def at_every_step(home: Path, rng: random.Random, step: int) -> Counter:
    """Update, rebuild and first ingest, struck at step 1, 2, 3 and so on until one comes through unharmed."""
    course, seen = Course(home, rng, documents=5), Counter()
    for blow, name, expected in ((kill_at, "kill", -9), (interrupt_at, "Ctrl-C", 130), (full_disk, "full disk", 2)):
        for rebuild, none in ((False, False), (True, False), (False, True)):
            before = state(course.index)
            course.save()
            course.change()
            after, _ = course.expected(rebuild)
            number, code = rng.randrange(step) + 1 - step, None
            while code != 0:
                number += step
                course.restore(none)

                def work(rebuild=rebuild, number=number, blow=blow) -> None:
                    blow(number)
                    ingest(course.corpus, course.index, FakeEmbedder(), rebuild=rebuild)

                code = ended(*in_child(work))
                assert code in (0, expected), f"{name} {number}: exit code {code}"
                seen[judge(course, None if none else before, after, f"{name} {number}")] += 1
                seen[name] += code != 0
    return seen


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=int, default=0, help="random kills")
    options.add_argument("--every", type=int, default=0, help="every so many steps, in three ways")
    options.add_argument("--seed", type=int, default=None)
    asked = options.parse_args()
    seed = asked.seed if asked.seed is not None else random.randrange(10**6)
    print(f"seed {seed}")
    with tempfile.TemporaryDirectory() as home:
        if asked.runs:
            seen = random_kills(Path(home) / "random", asked.runs, random.Random(seed))
            print(f"{asked.runs} kills at random: {seen['old']} left the old index, {seen['new']} the new one "
                  f"({seen['too late']} came too late), 0 half; every next ingest arrived")
        if asked.every:
            seen = at_every_step(Path(home) / "every", random.Random(seed), asked.every)
            print(f"{seen['kill']} kills, {seen['Ctrl-C']} Ctrl-C, {seen['full disk']} full disks: {seen['old']} left "
                  f"the old index, {seen['new']} the new one, 0 half; every next ingest arrived")


if __name__ == "__main__":
    main()
