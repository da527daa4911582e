"""The image, built twice from nothing: the same one, with nothing in it that builds, installs or changes who one is."""

import re
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from support.kubernetes.cluster import IMAGE, node_home
from support.kubernetes.image import SCRIPTS, Image, build_image, drop_image, read_image, save_image

TOOLS = re.compile(r"(javac|jshell|mvn|gcc|g\+\+|cc|c\+\+|cpp|ld|as|make|go|rustc|npm|pip)(-?[\d.]+)?")
"""Programs that compile or install; Debian's own apt and dpkg are of the base."""


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Image, Image]:
    home, folder = node_home(), tmp_path_factory.mktemp("images")
    subprocess.run([SCRIPTS / "up.sh", "fetch"], check=True, capture_output=True)
    found = []
    for name in (f"{IMAGE}:test", f"{IMAGE}:again"):  # the first one is the node's, which needs no third
        build_image(home, name, fresh=True)
        archive = folder / "image.tar"
        save_image(home, name, archive)
        found.append(read_image(archive))
        archive.unlink()
    drop_image(home, f"{IMAGE}:again")
    one, other = found
    return one, other


def test_the_same_sources_make_the_same_image(twice: tuple[Image, Image]) -> None:
    one, other = twice
    layers = one.config["rootfs"]["diff_ids"], other.config["rootfs"]["diff_ids"]
    assert layers[0] == layers[1], "in a layer"
    assert one.files == other.files
    assert one.digest == other.digest, "in the configuration"


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
