"""Where the gateway may listen: on loopback as it is, elsewhere only with authentication and TLS."""

import ipaddress
import ssl
from pathlib import Path

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.daemon.settings.settings import Settings

__all__ = ["require_safe_binding", "tls_context"]


def require_safe_binding(settings: Settings) -> None:
    """Raise `UsageError` for an address that others reach, unless callers authenticate over an encrypted connection."""
    if _is_loopback(settings.gateway_host):
        return
    where = settings.gateway_host
    if settings.gateway_authentication == "none":
        raise UsageError(
            f"The gateway does not listen on {where} without authentication.",
            hint="Set gateway.authentication = token, or listen on 127.0.0.1.",
        )
    if settings.gateway_tls_certificate is None and not settings.gateway_tls_elsewhere:
        raise UsageError(
            f"The gateway does not listen on {where} without TLS: tokens would be read on the way.",
            hint="Set gateway.tls_certificate and gateway.tls_key; where a proxy ends TLS, "
            "gateway.tls_elsewhere = yes.",
        )


def _is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tls_context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    """TLS 1.2 or newer with a certificate (and its chain); None without one. Raises `PreconditionError` for files
    that cannot be used."""
    if certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise PreconditionError(
            f"The certificate {certificate} cannot be used ({error}).",
            hint="gateway.tls_certificate and gateway.tls_key are PEM files that belong together.",
        ) from error
    return context
