"""The image, built twice from nothing: the same one, with nothing in it that builds, installs or changes who one is."""

import re
import shutil
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from support.kubernetes.cluster import IMAGE, node_home
from support.kubernetes.image import ROOT, SCRIPTS, Image, build_image, drop_image, read_image, save_image

TOOLS = re.compile(r"(javac|jshell|mvn|gcc|g\+\+|cc|c\+\+|cpp|ld|as|make|go|rustc|npm|pip)(-?[\d.]+)?")
"""Programs that compile or install; Debian's own apt and dpkg are of the base."""


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Image, Image]:
    home, folder = node_home(), tmp_path_factory.mktemp("images")
    subprocess.run([SCRIPTS / "up.sh", "fetch"], check=True, capture_output=True)
    # The first one is the node's, which needs no third.
    one, other = (built(folder, f"{IMAGE}:{tag}", fresh=True) for tag in ("test", "again"))
    drop_image(home, f"{IMAGE}:again")
    return one, other


def built(folder: Path, name: str, sources: Path = ROOT, *, fresh: bool = False) -> Image:
    """An image of these sources, built here and read."""
    build_image(node_home(), name, sources, fresh=fresh)
    archive = folder / "image.tar"
    save_image(node_home(), name, archive)
    found = read_image(archive)
    archive.unlink()
    return found


def test_the_same_sources_make_the_same_image(twice: tuple[Image, Image]) -> None:
    one, other = twice
    layers = one.config["rootfs"]["diff_ids"], other.config["rootfs"]["diff_ids"]
    assert layers[0] == layers[1], "in a layer"
    assert one.files == other.files
    assert one.digest == other.digest, "in the configuration"


def test_a_new_version_is_pulled_as_its_package_alone(twice: tuple[Image, Image], tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(
        ROOT, sources, symlinks=True, ignore=shutil.ignore_patterns(".*venv*", ".git", "__pycache__")
    )
    with (sources / "catalog" / "errors.py").open("a") as module:
        module.write("CHANGED = True\n")
    name = f"{IMAGE}:changed"
    changed = built(tmp_path, name, sources)
    drop_image(node_home(), name)
    ours, theirs = (one.config["rootfs"]["diff_ids"] for one in (twice[1], changed))
    assert len(ours) == len(theirs) and len(set(ours) - set(theirs)) == 1


def test_it_runs_as_nobody_special_and_nobody_can_become_another(twice: tuple[Image, Image]) -> None:
    one, _ = twice
    assert one.config["config"]["User"] == "10001"
    assert [name for name, mode in one.files.items() if mode & 0o6000] == []


def test_nothing_in_it_compiles_or_installs(twice: tuple[Image, Image]) -> None:
    one, _ = twice
    names = {PurePosixPath(name) for name in one.files}
    programs = {
        str(name) for name in names if name.parent.name in {"bin", "sbin"} and TOOLS.fullmatch(name.name)
    }
    assert programs == set()
    assert not [name for name in names if {"pip", "setuptools", "maven", "ensurepip"} & {*name.parts}]
    assert "opt/lakewarden/bin/lakewarden" in one.files and "usr/bin/tini" in one.files, "it was read"


def test_what_only_building_left_is_gone(twice: tuple[Image, Image]) -> None:
    one, _ = twice
    left = ("var/lib/apt/lists/", "var/cache/apt/", "var/log/", "tmp/", "root/.cache/", "src/")
    assert [name for name in one.files if name.startswith(left)] == []
    assert Path("/opt/lakewarden/lib/python3.11/site-packages/pyspark/jars").relative_to("/").as_posix() in {
        str(PurePosixPath(name).parent) for name in one.files
    }
