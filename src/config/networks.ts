import { type BlockList, isIP } from 'node:net';

/**
 * @param network such as `10.0.0.0/8` or `fd00::/8`, or one address
 * @throws what `BlockList` throws when it is neither
 */
export function addNetwork(list: BlockList, network: string): void {
  const [, address = '', bits] = /^([^/]+)(?:\/(\d+))?$/.exec(network) ?? [];
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, Number(bits), family);
}
