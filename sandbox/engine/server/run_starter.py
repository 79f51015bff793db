"""Starts runs through the zygote, and keeps a spare one so that the next job need not wait for a fork."""

import os
import socket

from ..isolation import scratch
from ..isolation.lockdown import Isolation
from ..zygote import messages
from .sessions import Run


class RunStarter:
    """Sends the orders for runs to the zygote. The spare run has locked itself down and waits for a job."""

    def __init__(self, isolation: Isolation, control: socket.socket) -> None:
        self._isolation, self._control = isolation, control
        self._started = 0
        self._spare: Run | None = None
        self._last_disk_mb = 0

    def start(self, disk_mb: int, processes: int, joining: list[int], link: list[int]) -> Run:
        """Have the zygote start a run.

        joining, link  descriptors for the run: of groups to join, and of its pipe to another run; closed here
        """
        self._started += 1
        ours, theirs = socket.socketpair()
        out, out_writer = os.pipe()
        err, err_writer = os.pipe()
        for fd in (out, err):
            os.set_blocking(fd, False)
        ours.setblocking(False)
        order = messages.ORDER.pack(messages.START, self._started, disk_mb, processes, len(joining))
        given = [theirs.detach(), out_writer, err_writer, *joining, *link]
        socket.send_fds(self._control, [order], given)
        for fd in given:
            os.close(fd)
        return Run(self._started, disk_mb, ours, out, err)

    def kill(self, run_id: int) -> None:
        """Have the zygote kill a run."""
        self._control.send(messages.ORDER.pack(messages.KILL, run_id, 0, 0, 0))

    # ---- the spare run ----------------------------------------------------------------------------------------------

    def take_spare(self, disk_mb: int) -> Run | None:
        """Return the spare run if it has this limit of disk space."""
        spare = self._spare
        if spare is None or spare.disk_mb != disk_mb:
            return None
        self._spare = None
        return spare

    def keep_spare(self, disk_mb: int) -> None:
        """Start a spare run for the next job, once two jobs in a row have had the same limit of disk space.

        A spare run with another limit is replaced then.
        """
        again, self._last_disk_mb = disk_mb == self._last_disk_mb, disk_mb
        if self._spare is not None and again and self._spare.disk_mb != disk_mb:
            self.kill(self._spare.run_id)
            self._drop_spare()
        if self._spare is None and again:
            self._spare = self.start(disk_mb, 0, [], [])

    def forget_ended_spare(self, run_id: int) -> None:
        """Give up the spare run if it is the run that has ended."""
        if self._spare is not None and self._spare.run_id == run_id:
            self._drop_spare()

    def _drop_spare(self) -> None:
        if self._spare is not None:
            if not self._isolation.namespaces:
                scratch.remove_tree(self._isolation.work_directory(self._spare.run_id))
            self._spare.close()
            self._spare = None
