# The service and the commands of adtally, for a ClickHouse server of their own: CLICKHOUSE_URL is required,
# because the embedded engine stays out of the image. Nothing is written: run it with a read-only root.
# To pin it: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:…, see docs/security.md.
ARG NODE_IMAGE=node:24-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY catalog catalog
COPY src src
COPY clickhouse clickhouse
COPY ingest ingest
# What adtally --version tells beside the version: --build-arg ADTALLY_COMMIT=$(git rev-parse HEAD)
ARG ADTALLY_COMMIT
RUN npm run build

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --omit=dev

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="adtally" \
      org.opencontainers.image.description="Ad performance reports at the speed of the database" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080
WORKDIR /app
COPY package.json README.md ./
# For operators, as adtally --help says.
COPY docs docs
COPY examples examples
COPY deploy deploy
COPY clickhouse/config clickhouse/config
COPY --from=dependencies /app/node_modules node_modules
COPY --from=build /app/dist dist
USER node
EXPOSE 8080
# The process answers; whether the store does is /readyz, which a restart would not repair.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + process.env.PORT + '/healthz').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "/app/dist/src/cli.js"]
CMD ["serve"]
