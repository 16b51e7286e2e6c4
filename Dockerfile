# The assistant as a service. Models come with the Python packages: the running container needs no network for them.
FROM python:3.11-slim

WORKDIR /app
# Without this line pip brings gigabytes of CUDA libraries.
RUN pip install --no-cache-dir "torch>=2.6,<2.14" --index-url https://download.pytorch.org/whl/cpu
COPY pyproject.toml README.md LICENSE ./
COPY labsupport labsupport
RUN pip install --no-cache-dir ".[server]" && rm -rf build *.egg-info labsupport
COPY corpus corpus

RUN useradd --system --uid 10001 lab && mkdir /data && chown lab /data
USER lab
EXPOSE 8000
HEALTHCHECK --start-period=90s --interval=30s --timeout=10s \
  CMD python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=8)"
ENTRYPOINT ["python", "-m", "labsupport"]
CMD ["serve", "--host", "0.0.0.0", "--index", "/data/index.sqlite"]
