import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

// The least that Node.js can do for an answer: it reads the body and writes as many bytes as it was started with.
const answer = Buffer.alloc(Number(process.argv[2]), 'a');
const headers = { 'content-type': 'application/json', 'content-length': answer.length };
const server = createServer(async (incoming, outgoing) => {
  await text(incoming);
  outgoing.writeHead(200, headers).end(answer);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
process.stderr.write(`listening on http://127.0.0.1:${port}\n`);
