"""An installation whose tables and system tables lie on S3, with its credentials by reference."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.servers.s3 import BUCKET, KEY, SECRET, options_of

__all__ = ["MountedKeys", "make_home", "settings_of", "storage_lines"]

_SECRET_VARIABLE = "S3_TEST_SECRET"


@dataclass(frozen=True)
class MountedKeys:
    """Key and secret as Kubernetes mounts a Secret: links through a link, which changes for both at once."""

    folder: Path

    def put(self, key: str, secret: str) -> None:
        """From now on these are the ones."""
        self.folder.mkdir(exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix="..", dir=self.folder))
        for name, value in (("key", key), ("secret", secret)):
            (fresh / name).write_text(value)
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        link = self.folder / "..next"
        link.symlink_to(fresh.name)
        link.replace(self.folder / "..data")

    @property
    def options(self) -> Mapping[str, str]:
        """How a settings file names them."""
        return {
            "aws_access_key_id": f"file:{self.folder / 'key'}",
            "aws_secret_access_key": f"file:{self.folder / 'secret'}",
        }


def make_home(
    home: Path,
    endpoint: str,
    *,
    prefix: str,
    spark: Mapping[str, str] | None = None,
    keys: MountedKeys | None = None,
) -> Path:
    """A home folder with a settings file: the key in a mounted file and the secret in a variable, or both in `keys`;
    system tables below `prefix` in the bucket, and `spark` as settings of its sessions."""
    home.mkdir(parents=True)
    conf = [f'"{name}" = "{value}"' for name, value in (spark or {}).items()]
    lines = [
        "[system]", f'location = "s3://{BUCKET}/{prefix}/system"',
        "[spark]", 'master = "local[2]"', "[spark.conf]", *conf,
        "[http]", "port = 0",
        *storage_lines(home, endpoint, keys),
    ]  # fmt: skip
    (home / "lakewarden.toml").write_text("\n".join(lines) + "\n")
    return home


def storage_lines(home: Path, endpoint: str, keys: MountedKeys | None = None) -> list[str]:
    """How a settings file says the way to the bucket."""
    key = home / "mounted-key"
    key.write_text(f"{KEY}\n")
    named = {"aws_access_key_id": f"file:{key}", "aws_secret_access_key": f"env:{_SECRET_VARIABLE}"}
    if keys is not None:
        named = {**keys.options}
    options = [f'{name} = "{value}"' for name, value in {**options_of(endpoint), **named}.items()]
    return ["[[storage]]", f'prefix = "s3://{BUCKET}"', "[storage.options]", *options]


def settings_of() -> Mapping[str, str]:
    """The environment that the settings file asks for."""
    return {_SECRET_VARIABLE: SECRET}
