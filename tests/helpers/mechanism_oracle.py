"""What a certificate must say about a body that releases something else than training, from its document as plain data."""

from collections.abc import Iterator

from pyaccount.certificate.consistency import at, is_number

SOLVE = "solve"
#: The keys of bodies inside of a body.
WITHIN = ("phases", "parallel")


def released(body: object, factor: float | None) -> tuple[object, dict[str, object]]:
    """Return the kind of what a body without training releases, and what is stated of it: its keys, or the phases inside.

    Bodies inside of it are one after the other (`phases`), on disjoint parts (`parallel`), or the best of several runs of them
    is released (`select`). A factor of the noise of all phases is stated if noise inside is multiplied by it.
    """
    mechanism = at(body, "mechanism")
    within = next((key for key in WITHIN if at(body, key) is not None), None)
    kind, stated = at(mechanism, "kind"), dict(mechanism) if isinstance(mechanism, dict) else {}
    stated.pop("kind", None)
    if within is not None:
        kind, stated = within, {within: at(body, within)}
        if at(body, "select") is not None:
            kind, stated = "select", {"select": at(body, "select"), **stated}
        if factor != 1.0 and any(at(one, "noise", "multiplier") is not None for one in bodies_inside(body)):
            stated["noise"] = {"scale": SOLVE if factor is None else factor}
    if at(body, "sampler", "draws") == "clients":
        stated["draws"] = "clients"
    return kind, stated


def bodies_inside(body: object) -> Iterator[object]:
    """Yield the bodies inside of a body, at any depth."""
    for key in WITHIN:
        listed = at(body, key)
        for one in listed if isinstance(listed, list) else ():
            yield one
            yield from bodies_inside(one)


def filled(stated: object, written: object) -> bool:
    """Return whether two values of documents are the same but for a blank that is filled."""
    if written == SOLVE:
        return stated == SOLVE or is_number(stated)
    if isinstance(written, dict) and isinstance(stated, dict):
        return set(stated) == set(written) and all(filled(stated[key], value) for key, value in written.items())
    if isinstance(written, list) and isinstance(stated, list):
        return len(stated) == len(written) and all(map(filled, stated, written))
    return stated == written


def inner_blanks(path: str, written: object, stated: object) -> Iterator[tuple[str, float | None]]:
    """Yield the blanks of the bodies inside of a body by their paths, with what the certificate states in their place."""
    if written == SOLVE:
        yield path, float(stated) if is_number(stated) else None
    elif isinstance(written, dict):
        for key, value in written.items():
            yield from inner_blanks(f"{path}.{key}", value, at(stated, key))
    elif isinstance(written, list):
        inside = stated if isinstance(stated, list) and len(stated) == len(written) else [None] * len(written)
        for index, (value, one) in enumerate(zip(written, inside, strict=True)):
            yield from inner_blanks(f"{path}[{index}]", value, one)
