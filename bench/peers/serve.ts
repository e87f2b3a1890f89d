import { serve } from '@hono/node-server';
import { peers } from './list.ts';

// The process of one peer: its key in the list, then its settings as JSON.
const [, , name = '', settings = '{}'] = process.argv;
const peer = peers[name];
if (!peer) throw new Error(`there is no peer ${name}`);
const app = await peer.serve(JSON.parse(settings));
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) => {
  process.stderr.write(`listening on http://127.0.0.1:${port}\n`);
});
