import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, type Socket } from 'node:net';
import type { MiddlewareHandler } from 'hono';
import { addNetwork } from '../../config/networks.ts';
import type { HttpEnv } from './env.ts';

export interface Caller {
  readonly address: string;
  /** Whether the connection is a trusted proxy's. */
  readonly proxied: boolean;
}

/**
 * The address of the caller: that of the connection, or, where a trusted proxy made the connection, the last address in
 * X-Forwarded-For that is not a trusted proxy's. The caller may have invented the addresses before it.
 */
export function callersBehind(trustedProxies: readonly string[]): (incoming: IncomingMessage) => Caller {
  const trusted = new BlockList();
  for (const network of trustedProxies) addNetwork(trusted, network);
  const isTrusted = (address: string) => trusted.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4');
  return function callerOf(incoming) {
    let address = addressOf(incoming.socket);
    if (trustedProxies.length === 0) return { address, proxied: false };
    const proxied = isTrusted(address);
    const hops = String(incoming.headers['x-forwarded-for'] ?? '').split(',');
    while (isTrusted(address)) {
      const before = plain(hops.pop()?.trim() ?? '');
      if (before === undefined) break;
      address = before;
    }
    return { address, proxied };
  };
}

/** The address at the other end of a connection. */
export function addressOf(socket: Socket): string {
  return plain(socket.remoteAddress ?? '') ?? 'unknown';
}

/** An address without port, brackets and zone, IPv4 in its own notation; undefined if the text is no address. */
function plain(text: string): string | undefined {
  const [, bracketed, withPort] = /^\[(.+)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text) ?? [];
  const address = (bracketed ?? withPort ?? text).replace(/%.*$/, '').replace(/^::ffff:(?=[\d.]+$)/i, '');
  return isIP(address) === 0 ? undefined : address;
}

/** What failed logins and connections are counted by: an IPv4 address, or the /64 network of an IPv6 address, which one caller may own. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const after = groups(tail ?? '');
  const zeros = tail === undefined ? 0 : 8 - groups(head).length - after.length;
  const all = [...groups(head), ...Array<string>(zeros).fill('0'), ...after];
  return `${all.slice(0, 4).join(':')}::/64`;
}

/** Notes who asks, and the trace that a trusted proxy began. */
export function noteCaller(callerOf: (incoming: IncomingMessage) => Caller): MiddlewareHandler<HttpEnv> {
  return (c, next) => {
    const { address, proxied } = callerOf(c.env.incoming);
    c.set('address', address);
    // ClickHouse may keep what it traces, so that not everybody can ask for it.
    c.set('traceparent', proxied ? c.req.header('traceparent') : undefined);
    return next();
  };
}
