"""Processes that work together: `Team(3).run(function, *arguments)` calls it on three ranks.

They are started once and serve many tests. Functions are those of modules, so that they can be
sent by name; what they return comes back as a list, by rank. An error on a rank is raised here,
and ends the team: the others may wait for it forever.
"""

import datetime
import multiprocessing
import tempfile
import traceback
from pathlib import Path

_PATIENCE = 60.0  # seconds for a call; a collective that waits longer is an error, too


class Team:
    def __init__(self, size):
        self.size = size
        self._processes = []

    def run(self, function, *arguments, dying=()):
        """What the function returns on every rank, but for those that do not live to tell."""
        if not self._processes:
            self._start()
        for pipe in self._pipes:
            pipe.send((function, arguments))
        try:
            answers = [self._answer(rank) for rank in range(self.size) if rank not in dying]
        except BaseException:
            self.stop()
            raise
        return answers

    def _answer(self, rank):
        pipe = self._pipes[rank]
        if not pipe.poll(_PATIENCE):
            raise TimeoutError(f"rank {rank} of {self.size} did not answer")
        good, answer = pipe.recv()
        if not good:
            raise AssertionError(f"rank {rank} of {self.size}:\n{answer}")
        return answer

    def _start(self):
        self._folder = tempfile.TemporaryDirectory()
        store = Path(self._folder.name, "store").as_uri()
        context = multiprocessing.get_context("spawn")
        ends = [context.Pipe() for _ in range(self.size)]
        self._pipes = [near for near, _ in ends]
        self._processes = [
            context.Process(target=_serve, args=(far, rank, self.size, store), daemon=True)
            for rank, (_, far) in enumerate(ends)
        ]
        for process in self._processes:
            process.start()

    def stop(self):
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        if self._processes:
            self._folder.cleanup()
        self._processes = []


def _serve(pipe, rank, size, store):
    import torch

    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo",
        init_method=store,
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=_PATIENCE / 2),
    )
    while True:
        function, arguments = pipe.recv()
        try:
            answer = True, function(*arguments)
        except BaseException:
            answer = False, traceback.format_exc()
        pipe.send(answer)
