# The hook service. Build: docker build -t tapp-hooks:dev .
FROM python:3.14.6-slim-trixie AS build
COPY requirements.txt /
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --only-binary=:all: --require-hashes -r /requirements.txt

FROM python:3.14.6-slim-trixie
# One arena for all of glibc's threads, and large request buffers that are kept between calls but
# given back above 32 MiB: measured in tests/bench/README.md.
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_TRIM_THRESHOLD_=33554432 \
    MALLOC_MMAP_THRESHOLD_=33554432 \
    MALLOC_ARENA_MAX=1 \
    HOST=:: \
    PORT=8080
COPY --from=build /venv /venv
WORKDIR /app
COPY gunicorn.conf.py ./
COPY tapp tapp
COPY hooks hooks
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=6s CMD ["python", "-m", "hooks.service.healthcheck"]
CMD ["python", "-m", "hooks"]
