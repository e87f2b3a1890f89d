import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { RequestError } from '@hono/node-server';
import { Problem, problemBody, statusOf } from '../request/problems.ts';
import { answerHeaders } from './answer-headers.ts';
import { type Connections, linger } from './connections.ts';

const refusals: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_too_slow'),
};
const malformed = new Problem('malformed_message');
const failed = new Problem(
  'internal_error',
  'the request failed; the request id finds the reason in the log',
);
const noTunnel = new Problem('method_not_allowed', 'this service is no proxy', {
  headers: { Allow: 'GET, HEAD, POST' },
});

/** How long the service reads the rest of such a message; a caller that is slow on purpose gains no more time. */
const lingerMs = 5_000;

/**
 * The response to a request that fails outside every route. A request with an invalid target or Host header reaches no
 * route, and its caller is told so. Every other failure is a fault of the service and is handed to `onFailure`.
 */
export function responseToFailure(onFailure: (error: unknown, request: string) => void) {
  return function failureResponse(error: unknown): Response {
    const asked = error instanceof RequestError;
    const { id, status, body, headers } = answer(asked ? malformed : failed);
    if (!asked) onFailure(error, id);
    return new Response(body, { status, headers });
  };
}

/**
 * Answers with problem details a message that Node.js refuses before it is a request, after the answers to everything
 * that came before it, and closes the connection. If an answer to the message has begun, the connection is destroyed:
 * nothing may look like the end of that answer. If the message was already answered, nothing more is sent.
 */
export function refuseMalformed(server: Server, connections: Connections): void {
  const refuse = (socket: Socket, problem: Problem) => {
    // The bytes that follow are malformed as well, and are not read while answers are still to come.
    socket.removeAllListeners('data');
    socket
      .on('data', () => undefined)
      .on('error', () => undefined)
      .pause();
    connections.afterAnswers(socket, () => {
      socket.resume();
      if (connections.isAnswering(socket) || !socket.writable) return void socket.destroy();
      if (connections.isAnswered(socket)) socket.end();
      else socket.end(messageOf(problem));
      linger(socket, lingerMs);
    });
  };
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket: Socket) =>
    refuse(socket, refusals[code] ?? malformed),
  );
  server.on('connect', (_, socket: Socket) => refuse(socket, noTunnel));
}

/** An answer as it goes over the wire. */
function messageOf(problem: Problem): string {
  const { status, body, headers } = answer(problem);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

function answer(problem: Problem) {
  const id = randomUUID();
  const body = problemBody(problem, id);
  const headers = {
    ...answerHeaders,
    ...problem.options.headers,
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': id,
    Connection: 'close',
  };
  return { id, status: statusOf(problem.code), body, headers };
}
