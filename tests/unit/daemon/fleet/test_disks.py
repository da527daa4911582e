"""Which disks do not answer: asked once each, by threads that nobody waits for."""

import threading
from time import monotonic

import pytest

from lakewarden.daemon.fleet.disks import Disks

POINTS = ("/mnt/dead/inner", "/mnt/dead", "/mnt/live")


class Mounts:
    """Mount points of which one hangs until it is back."""

    def __init__(self) -> None:
        self.back, self.asked = threading.Event(), list[str]()

    def ask(self, point: str) -> None:
        self.asked.append(point)
        if point == "/mnt/dead":
            assert self.back.wait(60)


@pytest.mark.heavy
def test_a_mount_that_hangs_is_told_and_not_asked_again_before_it_is_back() -> None:
    mounts = Mounts()
    disks = Disks(patience=0.2, ask=mounts.ask, points=lambda: POINTS)
    places = ("file:///mnt/dead/t", "file:///mnt/live/t", "file:///elsewhere/t", "s3://bucket/t")
    assert disks.ask(places) == {"/mnt/dead"}
    assert disks.ask(places) == {"/mnt/dead"} == disks.hanging()
    assert mounts.asked.count("/mnt/dead") == 1 and mounts.asked.count("/mnt/live") == 2
    held = [disks.holds(one, disks.hanging()) for one in (*places, "file:///mnt/dead/inner/t")]
    assert held == [True, False, False, False, False]
    mounts.back.set()
    until = monotonic() + 20
    while disks.ask(places) and monotonic() < until:
        pass
    assert disks.hanging() == frozenset()
