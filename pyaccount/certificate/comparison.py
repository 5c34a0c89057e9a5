"""Several certificates side by side, for choosing a sampler, and the reasons why documents have no certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pyaccount.certificate.compared import ComparedRecord, FailedRecord
from pyaccount.pages.readable import Readable, printed
from pyaccount.records.fields import OutputRecord

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.figure import Figure
    from pandas import DataFrame

    from pyaccount.pages.page import Page


class Comparison(OutputRecord, Readable):
    """Several certificates side by side."""

    pyaccount: Literal[1] = Field(description="The version of this format.")
    kind: Literal["comparison"]
    rows: list[ComparedRecord] = Field(
        description="One row for each certificate, in the order in which they were given."
    )
    failures: list[FailedRecord] = Field(
        default_factory=list, description="What has no row, and why. Each entry states its place among the rows."
    )

    def entries(self) -> Iterator[ComparedRecord | FailedRecord]:
        """Yield rows and failures in the order of the sources that were compared."""
        rows, failures = iter(self.rows), {failed.place: failed for failed in self.failures}
        for place in range(len(self.rows) + len(self.failures)):
            yield failures[place] if place in failures else next(rows)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the certificates as columns, named as the fields of `rows`. Failures are only in `failures`."""
        return {name: [getattr(row, name) for row in self.rows] for name in ComparedRecord.model_fields}

    def to_pandas(self) -> DataFrame:
        """Return the columns of `to_dict` as a pandas data frame. Raises `MissingExtraError`."""
        from pyaccount.tables import data_frame

        return data_frame(self.to_dict())

    def page(self) -> Page:
        """Return the comparison as a page, with a picture of the error against ε if one can be drawn."""
        from pyaccount.certificate.report.comparisons import comparison_page

        return comparison_page(self.rows, self.failures)

    def plot(self) -> Figure:
        """Plot the error against ε with matplotlib, labelled with σ; bars of both if all certificates have the same ε.

        Raises `DomainError` if nothing can be drawn, and `MissingExtraError`.
        """
        from pyaccount.certificate.report.comparisons import ErrorLines, errors_plot
        from pyaccount.pages.figure import figure

        return figure(errors_plot(ErrorLines.of(self.rows)))


def comparison_text(data: Comparison, form: str) -> str:
    """Return the comparison as text, markdown, json or html."""
    return data.to_json() if form == "json" else printed(data.page(), form)
