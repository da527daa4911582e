"""Lakewarden as it was at an earlier commit, run by today's Python and libraries."""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

__all__ = ["TODAY", "Tree", "tree_of"]

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree:
    """A checkout whose commands can be called."""

    folder: Path

    def says(self, home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """What a command says to a home, however it ends. `settings` are variables of its environment."""
        return subprocess.run(
            [sys.executable, "-m", "lakewarden.daemon", *arguments],
            env=self._environment(home) | settings,
            cwd=home.parent,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def running(
        self, home: Path, log: Path, *program: str, **settings: str
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A Python program of this tree, which says what it has to say in `log`; what is left of it is killed."""
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, *program],
                env=self._environment(home) | settings,
                cwd=home.parent,
                stdout=said,
                stderr=said,
            )
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def must(self, home: Path, *arguments: str) -> str:
        """A command that has to succeed."""
        done = self.says(home, *arguments)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def json(self, home: Path, *arguments: str) -> Any:
        """What a command that has to succeed says as JSON."""
        return json.loads(self.must(home, *arguments, "-o", "json"))

    def _environment(self, home: Path) -> dict[str, str]:
        aside = ("PYTHONPATH", "LAKEWARDEN_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(aside)}
        return kept | {"PYTHONPATH": str(self.folder / ".src"), "LAKEWARDEN_HOME": str(home)}


TODAY = Tree(folder=ROOT)


def tree_of(commit: str, folder: Path) -> Tree:
    """The tree of a commit, unpacked into a folder. Skips the test where the clone has no such commit."""
    done = subprocess.run(
        ["git", "archive", commit, ".src", "catalog", "daemon", "jobs"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"this clone is shallow or has no history: commit {commit[:7]} is not in it")
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Tree(folder=folder)
