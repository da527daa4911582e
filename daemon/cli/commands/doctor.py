"""`lakewarden doctor`."""

import os
from collections.abc import Iterator
from enum import StrEnum
from shutil import which
from typing import Annotated

import typer

from lakewarden.catalog.errors import ExitCode, LakewardenError, UsageError
from lakewarden.daemon.cli.common import Home, services_of
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, show
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult, Diagnosis
from lakewarden.daemon.usecases.doctor.examinations import examine, examine_without_settings
from lakewarden.daemon.usecases.doctor.kubernetes import examine_kubernetes
from lakewarden.daemon.usecases.doctor.object_stores import examine_location, try_stores_in_use
from lakewarden.daemon.usecases.doctor.one_machine import examine_machine
from lakewarden.daemon.usecases.doctor.pod import Pod, examine_pod
from lakewarden.daemon.usecases.doctor.yarn import examine_yarn

app = commands()


class DoctorTarget(StrEnum):
    """Where lakewarden is to run, or a place for tables."""

    LOCAL = "local"
    K8S = "k8s"
    YARN = "yarn"
    S3 = "s3"


@app.command("doctor", cls=ListCommand)
def doctor(
    target: Annotated[
        DoctorTarget | None,
        typer.Option(
            "--target",
            help="Check what this platform needs before you set anything up; s3: test "
            "the places in use, or --location.",
        ),
    ] = None,
    location: Annotated[
        str | None, typer.Option("--location", help="With s3: test only this place, s3://bucket/folder.")
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Check the set-up and say how to fix what is wrong. Exit 3 if something has to be fixed."""
    if location is not None and target is not DoctorTarget.S3:
        raise UsageError(
            "--location is for --target s3.",
            hint="Write --target s3 --location s3://bucket/folder.",
        )
    try:
        services = services_of(home)
    except (LakewardenError, OSError) as error:
        found = list(examine_without_settings(error))
    else:
        found = list(_examined(services, target, location))
    show(found, columns=["check", "verdict", "message", "fix"], format=output)
    if any(one.verdict is CheckResult.FAIL for one in found):
        raise typer.Exit(ExitCode.PARTLY)


def _examined(services: Services, target: DoctorTarget | None, location: str | None) -> Iterator[Diagnosis]:
    match target:
        case None:
            return examine(services)
        case DoctorTarget.LOCAL:
            return examine_machine(services)
        case DoctorTarget.K8S:
            pod = Pod.around(os.environ)
            return examine_kubernetes() if pod is None or which("kubectl") else examine_pod(services, pod)
        case DoctorTarget.YARN:
            return examine_yarn(services)
        case DoctorTarget.S3:
            return try_stores_in_use(services) if location is None else examine_location(services, location)


@app.callback()
def _commands() -> None:
    """Checks."""
