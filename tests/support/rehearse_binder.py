"""Builds what Binder builds, as a new user, and plays a lesson in it without a network: ``make binder``.

As root, because it makes a user, and a network in which this machine is alone. It follows `repo2docker`: the sources of
the last commit, a new environment with ``binder/requirements.txt``, ``binder/postBuild``; then ``binder/start`` with
JupyterLab. A learner plays a lesson in a Chromium (`play`), while the CPU time and the memory of JupyterLab and its
kernels are measured. Packages of Debian are those of this machine: ``binder/apt.txt`` is not installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psutil
from browsing import CHROMIUM, CHROMIUM_ARGUMENTS, TOKEN
from lab_front import Front
from play import SIZE, Player, dress

from workbench.lessons.course import numbered

ROOT = Path(__file__).parents[2]
USER = "binder-rehearsal"
PYTHON = Path("/usr/bin/python3.11")
"""Of the system: that of this process may lie where a new user cannot read. The version is that of `runtime.txt`."""
KEPT = ("PIP_", "LANG", "SSL_CERT_", "NODE_EXTRA_CA_")
"""How the variables of the environment begin that the image may know: how packages are fetched on this machine."""
PORT = 8888
MEMORY_BYTES = 2 * 1024**3
OPENS_S = 60.0
EVERY_S = 0.5


class Home:
    """The home of a new user, with an environment that holds nothing but what is built."""

    def __init__(self) -> None:
        self.path = Path("/home", USER)
        self.checkout = self.path / "checkout"
        self.bin = self.path / "venv" / "bin"

    def remove(self) -> None:
        """Forget the user, and what it has."""
        subprocess.run(["userdel", "--remove", USER], check=True, stderr=subprocess.DEVNULL)

    def start(self, *command: str | Path, **how: object) -> subprocess.Popen[bytes]:
        """Start a command in the checkout as the user, with nothing of the environment of this process."""
        places = {"HOME": str(self.path), "USER": USER, "PATH": f"{self.bin}:/usr/local/bin:/usr/bin:/bin"}
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        return subprocess.Popen(
            [str(part) for part in command], cwd=self.checkout, env=kept | places, user=USER, group=USER,
            extra_groups=[], **how,
        )  # type: ignore[call-overload, no-any-return]  # fmt: skip

    def run(self, *command: str | Path) -> None:
        """Run a command to its end."""
        if code := self.start(*command).wait():
            raise SystemExit(f"{' '.join(map(str, command))} ends with {code}")

    def build(self) -> None:
        """The steps of `repo2docker`."""
        subprocess.run(["useradd", "--create-home", "--home-dir", self.path, USER], check=True)
        self.checkout.mkdir()
        packed = subprocess.run(["git", "-C", ROOT, "archive", "HEAD"], check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", self.checkout], input=packed.stdout, check=True)
        subprocess.run(["chown", "-R", f"{USER}:", self.checkout], check=True)
        self.run(PYTHON, "-m", "venv", self.bin.parent)
        self.run(self.bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
                 "binder/requirements.txt")  # fmt: skip
        self.run("binder/postBuild")


class Usage(threading.Thread):
    """Measures what a process and all that it has started take; memory that several share is counted once.

    Attributes:
        most: the most memory that they held together, in bytes.
        shares: what each of them held then, by what it is.
    """

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.shares: dict[str, int] = {}
        self._root = psutil.Process(process)
        self._spent: dict[int, float] = {}
        self._ended = threading.Event()

    @property
    def cpu_s(self) -> float:
        """The CPU time that they have taken: on a loaded machine it tells more than the time that has passed."""
        return sum(self._spent.values())

    def run(self) -> None:
        while not self._ended.wait(EVERY_S):
            self.look()

    def look(self) -> None:
        """Measure once."""
        shares: dict[str, int] = {}
        with suppress(psutil.NoSuchProcess):
            for process in [self._root, *self._root.children(recursive=True)]:
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    name = f"{_kind(process.cmdline())} {process.pid}"
                    shares[name] = process.memory_full_info().pss
                    times = process.cpu_times()
                    self._spent[process.pid] = times.user + times.system
        if sum(shares.values()) > self.most:
            self.most, self.shares = sum(shares.values()), shares

    def end(self) -> None:
        self._ended.set()
        self.join()


def _kind(command: list[str]) -> str:
    """What a process is: its module or script, or its program."""
    words = [word for word in command if not word.startswith("-")]
    if "-m" in command[:-1]:
        return command[command.index("-m") + 1]
    return Path(words[1] if len(words) > 1 and "python" in words[0] else words[0]).name if words else "?"


def session(home: Home, number: str) -> list[str]:
    """One session of Binder, in which a lesson is played; what was wrong with it."""
    from playwright.sync_api import sync_playwright

    began = time.monotonic()
    log = (home.path / "log").open("w")
    lab = home.start(
        "binder/start", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={PORT}", "--LabApp.news_url=None",
        f"--IdentityProvider.token={TOKEN}", "--LabApp.expose_app_in_browser=True",
        stdout=log, stderr=log,
    )  # fmt: skip
    usage = Usage(lab.pid)
    usage.start()
    try:
        url = f"http://127.0.0.1:{PORT}"
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
            page = browser.new_page(viewport=SIZE)
            while True:
                try:
                    page.goto(f"{url}/api")
                    break
                except Exception:  # noqa: BLE001 - it does not answer yet
                    if lab.poll() is not None or time.monotonic() - began > 2 * OPENS_S:
                        raise SystemExit((home.path / "log").read_text()) from None
                    time.sleep(0.2)
            front = Front(page, url, home.checkout / "notebooks" / "course")
            front.open("notebooks/course/01_table_in_motion.ipynb")
            opened_s = time.monotonic() - began
            usage.look()
            opened_cpu_s = usage.cpu_s
            dress(front, "light")
            front.root = home.checkout
            played = Player(front, folder="notebooks/course/").play(
                number
            )  # not beside the sources, which it would use
            browser.close()
    finally:
        usage.end()
        lab.kill()  # told to end while kernels run, it may wait for ever
        lab.wait()
        subprocess.run(["pkill", "-KILL", "-u", USER], check=False)  # its kernels
    print(  # noqa: T201
        f"The first lesson was open after {opened_s:.0f} s ({opened_cpu_s:.1f} s of CPU time); lesson {number} moves "
        f"after {played.moved_s:.1f} s.\nJupyterLab and its kernels took {usage.cpu_s:.1f} s of CPU time for a whole "
        f"lesson, and held at most {usage.most / 1e6:,.0f} MB:",
        *(f"  {name}: {held / 1e6:,.0f} MB" for name, held in sorted(usage.shares.items(), key=lambda one: -one[1])),
        sep="\n",
    )
    faults = list(played.faults)
    if opened_s > OPENS_S:
        faults.append(f"the first lesson was open only after {opened_s:.0f} s")
    if usage.most > MEMORY_BYTES:
        faults.append(f"{usage.most / 1e6:,.0f} MB are more than Binder has")
    return faults


def main(given: list[str]) -> int:
    """The command line; 1 if something is wrong."""
    parser = argparse.ArgumentParser(prog="rehearse_binder", description=__doc__)
    parser.add_argument("lesson", nargs="?", default="01", help="that is played (default: 01)")
    parser.add_argument("--keep", action="store_true", help="keep the user and what was built, for the next rehearsal")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # this process has no network
    options = parser.parse_args(given)
    home = Home()
    if options.alone:
        faults = session(home, numbered(options.lesson))
        print(*(faults or ["Nothing is wrong."]), sep="\n", flush=True)  # noqa: T201
        return bool(faults)
    if os.geteuid() != 0:
        parser.error("it makes a user and a network: run it as root")
    began = time.monotonic()
    if not home.path.exists():
        home.build()
        print(f"The image was built in {time.monotonic() - began:.0f} s.", flush=True)  # noqa: T201
    again = f"ip link set lo up && exec {sys.executable} -m rehearse_binder {options.lesson} --alone"
    try:
        return subprocess.run(["unshare", "--net", "sh", "-c", again], check=False).returncode
    finally:
        if not options.keep:
            home.remove()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
