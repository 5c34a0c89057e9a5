"""A rehearsal of a run: the whole training, whose releases are noise alone, and which nothing counts."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from pyaccount.errors import RunError
from pyaccount.training.run import TrainingRun
from pyaccount.training.sums import Array


class Rehearsal(TrainingRun):
    """A run like another one, with a key of its own in a folder that is deleted when it is closed.

    Sums are checked as in the run, and then zeros take their place. So nothing of the data gets out, whatever data it is given.
    """

    def __init__(self, run: TrainingRun) -> None:
        """Begin a rehearsal of a run. Raises `RunError` for one of several processes: rehearse with one."""
        if run.world > 1:
            raise RunError(
                f"the run has {run.world} ranks, and a rehearsal has one: open the run with world=1 to rehearse it"
            )
        self._temporary = tempfile.TemporaryDirectory(prefix="rehearsal-")
        folder = Path(self._temporary.name)
        (normaliser, *more) = {*run._normalisers}
        super().__init__(
            run._run.document if run.certificate is None else run.certificate,
            folder,
            records=run.records,
            clip_norm=run.clip_norm,
            also_clip_norms=run.also_clip_norms,
            normaliser=None if more else normaliser,
            attribution=run._attribution,
            mark=folder / "mark",
            uncertified=run.certificate is None,
        )

    def close(self) -> None:
        """Close the rehearsal, and delete its folder."""
        super().close()
        self._temporary.cleanup()

    def _summed(self, arrays: dict[str, Array]) -> dict[str, Array]:
        """Return zeros of the same shapes and types."""
        return {name: np.zeros_like(array) for name, array in arrays.items()}
