"""The matrices: how the noise of the rounds is correlated."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pyaccount.document.kinds import Kinds, Section


class Identity(Section):
    """The identity: independent noise in every round, which is plain DP-SGD."""

    kind: Literal["identity"] = Field(description="Independent noise in every round (plain DP-SGD).")


Matrix = Annotated[Identity, Kinds("matrix", (Identity,))]
