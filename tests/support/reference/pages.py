"""The pages of docs/reference that are made from the source: `python -m support.reference.pages FOLDER`."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from support.reference.columns import columns_page
from support.reference.faults import faults_page, kept
from support.reference.logs import logs_page
from support.reference.metrics import metrics_page
from support.reference.rights import network_page, reached, recorded, rights_page
from support.reference.statements import statements_page
from support.reference.webhooks import webhooks_page
from support.security.page import security_page

__all__ = ["PAGES"]

PAGES: Mapping[str, Callable[[], str]] = {
    "columns.md": columns_page,
    "faults.md": lambda: faults_page(kept()),
    "logs.md": logs_page,
    "metrics.md": metrics_page,
    "rights.md": lambda: rights_page(recorded()) + network_page(reached()),
    "security.md": security_page,
    "statements.md": statements_page,
    "webhooks.md": webhooks_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        Path(sys.argv[1], name).write_text(page(), encoding="utf-8")
