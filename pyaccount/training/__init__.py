"""Training runs that do what their certificate assumes: batches, correlated noise and a record of what was released.

The room takes a certificate, or a document without a blank, and a secret key. It gives exactly the run that the certificate
is about: `batches` draws the records of each round, `noise` draws the rows of C⁻¹Z that are added to the sums, and `key`
holds the secret from which both are drawn. Batches and noise are functions of the key and of their coordinates. The room
knows certificates and documents, but not how they were computed. It needs numpy and the compiled core; only the modules
`torch`, `clipping`, `precision`, `unchanged`, `device` and `jax` need a deep-learning framework.
"""

from __future__ import annotations

from pyaccount.training.key import RunKey
from pyaccount.training.run import TrainingRun

__all__ = ["RunKey", "TrainingRun"]
