"""Lineage edges as a tree for the terminal, as mermaid and as dot. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lakewarden.catalog.lineage.queries import Direction
from lakewarden.catalog.model.rows import Confidence

__all__ = ["UNKNOWN", "NamedEdge", "as_dot", "as_mermaid", "as_tree"]

UNKNOWN = "(unknown)"
"""Shown where nobody knows what a version read."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedEdge:
    """An edge for people."""

    output: str
    """The name of a managed table, else a location, or `UNKNOWN`."""
    output_id: str
    output_version: int
    input: str
    """Likewise."""
    input_id: str
    input_version: int | None
    from_version: int | None
    operation: str
    confidence: Confidence
    run_id: str | None


def as_tree(name: str, edges: Sequence[NamedEdge], direction: Direction) -> Iterator[str]:
    """Lines of a tree: first what the table comes from, then what comes from it. A table is unfolded once."""
    yield name
    if direction is not Direction.DOWNSTREAM:
        yield from _branches(name, _grouped(edges, _output), _input, "<-", "", {name})
    if direction is not Direction.UPSTREAM:
        yield from _branches(name, _grouped(edges, _input), _output, "->", "", {name})


def as_mermaid(edges: Sequence[NamedEdge]) -> Iterator[str]:
    """A flowchart for Markdown pages."""
    ends = dict.fromkeys(end for edge in edges for end in (edge.input, edge.output))
    nodes = {name: f"t{number}" for number, name in enumerate(ends)}
    yield "flowchart LR"
    for name, node in nodes.items():
        yield f'    {node}["{_quoted(name)}"]'
    for edge in edges:
        yield f'    {nodes[edge.input]} -- "{_label(edge)}" --> {nodes[edge.output]}'


def as_dot(edges: Sequence[NamedEdge]) -> Iterator[str]:
    """A digraph for Graphviz."""
    yield "digraph lineage {"
    yield "    rankdir=LR;"
    for edge in edges:
        yield f'    "{_quoted(edge.input)}" -> "{_quoted(edge.output)}" [label="{_label(edge)}"];'
    yield "}"


def _branches(
    name: str,
    edges: Mapping[str, Sequence[NamedEdge]],
    end: Callable[[NamedEdge], str],
    arrow: str,
    indent: str,
    unfolded: set[str],
) -> Iterator[str]:
    here = edges.get(name, ())
    for number, edge in enumerate(here):
        last, other = number == len(here) - 1, end(edge)
        yield f"{indent}{'└─' if last else '├─'}{arrow} {other}  {_label(edge)}"
        if other not in unfolded:
            unfolded.add(other)
            yield from _branches(other, edges, end, arrow, indent + ("   " if last else "│  "), unfolded)


def _label(edge: NamedEdge) -> str:
    """`v7 → v12 append`, with what is less than certain said."""
    read = "" if edge.input_version is None else f"v{edge.input_version} "
    if edge.from_version is not None:
        read = f"v{edge.from_version}..v{edge.input_version} "
    doubt = "" if edge.confidence is Confidence.COMMITTED else f" ({edge.confidence})"
    return f"{read}→ v{edge.output_version} {edge.operation}{doubt}"


def _grouped(
    edges: Sequence[NamedEdge], key: Callable[[NamedEdge], str]
) -> Mapping[str, Sequence[NamedEdge]]:
    groups = defaultdict(list)
    for edge in edges:
        groups[key(edge)].append(edge)
    return groups


def _input(edge: NamedEdge) -> str:
    return edge.input


def _output(edge: NamedEdge) -> str:
    return edge.output


def _quoted(text: str) -> str:
    return text.replace('"', "'")
