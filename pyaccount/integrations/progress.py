"""How private a run is so far, in numbers for the logs of a framework."""

from __future__ import annotations

from pyaccount.errors import RunError
from pyaccount.integrations.facts import bounds
from pyaccount.integrations.tracked import SO_FAR
from pyaccount.training import TrainingRun

#: The kind of a guarantee without samples.
PROVEN = "deterministic"


class Progress:
    """Upper bounds on ε of the rounds that a run has released, each computed once."""

    def __init__(self, run: TrainingRun) -> None:
        """Take an open run. Raises `RunError` for anything else, such as a certificate or its file, which are not opened yet."""
        if not isinstance(run, TrainingRun):
            raise RunError(
                f"run is a {type(run).__name__}, and an open run is needed: give pyaccount.TrainingRun(certificate, folder, "
                "records=len(data), clip_norm=…)"
            )
        self._run = run
        self._found: dict[int, float] = {}

    def epsilon(self) -> float | None:
        """Return an upper bound on ε of the rounds so far, at the certificate's δ; None if the run has no certificate.

        After the last round it is the ε of the certificate. Before, it is the smaller one of that and of the bound for the first
        rounds of the plan. It is that of the certificate throughout if the latter was certified with samples, because samples
        for every length would take minutes each. The bound for the first rounds holds if the length of the run was fixed
        beforehand; a run that is stopped because somebody looked at its releases has the guarantee of the whole plan.
        """
        run = self._run
        if run.certificate is None:
            return None
        whole, done = run.certificate.epsilon, run.released
        if done >= run.rounds or run.certificate.data.guarantee.kind != PROVEN:
            return whole
        if done not in self._found:
            self._found[done] = min(whole, run.accountant().epsilon_spent())
        return self._found[done]

    def logged(self) -> dict[str, float]:
        """Return what logs contain, by the names that trackers get too (`tracked`).

        `epsilon_so_far_upper` and `delta_upper` hold together for the rounds so far, `epsilon_upper` and `delta_upper` for the
        whole plan. The result is empty for a run without a certificate, about which nothing is claimed.
        """
        epsilon, certificate = self.epsilon(), self._run.certificate
        if epsilon is None or certificate is None:
            return {}
        stated = bounds(certificate.data)
        return {SO_FAR: epsilon, "epsilon_upper": stated["epsilon_upper"], "delta_upper": stated["delta_upper"]}
