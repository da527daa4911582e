"""Who acts in tests: `run` makes an actor of a caller, tests make theirs by name."""

from lakewarden.catalog.policy.access import Actor, Caller, Role

__all__ = ["actor"]


def actor(name: str, *, admin: bool = False, origin: str = "test") -> Actor:
    """Somebody whose use case is being run."""
    return Actor(Caller(name=name, roles=frozenset({Role.ADMIN} if admin else ()), origin=origin))
