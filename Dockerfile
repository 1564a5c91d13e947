# The package in an image: `docker build -t alphagateau .` for CPUs, with `--build-arg EXTRA=[cuda]` for CUDA 12, which is
# the image that experiments/jobset.yaml names. Engines come with it.
FROM python:3.11-slim
ARG EXTRA=""
RUN apt-get update && apt-get install -y --no-install-recommends stockfish fairy-stockfish && rm -rf /var/lib/apt/lists/*
ENV PATH=/usr/games:$PATH PIP_NO_CACHE_DIR=1
WORKDIR /opt/alphagateau
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY alphagateau alphagateau
COPY experiments experiments
RUN pip install -c constraints.txt ".${EXTRA}"
WORKDIR /runs
ENTRYPOINT ["alphagateau"]
CMD ["--help"]
