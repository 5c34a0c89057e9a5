# The command pyaccount in an image: docker build --tag pyaccount:0.1.0 .
# It runs as a user without rights, and writes nothing: docker run --rm --read-only --volume "$PWD:/work:ro" pyaccount:0.1.0 check …
# The bases are pinned by version; docs/publishing.md says how to pin them by digest.

FROM rust:1.95.0-slim-bookworm AS build
# The packages of a release of Debian change only for security, and old versions disappear: no version is pinned.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY .ci/image/build.lock .ci/image/build.lock
RUN python3 -m venv /build \
    && /build/bin/python -m pip install --no-cache-dir --require-hashes --requirement .ci/image/build.lock
COPY . .
RUN /build/bin/maturin build --release --locked --interpreter python3 --out /wheels

FROM python:3.13.9-slim-bookworm AS install
COPY .ci/image/requirements.lock /requirements.lock
RUN python -m venv /opt/pyaccount \
    && /opt/pyaccount/bin/python -m pip install --no-cache-dir --require-hashes --requirement /requirements.lock
COPY --from=build /wheels /wheels
RUN /opt/pyaccount/bin/python -m pip install --no-cache-dir --no-deps --no-index --find-links /wheels pyaccount-dp \
    && /opt/pyaccount/bin/python -m pip uninstall --yes pip

FROM python:3.13.9-slim-bookworm
LABEL org.opencontainers.image.title="pyaccount" \
    org.opencontainers.image.description="A differential-privacy accountant: YAML mechanism documents in, proven certificates out." \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="0.1.0"
COPY --from=install /opt/pyaccount /opt/pyaccount
ENV PATH="/opt/pyaccount/bin:$PATH" \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
WORKDIR /work
USER 10001:10001
ENTRYPOINT ["pyaccount"]
CMD ["--help"]
