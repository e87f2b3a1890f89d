import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { RequestError } from '@hono/node-server';
import { Problem, problemBody, problemStatus } from '../problems.ts';
import { answerHeaders } from './answer-headers.ts';
import { type Connections, linger } from './connections.ts';

const refusals: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large', 'the headers are larger than 16 kB together'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_too_slow', 'the request did not arrive in time'),
};
const malformed = new Problem('malformed_message', 'the message is not valid HTTP/1.1');
const failed = new Problem(
  'internal_error',
  'the request failed; the request id finds the reason in the log',
);
const noTunnel = new Problem('method_not_allowed', 'this service is no proxy', {
  headers: { Allow: 'GET, HEAD, POST' },
});

/** How long the rest of such a message is read; a caller that is slow on purpose gains no more. */
const lingerMs = 5_000;

/**
 * The response to a request that fails outside every route: with an invalid target or Host header it reaches none, and
 * the caller is told. Whatever else fails is our own fault, and is handed to `onFailure`.
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
 * Answers with problem details also what Node.js refuses before it is a request, and closes the connection. If an
 * answer has begun, the connection is destroyed: nothing may look like its end. If the request was already answered,
 * there is nothing more to send.
 */
export function refuseMalformed(server: Server, connections: Connections): void {
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    if (connections.isAnswering(socket) || !socket.writable) return void socket.destroy();
    if (connections.isAnswered(socket)) socket.end();
    else socket.end(messageOf(refusals[error.code ?? ''] ?? malformed));
    socket.removeAllListeners('data');
    socket.on('data', () => {});
    linger(socket, lingerMs);
  });
  server.on('connect', (_, socket: Socket) => {
    if (connections.isAnswering(socket)) return void socket.destroy();
    socket.on('error', () => undefined).end(messageOf(noTunnel));
    linger(socket.resume(), lingerMs);
  });
}

/** An answer as it goes over the wire. */
function messageOf(problem: Problem): string {
  const { status, body, headers } = answer(problem);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`;
}

function answer(problem: Problem): {
  id: string;
  status: number;
  body: string;
  headers: Record<string, string>;
} {
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
  return { id, status: problemStatus[problem.code], body, headers };
}
