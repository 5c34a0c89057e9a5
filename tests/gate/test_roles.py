"""What the types of a certificate's fields say: bounds are bounds, from the side that their descriptions say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from pyaccount.records.amplification import AmplificationData
from pyaccount.records.certificate import CertificateModel
from pyaccount.records.fields import WHOLE, Role, marks_of

#: The roles of fields that are described as bounds. What is about the computation is not promised, but must be as it was.
BOUNDS = {"Upper bound": {Role.UPPER, Role.CONTRAST, Role.LEMMA}, "Lower bound": {Role.LOWER}}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the records that a field may have."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from models_in(one)


def fields_of(
    model: type[BaseModel], above: Role = Role.FOLLOWS, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, Role, str]]:
    """Yield the path, the role and the description of every field that is no record."""
    for name, field in model.model_fields.items():
        role = above if above in WHOLE else marks_of(model)[name].role or above
        below = list(models_in(field.annotation))
        for one in below:
            yield from fields_of(one, role, (*path, name))
        if not below:
            yield ".".join((*path, name)), role, field.description or ""


@pytest.mark.parametrize("model", [CertificateModel, AmplificationData])
def test_what_is_described_as_a_bound_is_compared_as_one(model: type[BaseModel]) -> None:
    found = [one for one in fields_of(model) if not one[0].startswith("evidence")]
    assert len(found) > 10
    for path, role, description in found:
        for words, roles in BOUNDS.items():
            assert not description.startswith(words) or role in roles, path
    # And the other way round: nothing else promises anything.
    promised = {path for path, role, _ in found if role in (Role.UPPER, Role.LOWER)}
    described = {path for path, _, words in found if words.startswith(("Upper bound", "Lower bound", "Upper bounds"))}
    contrasts = {"unamplified.epsilon", "composed_bound.epsilon", "group_lemma.epsilon"}
    assert promised == described - contrasts


def test_what_samples_decide_is_under_the_sampling() -> None:
    drawn = {path for path, role, _ in fields_of(CertificateModel) if role is Role.DRAWN}
    outside = {path for path in drawn if not path.startswith("evidence.sampling.")}
    assert outside == {
        *("evidence.within_tolerance", "profile.standard_error"),
        *(f"directions.{side}.profile.standard_error" for side in ("remove", "add")),
    }
