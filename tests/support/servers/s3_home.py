"""An installation whose tables and system tables lie on S3, with its credentials by reference."""

from collections.abc import Mapping
from pathlib import Path

from support.servers.s3 import BUCKET, KEY, SECRET, options_of

__all__ = ["make_home", "settings_of"]

_SECRET_VARIABLE = "S3_TEST_SECRET"


def make_home(home: Path, endpoint: str, *, prefix: str, spark: Mapping[str, str] | None = None) -> Path:
    """A home folder with a settings file: the key in a mounted file, the secret in a variable, system tables below
    `prefix` in the bucket, and `spark` as settings of its sessions."""
    home.mkdir(parents=True)
    key = home / "mounted-key"
    key.write_text(f"{KEY}\n")
    named = {"aws_access_key_id": f"file:{key}", "aws_secret_access_key": f"env:{_SECRET_VARIABLE}"}
    options = [f'{name} = "{value}"' for name, value in {**options_of(endpoint), **named}.items()]
    conf = [f'"{name}" = "{value}"' for name, value in (spark or {}).items()]
    lines = [
        "[system]", f'location = "s3://{BUCKET}/{prefix}/system"',
        "[spark]", 'master = "local[2]"', "[spark.conf]", *conf,
        "[http]", "port = 0",
        "[[storage]]", f'prefix = "s3://{BUCKET}"', "[storage.options]", *options,
    ]  # fmt: skip
    (home / "lakewarden.toml").write_text("\n".join(lines) + "\n")
    return home


def settings_of() -> Mapping[str, str]:
    """The environment that the settings file asks for."""
    return {_SECRET_VARIABLE: SECRET}
