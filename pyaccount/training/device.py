"""Noise by the generator of the device that PyTorch computes on, for runs that ask for it.

It is drawn faster than from the run's key, by a generator that is made for statistics and not against attackers, whose seed has
64 bits. The record says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyaccount.errors import DomainError, MissingExtraError, PlanExceededError
from pyaccount.training.noise.nonces import WITHOUT_NONCE, coordinates_of

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise MissingExtraError.of("torch", "pyaccount.training.device needs it") from error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pyaccount.training.key import RunKey
    from pyaccount.training.noise import Noise

#: Devices whose generator takes a seed of 64 bits and draws in double precision: Philox. That of processors takes 32 bits of a
#: seed, so that all its noises can be tried out, and others lack double precision.
SEEDED = ("cuda",)


class DeviceNoise:
    """`TrainingRun(…, device_noise=DeviceNoise("cuda"))`: the noise of the sums is drawn by that device's own generator.

    It is seeded once for each round, from the run's key and the round's nonce, and then draws the round's row of all arrays. A
    run is taken up where the same numbers come out: with the same PyTorch, on the same kind of device. Anything else is refused.

    What follows from a seed is as secret as 64 bits can be: whoever tries 2⁶⁴ seeds, or finds more in the generator's output
    than is known, can subtract the noise. Of T rounds two have one seed with a probability below T²·2⁻⁶⁵. Box-Muller's radii
    have 53 bits, so that no number is beyond 8.7 standard deviations.
    """

    def __init__(self, device: str | torch.device) -> None:
        """Raises `DomainError` for a device whose generator takes too short a seed."""
        self._device = torch.device(device)
        if self._device.type not in SEEDED:
            raise DomainError(
                f"noise is not drawn by the generator of {self._device.type}: it takes a seed of 32 bits, or has no double "
                f"precision. Leave device_noise out, which draws from the run's key, or use one of {', '.join(SEEDED)}"
            )

    @property
    def name(self) -> str:
        """The generator, with all that its numbers depend on."""
        model = torch.cuda.get_device_name(self._device) if self._device.type == "cuda" else self._device.type
        return f"PyTorch's generator on {model}, torch {torch.__version__}, a seed of 64 bits"

    def stream(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey) -> DeviceRows:
        """The rows of this noise for arrays of these shapes."""
        return DeviceRows(noise, shapes, key, self._device)


class DeviceRows:
    """Rows of C⁻¹Z on a device, in double precision, as `NoiseStream` has them of the run's key.

    Each row of Z has a seed of its own, by which matrices that need earlier rows of Z draw them once more.
    """

    def __init__(self, noise: Noise, shapes: Mapping[str, tuple[int, ...]], key: RunKey, device: torch.device) -> None:
        """For `DeviceNoise.stream`."""
        self._inverse, self._scale, self._rounds = noise.inverse, noise.standard_deviation, noise.rounds
        self._shapes, self._device, self._key = dict(sorted(shapes.items())), device, key
        self._begin()

    @property
    def round(self) -> int:
        """The round whose rows `next` draws."""
        return self._round

    def next(self, nonce: bytes) -> dict[str, NDArray[Any]]:
        """Draw the rows of this round with its nonce. Raises `PlanExceededError` after the last one."""
        if self._round >= self._rounds:
            raise PlanExceededError(f"the noise of all {self._rounds} rounds has been drawn")
        row = self._inverse.row(self._round)
        self._states.append(self._state(nonce))
        found = self._zeros()
        # Without nonces the generator has to pass this round's row of Z, whether or not that is in the sum.
        for number, weight in sorted({self._round: 0.0, **dict(row.fresh)}.items()):
            self._generator.set_state(self._states[number])
            for name, drawn in self._drawn():
                found[name] += weight * self._scale * drawn
        for coefficient, kept in zip(row.coefficients, self._memory, strict=False):
            for name in found:
                found[name] += coefficient * kept[name]
        self._remember(found)
        self._round += 1
        return {name: tensor.to("cpu", copy=True).numpy() for name, tensor in found.items()}

    def seek(self, round: int, nonces: Sequence[bytes]) -> None:
        """Go to a round: those before are drawn again by their nonces, from the beginning if the stream is beyond."""
        if not 0 <= round <= self._rounds:
            raise DomainError(f"the rounds are numbered from 0 to {self._rounds - 1}: there is no round {round}")
        if round < self._round:
            self._begin()
        while self._round < round:
            self.next(nonces[self._round])

    def _begin(self) -> None:
        self._round = 0
        self._generator = torch.Generator(self._device)
        self._generator.manual_seed(_seed(self._key))
        #: Of the generator, before it draws the row of Z of each round.
        self._states: list[Tensor] = []
        decays = self._inverse.decays
        #: Rows before, the newest first, or their running sums.
        self._memory = [] if decays is None else [self._zeros() for _ in decays]

    def _state(self, nonce: bytes) -> Tensor:
        """The state of the generator from which the row of Z of this round is drawn.

        In a record of version 1 rounds have no nonces: there the generator was seeded once, and draws row after row.
        """
        if nonce != WITHOUT_NONCE:
            self._generator.manual_seed(_seed(self._key.derive("round", self._round, *coordinates_of(nonce))))
        return self._generator.get_state()

    def _zeros(self) -> dict[str, Tensor]:
        return {
            name: torch.zeros(shape, dtype=torch.float64, device=self._device) for name, shape in self._shapes.items()
        }

    def _drawn(self) -> list[tuple[str, Tensor]]:
        """A row of Z with entries of unit variance, array after array."""
        options: dict[str, Any] = {"generator": self._generator, "dtype": torch.float64, "device": self._device}
        return [(name, torch.randn(shape, **options)) for name, shape in self._shapes.items()]

    def _remember(self, found: dict[str, Tensor]) -> None:
        decays = self._inverse.decays
        if decays is None:
            self._memory = [found, *self._memory][: self._inverse.kept]
            return
        for decay, sums in zip(decays, self._memory, strict=True):
            for name, tensor in found.items():
                sums[name].mul_(decay).add_(tensor)


def _seed(key: RunKey) -> int:
    return int.from_bytes(key.reveal()[:8], "little")
