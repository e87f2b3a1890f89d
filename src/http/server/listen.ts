import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
// Its marker has to be made before the listener puts a Response of its own in the place of Node's: that one would be sent.
import '@hono/node-server/utils/response';
import type { Hono } from 'hono';
import type { Logger } from 'pino';
import { ConfigError } from '../../config/config.ts';
import type { HttpEnv } from '../request/env.ts';
import { type ConnectionLimits, Connections } from './connections.ts';
import { refuseMalformed, responseToFailure } from './malformed.ts';

/**
 * Idle connections outlast the 60 s of common load balancers, so that the balancer closes first and never sends into a
 * closing connection.
 */
const serverOptions = {
  headersTimeout: 10_000,
  connectionsCheckingInterval: 2_000,
  keepAliveTimeout: 65_000,
  // Node's own answer to a request without Host has no body.
  requireHostHeader: false,
};

export interface ListenOptions extends ConnectionLimits {
  readonly host: string;
  readonly port: number;
  /** The variable that says the port. */
  readonly setting?: string;
  /** How long a request may take to arrive; absent: as long as two dates need. */
  readonly requestTimeoutMs?: number;
}

export interface Listening {
  readonly url: string;
  readonly connections: Connections;
}

/**
 * Serves the app on an address of this machine; port 0 takes a free one.
 * @throws {ConfigError} when this machine has no such address, and an error when the port is in use
 */
export function listen(
  app: Hono<HttpEnv>,
  { host, port, setting = 'PORT', requestTimeoutMs = 30_000, ...limits }: ListenOptions,
  log: Logger,
): Promise<Listening> {
  const server = createServer({ ...serverOptions, requestTimeout: requestTimeoutMs });
  const errorHandler = responseToFailure((err, request) => log.error({ err, request }, 'request failed'));
  // The host of requests that name none, as health checks over HTTP/1.0. Node.js itself would read the rest of a body for as
  // long as a request may take.
  const options = { hostname: 'localhost', errorHandler, autoCleanupIncoming: false };
  const serve = getRequestListener(app.fetch, options);
  const connections = new Connections(server, limits, log, serve);
  refuseMalformed(server, connections);
  // A service may ignore an expectation that it does not know (RFC 9110 §10.1.1).
  server.on('checkExpectation', (incoming, outgoing) => server.emit('request', incoming, outgoing));
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(readable(error, host, `${setting}=${port}`)),
    );
    server.listen(port, host, () => {
      const address = server.address();
      const bound = address !== null && typeof address === 'object' ? address.port : port;
      resolve({ connections, url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}` });
    });
  });
}

/** The failure in words that name the setting. A port in use is no wrong value, because it may be free in a moment. */
function readable(error: NodeJS.ErrnoException, host: string, port: string): Error {
  switch (error.code) {
    case 'EADDRINUSE':
      return new Error(`${port}: is in use on ${host}; stop the other process or choose another port`);
    case 'EACCES':
      return new ConfigError(`${port}: needs privileges; choose a port above 1023`);
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return new ConfigError(`HOST=${host}: is not an address of this machine`);
    default:
      return error;
  }
}
