"""`DeviceNoise`, which draws noise with the generator of the device on which PyTorch computes, for runs that ask for it.

This is faster than drawing from the run's key. But the generator is made for statistics, not to resist attackers, and its seed
has only 64 bits. The record says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyaccount.errors import DomainError, PlanExceededError, importing

with importing("torch", by=__name__):
    import torch
    from torch import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.training.key import RunKey
    from pyaccount.training.noise import Noise

#: Devices whose generator takes a seed of 64 bits and draws in double precision (Philox). The generator of CPUs uses only 32 bits
#: of a seed, so an attacker could try all of them; other devices lack double precision.
SEEDED = ("cuda",)


class DeviceNoise:
    """A noise source that uses a device's own generator: `TrainingRun(…, device_noise=DeviceNoise("cuda"))`.

    The generator is seeded once for each round, from the run's key and the round's nonce, and then draws the round's row of all
    arrays. A run can only be continued where the same numbers come out: with the same PyTorch, on the same kind of device.
    Anything else is refused.

    The noise is only as secret as its seed of 64 bits. Anyone who tries 2⁶⁴ seeds, or finds an unknown weakness in the
    generator's output, can subtract the noise. The probability that two of T rounds have the same seed is below T²·2⁻⁶⁵. The
    radii of the Box-Muller transform have 53 bits, so no number exceeds 8.7 standard deviations.
    """

    def __init__(self, device: str | torch.device) -> None:
        """Use the generator of this device. Raises `DomainError` if it takes too short a seed or lacks double precision."""
        self._device = torch.device(device)
        if self._device.type not in SEEDED:
            raise DomainError(
                f"noise is not drawn by the generator of {self._device.type}: it takes a seed of 32 bits, or has no double "
                f"precision. Omit device_noise to draw from the run's key, or use one of: {', '.join(SEEDED)}"
            )

    @property
    def name(self) -> str:
        """The name of the generator in the record, with everything on which its numbers depend."""
        model = torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else self._device.type
        return f"PyTorch's generator on {model}, torch {torch.__version__}, a seed of 64 bits"

    def stream(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey) -> DeviceRows:
        """Return a stream of the rows of this noise for arrays of these shapes, seeded from `key`."""
        return DeviceRows(noise, shapes, key, self._device)


class DeviceRows:
    """A stream of rows of C⁻¹Z on a device, in double precision; `NoiseStream` is its counterpart for the run's key.

    Each row of Z has a seed of its own, so matrices that need earlier rows of Z can draw them once more.
    """

    def __init__(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey, device: torch.device) -> None:
        """Make the stream at round 0; called by `DeviceNoise.stream`."""
        self._noise, self._inverse, self._rounds = noise, noise.inverse, noise.rounds
        self._shapes, self._device, self._key = dict(sorted(shapes.items())), device, key
        self._begin()

    @property
    def round(self) -> int:
        """The round whose rows `next` draws, counted from 0."""
        return self._round

    def next(self, nonce: bytes) -> dict[str, NDArray[Any]]:
        """Draw the rows of this round with its nonce. Raises `PlanExceededError` after the last one."""
        if self._round >= self._rounds:
            raise PlanExceededError(
                f"the noise of all {self._rounds} rounds has been drawn, and a further one is not certified"
            )
        row = self._inverse.row(self._round)
        self._states.append(self._state(nonce))
        rows = self._zeros()
        for number, weight in sorted(row.fresh):
            self._generator.set_state(self._states[number])
            for name, drawn in self._drawn():
                rows[name] += weight * self._noise.deviation(number) * drawn
        for coefficient, kept in zip(row.coefficients, self._memory, strict=False):
            for name in rows:
                rows[name] += coefficient * kept[name]
        self._remember(rows)
        self._round += 1
        return {name: tensor.to("cpu", copy=True).numpy() for name, tensor in rows.items()}

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round by drawing all rounds before it again with their nonces, from round 0 if the stream is past it."""
        if not 0 <= round <= self._rounds:
            raise DomainError(f"the rounds are numbered from 0 to {self._rounds - 1}: there is no round {round}")
        if round < self._round:
            self._begin()
        while self._round < round:
            self.next(nonces[self._round])

    def _begin(self) -> None:
        self._round = 0
        self._generator = torch.Generator(self._device)
        #: The states of the generator before it draws the row of Z of each round.
        self._states: list[Tensor] = []
        decays = self._inverse.decays
        #: The kept rows, the newest first, or the running sums.
        self._memory = [] if decays is None else [self._zeros() for _ in decays]

    def _state(self, nonce: bytes) -> Tensor:
        """Return the state of the generator from which the row of Z of this round is drawn."""
        secret = self._key.derive("round", self._round, nonce.hex())
        self._generator.manual_seed(int.from_bytes(secret.reveal()[:8], "little"))
        return self._generator.get_state()

    def _zeros(self) -> dict[str, Tensor]:
        return {
            name: torch.zeros(shape, dtype=torch.float64, device=self._device) for name, shape in self._shapes.items()
        }

    def _drawn(self) -> list[tuple[str, Tensor]]:
        """Draw a row of Z with entries of unit variance, array by array."""
        options: dict[str, Any] = {"generator": self._generator, "dtype": torch.float64, "device": self._device}
        return [(name, torch.randn(shape, **options)) for name, shape in self._shapes.items()]

    def _remember(self, rows: dict[str, Tensor]) -> None:
        decays = self._inverse.decays
        if decays is None:
            self._memory = [rows, *self._memory][: self._inverse.kept]
            return
        for decay, sums in zip(decays, self._memory, strict=True):
            for name, tensor in rows.items():
                sums[name].mul_(decay).add_(tensor)
