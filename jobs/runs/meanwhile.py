"""Commits made while a run acts on its decision: each commit is read once, whole, and held against that."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Commit, DataFile, Observation
from lakewarden.jobs.runs.head import observe, require_same_commit
from lakewarden.jobs.runs.port import JobContext

__all__ = ["Meanwhile"]


@dataclass(kw_only=True, slots=True)
class Meanwhile:
    """The commits since a run decided."""

    ctx: JobContext
    seen: Observation
    """The state that the run decided on."""
    kept: timedelta
    """The retention that the run decided on."""
    keeps: Callable[[JobContext, Observation], timedelta | None]
    """How long the table keeps the same by its properties; None: nobody knows."""
    version: int
    """The last one that was read."""
    committed_at: datetime
    head: str
    """The state of head that its terms were looked at in."""

    @classmethod
    def since(
        cls,
        ctx: JobContext,
        seen: Observation,
        *,
        kept: timedelta,
        keeps: Callable[[JobContext, Observation], timedelta | None],
    ) -> "Meanwhile":
        """From what was `seen` on."""
        return cls(
            ctx=ctx,
            seen=seen,
            kept=kept,
            keeps=keeps,
            version=seen.version,
            committed_at=seen.committed_at,
            head=seen.head,
        )

    def follow(self) -> Iterator[tuple[Commit, tuple[DataFile, ...]]]:
        """The commits since the last call, each with the files that it added.

        Raises `ConflictError` if the table was made anew or replaced, uses features by now that lakewarden does not act
        on, or keeps longer what the run would take away.
        """
        additions = self.ctx.reader.additions(self.ctx.target.location, since=self.version)
        last, _ = next(additions, (None, ()))
        require_same_commit(self.ctx, last, self.version, self.committed_at)
        probe = self.ctx.reader.probe(self.ctx.target.location, seen=self.version, head=self.head)
        redefined = probe.head not in (None, self.head)  # some formats change properties without a version
        self.head = probe.head or self.head
        for commit, files in additions:
            if commit.format_id not in (None, self.seen.format_id):
                raise ConflictError(
                    f"{self.ctx.target.name} was made anew by version {commit.version}; "
                    "the rest was left as it is."
                )
            redefined = redefined or commit.redefines
            yield commit, files
            self.version, self.committed_at = commit.version, commit.committed_at
        if redefined:
            self._require_same_terms()

    def require_nothing_else(self) -> None:
        """`follow`, for a run to which added files do not matter."""
        for _ in self.follow():
            pass

    def _require_same_terms(self) -> None:
        now, name = observe(self.ctx), self.ctx.target.name
        if now.capabilities.unsupported:
            raise ConflictError(
                f"{name} uses {', '.join(now.capabilities.unsupported)} by now, "
                "which lakewarden does not act on; the rest was left as it is."
            )
        keeps = self.keeps(self.ctx, now)
        if keeps is None or keeps > max(self.kept, self.keeps(self.ctx, self.seen) or timedelta(0)):
            raise ConflictError(
                f"The properties of {name} keep more by now than when this was decided; "
                "the rest was left as it is."
            )
