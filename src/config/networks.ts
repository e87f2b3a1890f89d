import { type BlockList, isIP } from 'node:net';

/** A network, such as `10.0.0.0/8` or `fd00::/8`, or one address. */
export type Network = string;

/** @throws what `BlockList` throws when it is neither an address nor a network */
export function addNetwork(list: BlockList, network: Network): void {
  const [address = '', bits] = network.split('/');
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (bits === undefined) list.addAddress(address, family);
  else list.addSubnet(address, bits === '' ? Number.NaN : Number(bits), family);
}
