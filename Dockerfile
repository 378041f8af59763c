# syntax=docker/dockerfile:1

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p tavernkeep \
    && install -D target/release/tavernkeep /out/tavernkeep

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /data --no-create-home --shell /usr/sbin/nologin tavernkeep \
    && install -d -o tavernkeep -g tavernkeep -m 0700 /data
COPY --from=build /out/tavernkeep /usr/local/bin/tavernkeep
COPY LICENSE NOTICE /usr/share/doc/tavernkeep/
USER tavernkeep
ENV TAVERNKEEP_BIND=0.0.0.0:8080 \
    TAVERNKEEP_DATA_DIR=/data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD curl --fail --silent --show-error --output /dev/null http://127.0.0.1:8080/healthz
ENTRYPOINT ["tavernkeep"]
# The image contains no PostgreSQL. Set DATABASE_URL, or use compose.yaml.
CMD ["serve"]
