import { randomUUID } from 'node:crypto';
import { type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { Problem, problemBody, problemStatus } from '../problems.ts';
import { type Connections, linger } from './connections.ts';

const refusals: Readonly<Record<string, Problem>> = {
  HPE_HEADER_OVERFLOW: new Problem('headers_too_large', 'the headers are larger than 16 kB together'),
  ERR_HTTP_REQUEST_TIMEOUT: new Problem('request_too_slow', 'the request did not arrive in time'),
};
const malformed = new Problem('malformed_message', 'the message is not valid HTTP/1.1');

/** How long the rest of such a message is read; a caller that is slow on purpose gains no more. */
const lingerMs = 5_000;

/** The response to a request with an invalid target or Host header; such a request reaches no route. */
export function malformedResponse(): Response {
  const { status, body, headers } = answer(malformed);
  return new Response(body, { status, headers });
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
    else {
      const { status, body, headers } = answer(refusals[error.code ?? ''] ?? malformed);
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`);
    }
    socket.removeAllListeners('data');
    socket.on('data', () => {});
    linger(socket, lingerMs);
  });
}

function answer(problem: Problem): { status: number; body: string; headers: Record<string, string> } {
  const id = randomUUID();
  const body = problemBody(problem, id);
  const headers = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': id,
    Connection: 'close',
  };
  return { status: problemStatus[problem.code], body, headers };
}
