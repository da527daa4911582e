"""Do the catalogs that the settings declare answer?"""

from collections.abc import Iterator
from functools import partial

from lakewarden.catalog.named_catalogs.port import NamedCatalogs
from lakewarden.catalog.units import count_of
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, ok, warn

__all__ = ["declared_catalogs"]


def declared_catalogs(services: Services) -> Iterator[Diagnosis]:
    """Each of them; none where none is declared."""
    catalogs = services.catalogs
    if catalogs is not None:
        for name in catalogs.names:
            yield answered(f"catalog {name}", partial(_asked, catalogs, name))


def _asked(catalogs: NamedCatalogs, name: str) -> Diagnosis:
    told = catalogs.catalog(name).entries()
    check, said = f"catalog {name}", f"It answers with {count_of(len(told.files), 'table')}."
    if told.untold is None:
        return ok(check, said)
    return warn(check, f"{said} {told.untold}", told.untold.hint)
