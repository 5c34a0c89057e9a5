"""What all tests share: examples of properties may take as long as a busy machine needs."""

from __future__ import annotations

from hypothesis import settings

# A deadline would assert timings.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
