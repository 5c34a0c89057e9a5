"""The plan of a document of kind amplification, which can be run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyaccount.pages.readable import Readable
from pyaccount.plan.amplification import AmplificationPlan, compile_amplification

if TYPE_CHECKING:
    from pyaccount.certificate.amplification import AmplificationCertificate
    from pyaccount.document.amplification import Amplification
    from pyaccount.pages.page import Page


@dataclass(frozen=True, slots=True, repr=False)
class OneDrawPlan(Readable):
    """A document of kind amplification with its theorem, in `reduction`. `run` computes the effects of the draw."""

    reduction: AmplificationPlan

    def __repr__(self) -> str:
        return f"<OneDrawPlan {json.dumps(self.document.name)}: {self.reduction.subject}; nothing is computed yet>"

    @property
    def document(self) -> Amplification:
        """The document."""
        return self.reduction.document

    def page(self) -> Page:
        """Return the plan as a page; nothing is computed yet."""
        from pyaccount.certificate.report.planned import amplification_plan_page

        return amplification_plan_page(self.reduction)

    def run(self) -> AmplificationCertificate:
        """Compute how the draw changes the guarantee, at once and on this machine, and return the certificate."""
        from pyaccount.certificate.amplification import amplify

        return amplify(self.document)


def compile_one_draw(document: Amplification) -> OneDrawPlan:
    """Return the plan of a document of kind amplification. Raises `DocumentError` for what no theorem covers."""
    return OneDrawPlan(compile_amplification(document))
