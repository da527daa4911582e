"""What is shipped: the wheel, the lock files, the make targets."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROOMS = ("catalog", "daemon", "jobs")
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
GROUPS = {
    "control": (),
    "spark": ("spark",),
    "sql": ("spark", "sql"),
    "demo": ("spark", "demo"),
    "dev": ("spark", "sql", "demo", "dev"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.heavy
def test_the_wheel_holds_exactly_the_files_of_the_rooms(wheel: Path) -> None:
    expected = {f"lakewarden/{path}" for path in _files(*ROOMS)}
    expected |= {"lakewarden/__init__.py", "lakewarden/py.typed"}
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert shipped == expected


@pytest.mark.parametrize("packed", [True, False], ids=["zip, as on executors", "installed"])
def test_the_package_imports_from_what_was_built(wheel: Path, tmp_path: Path, packed: bool) -> None:
    place = tmp_path / "lakewarden.zip"
    if packed:
        place.write_bytes(wheel.read_bytes())
    else:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(place)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import lakewarden, lakewarden.catalog.model.rows as model\n"
        "print(model.__file__)"
    )
    command = (sys.executable, "-c", script, str(place))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(place / "lakewarden" / "catalog" / "model" / "rows.py")


def test_the_control_plane_comes_without_spark() -> None:
    assert "pyspark" not in _pins(ROOT / "requirements" / "control.txt")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_names_no_host_and_pins_everything_with_hashes(lock: Path) -> None:
    text = lock.read_text()
    assert re.findall(r"://|--index|--extra-index|--find-links|--trusted-host| @ ", text) == []
    entries = re.split(r"\n(?=[a-z])", text.split("\n", 1)[1])
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_all_locks_agree_on_versions() -> None:
    dev = _pins(ROOT / "requirements" / "dev.txt")
    for group in GROUPS:
        pins = _pins(ROOT / "requirements" / f"{group}.txt")
        assert {name: version for name, version in pins.items() if dev[name] != version} == {}


@pytest.mark.parametrize("group", GROUPS)
def test_a_lock_covers_what_its_group_declares(group: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for extra in GROUPS[group] for line in project["optional-dependencies"][extra]]
    declared = {_name(line) for line in [*project["dependencies"], *extras]} - {"lakewarden"}
    assert declared - set(_pins(ROOT / "requirements" / f"{group}.txt")) == set()


def test_make_alone_lists_every_target_with_a_sentence() -> None:
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = dict(re.findall(r"^  make (\S+) +(\S.+)$", done.stdout, re.MULTILINE))
    (phony,) = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert set(listed) == set(phony.split())
    assert {"setup", "jars", "check", "test", "test-fast", "demo", "bench", "docs", "clean", "lock"} <= set(
        listed
    )


def test_the_licence_is_there_and_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text()


def _files(*folders: str) -> set[str]:
    """What git has or would add: tracked and new files, without deleted and ignored ones."""
    listed = _git("ls-files", "--cached", "--others", "--exclude-standard", *folders)
    return listed - _git("ls-files", "--deleted", *folders)


def _git(*arguments: str) -> set[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


def _pins(lock: Path) -> dict[str, set[str]]:
    """Package -> its versions; more than one where Python versions need different ones."""
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9-]+)(?:\[[^]]*\])?==(\S+)", lock.read_text(), re.MULTILINE):
        pins.setdefault(name, set()).add(version)
    return pins


def _name(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9-]", requirement, maxsplit=1)[0].lower()
