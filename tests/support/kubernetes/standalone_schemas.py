"""Kubernetes' schemas as kubeconform reads them: one file per kind, with all that it refers to inside."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from support.kubernetes.tools import schemas

__all__ = ["file_of", "write_standalone"]


def file_of(one: Mapping[str, Any]) -> str:
    """The name of the schema of an object: `deployment-apps-v1.json`."""
    group, _, number = one["apiVersion"].rpartition("/")
    parts = [one["kind"].lower(), *([group.partition(".")[0]] if group else []), number]
    return f"{'-'.join(parts)}.json"


def write_standalone(version: str, names: set[str], folder: Path) -> None:
    """Write these schemas of a Kubernetes version (`1.34`) into a folder."""
    source = schemas(version)
    known = json.loads((source / "_definitions.json").read_text())["$defs"]
    for name in names:
        schema = json.loads((source / name).read_text())
        needed: set[str] = set()
        missing = {*_referred(schema)}
        while missing:
            needed |= missing
            missing = {one for each in missing for one in _referred(known[each])} - needed
        own = {key: value for key, value in schema.items() if key not in {"$id", "$schema"}}
        whole = {**own, "definitions": {one: known[one] for one in sorted(needed)}}
        (folder / name).write_text(json.dumps(_inside(whole)))


def _referred(tree: Any) -> Iterator[str]:
    match tree:
        case {"$ref": str(place)}:
            yield place.rpartition("/")[2]
        case dict():
            for inner in tree.values():
                yield from _referred(inner)
        case list():
            for inner in tree:
                yield from _referred(inner)


def _inside(tree: Any) -> Any:
    match tree:
        case {"$ref": str(place)}:
            return {**tree, "$ref": f"#/definitions/{place.rpartition('/')[2]}"}
        case dict():
            return {key: _inside(inner) for key, inner in tree.items()}
        case list():
            return [_inside(inner) for inner in tree]
    return tree
