"""The jar cache, with a Maven of a few lines: what is fetched, what is kept, what is said."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lakewarden.catalog.errors import PreconditionError, UnavailableError
from lakewarden.jobs.engines.spark.jars import ENGINE, JarSet, default_cache, lock_jars, resolve_jars

# Copies what lies in $MAVEN_HAS to the output directory and counts its runs.
_MAVEN = """#!/bin/sh
for argument; do case $argument in -DoutputDirectory=*) out=${argument#*=};; esac; done
echo run >>"$MAVEN_HAS/../runs"
mkdir -p "$out"
cp "$MAVEN_HAS"/*.jar "$out"
[ ! -e "$MAVEN_HAS/../dies" ] || kill -9 $PPID
exit $(cat "$MAVEN_HAS/../exit" 2>/dev/null || echo 0)
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a Maven and a Java on PATH, and two jars that this Maven can fetch."""
    for folder in ("bin", "has"):
        (tmp_path / folder).mkdir()
    _script(tmp_path / "bin" / "mvn", _MAVEN)
    _script(tmp_path / "bin" / "java", "#!/bin/sh\n")
    (tmp_path / "has" / "a.jar").write_bytes(b"a" * 1000)
    (tmp_path / "has" / "b.jar").write_bytes(b"b" * 2000)
    (tmp_path / "pom.xml").write_text("<project/>")
    lines = [
        f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}\n"
        for jar in sorted((tmp_path / "has").iterdir())
    ]
    (tmp_path / "jars.sha256").write_text("".join(lines))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("MAVEN_HAS", str(tmp_path / "has"))
    return tmp_path


def test_jars_are_fetched_once_and_then_come_from_the_cache(world: Path) -> None:
    said: list[str] = []
    first = resolve_jars(world / "cache", jars=_set(world), announce=said.append)
    (world / "bin" / "mvn").unlink()
    (world / "bin" / "java").unlink()
    second = resolve_jars(world / "cache", jars=_set(world), announce=said.append)
    assert first == second
    assert [jar.name for jar in first] == ["a.jar", "b.jar"]
    assert all(jar.is_file() for jar in first)
    assert len(said) == 1


def test_a_damaged_jar_is_fetched_again(world: Path) -> None:
    jar, _ = resolve_jars(world / "cache", jars=_set(world))
    jar.write_bytes(b"x" * 1000)
    assert resolve_jars(world / "cache", jars=_set(world))[0].read_bytes() == b"a" * 1000
    assert _runs(world) == 2


def test_another_pom_is_another_folder(world: Path) -> None:
    before = resolve_jars(world / "cache", jars=_set(world))
    (world / "pom.xml").write_text("<project><!-- newer --></project>")
    after = resolve_jars(world / "cache", jars=_set(world))
    assert before[0].parent != after[0].parent
    assert before[0].exists(), "a running session may still use the old ones"


def test_a_killed_download_leaves_nothing_that_counts(world: Path) -> None:
    (world / "dies").touch()
    killed = _resolve_in_a_process(world)
    assert killed.wait() == -9
    (world / "dies").unlink()
    assert not _set(world).folder(world / "cache").exists()
    assert len(resolve_jars(world / "cache", jars=_set(world))) == 2


def test_processes_that_ask_at_once_fetch_once(world: Path) -> None:
    asking = [_resolve_in_a_process(world) for _ in range(4)]
    assert [process.wait() for process in asking] == [0, 0, 0, 0]
    assert _runs(world) == 1


def test_other_bytes_than_expected_are_refused(world: Path) -> None:
    (world / "has" / "b.jar").write_bytes(b"evil")
    with pytest.raises(UnavailableError, match=r"not the expected ones: b\.jar has other content"):
        resolve_jars(world / "cache", jars=_set(world))
    assert not _set(world).folder(world / "cache").exists()


def test_locking_takes_what_maven_brings_as_the_expected(world: Path) -> None:
    (world / "has" / "b.jar").write_bytes(b"newer")
    lock_jars(world / "cache", _set(world))
    assert resolve_jars(world / "cache", jars=_set(world))[1].read_bytes() == b"newer"


@pytest.mark.parametrize(
    ("missing", "sentence"),
    [("mvn", "Maven is not installed"), ("java", "There is no java on PATH")],
    ids=["no maven", "no java"],
)
def test_a_missing_tool_gets_one_sentence_and_a_hint(
    world: Path, monkeypatch: pytest.MonkeyPatch, missing: str, sentence: str
) -> None:
    (world / "bin" / missing).unlink()
    monkeypatch.setenv("PATH", str(world / "bin"))
    with pytest.raises(PreconditionError, match=sentence) as caught:
        resolve_jars(world / "cache", jars=_set(world))
    assert caught.value.hint


def test_a_failing_maven_gets_one_sentence_and_its_log(world: Path) -> None:
    (world / "exit").write_text("1")
    with pytest.raises(UnavailableError, match="could not fetch") as caught:
        resolve_jars(world / "cache", jars=_set(world))
    assert str(world / "cache" / "maven.log") in caught.value.hint


def test_a_cache_that_cannot_be_made_gets_one_sentence(world: Path) -> None:
    (world / "file").touch()
    with pytest.raises(PreconditionError, match="cannot be kept in"):
        resolve_jars(world / "file" / "cache", jars=_set(world))


def test_the_users_cache_folder_is_the_default() -> None:
    assert default_cache({"XDG_CACHE_HOME": "/var/cache/me"}) == Path("/var/cache/me/lakewarden/jars")
    assert default_cache({}) == Path.home() / ".cache" / "lakewarden" / "jars"


def test_the_engines_manifest_names_the_delta_that_the_pom_asks_for() -> None:
    names = [line.split()[1] for line in ENGINE.manifest.read_text().splitlines()]
    assert "delta-spark_4.1_2.13-4.4.0.jar" in names
    assert "<delta.version>4.4.0</delta.version>" in ENGINE.pom.read_text()


def _set(world: Path) -> JarSet:
    return JarSet(name="engine", pom=world / "pom.xml", manifest=world / "jars.sha256")


def _script(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _runs(world: Path) -> int:
    return len((world / "runs").read_text().split())


def _resolve_in_a_process(world: Path) -> subprocess.Popen[bytes]:
    script = (
        "import sys; from pathlib import Path; from lakewarden.jobs.engines.spark.jars import "
        "JarSet, resolve_jars\n"
        "world = Path(sys.argv[1])\n"
        "jars = JarSet(name='engine', pom=world / 'pom.xml', manifest=world / 'jars.sha256')\n"
        "resolve_jars(world / 'cache', jars=jars)"
    )
    return subprocess.Popen([sys.executable, "-c", script, world], env=dict(os.environ))
