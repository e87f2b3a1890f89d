import { randomUUID } from 'node:crypto';
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';

const refusals: Readonly<Record<string, { status: number; code: string; detail: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    code: 'headers_too_large',
    detail: 'the headers are larger than 16 kB together',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    code: 'request_too_slow',
    detail: 'the request did not arrive in time',
  },
};
const malformed = { status: 400, code: 'malformed_message', detail: 'the message is not valid HTTP/1.1' };

const lingerMs = 1000;

/** The answer to a request whose target or Host is none, which no route ever sees. */
export function malformedResponse(): Response {
  const { body, headers } = answer(malformed);
  return new Response(body, { status: malformed.status, headers });
}

/**
 * Answers what Node refuses before it is a request with problem details as well, and closes the connection.
 * Where an answer has begun, the connection is cut: nothing may look like its end.
 */
export function refuseMalformed(server: Server): void {
  const open = new WeakMap<Duplex, Set<ServerResponse>>();
  server.on('request', ({ socket }, outgoing) => {
    const answers = open.get(socket) ?? new Set();
    open.set(socket, answers.add(outgoing));
    outgoing.once('close', () => answers.delete(outgoing));
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const begun = [...(open.get(socket) ?? [])].some(({ headersSent }) => headersSent);
    if (begun || !socket.writable) return void socket.destroy();
    const refusal = refusals[error.code ?? ''] ?? malformed;
    const { body, headers } = answer(refusal);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.end(`HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}\r\n${lines.join('')}\r\n${body}`);
    linger(socket);
  });
}

/**
 * Reads on for a moment what the caller is still sending: closing a connection with unread bytes resets it, and
 * the caller would lose the answer.
 */
function linger(socket: Duplex): void {
  socket.removeAllListeners('data');
  socket.on('data', () => {});
  const cut = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('end', () => socket.destroy());
  socket.once('close', () => clearTimeout(cut));
}

function answer(refusal: typeof malformed): { body: string; headers: Record<string, string> } {
  const id = randomUUID();
  const title = STATUS_CODES[refusal.status];
  const body = JSON.stringify({ type: 'about:blank', title, ...refusal, request_id: id });
  const headers = {
    'Content-Type': 'application/problem+json',
    'Content-Length': String(Buffer.byteLength(body)),
    'X-Request-Id': id,
    Connection: 'close',
  };
  return { body, headers };
}
