# tracetui without an installation; traces are mounted read-only:
#   docker build -t tracetui .
#   docker run --rm -it --read-only --tmpfs /tmp --network none -v "$PWD/traces:/traces:ro" tracetui
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src src
COPY share share
RUN python -m venv /opt/tracetui && /opt/tracetui/bin/pip install --no-cache-dir .

FROM python:3.13-slim
COPY --from=build /opt/tracetui /opt/tracetui
RUN useradd --create-home --uid 1000 tracetui
USER 1000
# Settings and cache are in /tmp: with `--read-only --tmpfs /tmp` nothing else is written.
ENV XDG_STATE_HOME=/tmp/state XDG_CACHE_HOME=/tmp/cache PYTHONDONTWRITEBYTECODE=1 \
    TERM=xterm-256color COLORTERM=truecolor LANG=C.UTF-8
WORKDIR /traces
ENTRYPOINT ["/opt/tracetui/bin/tracetui"]
CMD ["/traces"]
