# The hook service. Build: docker build -t tapp-hooks:dev .
FROM python:3.11.14-slim-bookworm AS build
COPY requirements.txt /
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --only-binary=:all: -r /requirements.txt

FROM python:3.11.14-slim-bookworm
# glibc gives large request buffers back to the kernel and fetches them anew unless told otherwise.
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_TRIM_THRESHOLD_=134217728 \
    MALLOC_MMAP_THRESHOLD_=33554432 \
    HOST=0.0.0.0 \
    PORT=8080
COPY --from=build /venv /venv
WORKDIR /app
COPY gunicorn.conf.py ./
COPY tapp tapp
COPY hooks hooks
USER 65532:65532
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=3s CMD ["python", "-m", "hooks.healthcheck"]
CMD ["gunicorn", "hooks.app:create_app()"]
