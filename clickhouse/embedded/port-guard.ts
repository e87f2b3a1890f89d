/**
 * Keeps a loopback port from everybody else for as long as this process lives, also while the engine, which the same user
 * runs with SO_REUSEPORT, is away: who listened there in its stead would be sent the passwords. The socket that does so is
 * bound and does not listen. Only on Linux, where a port is shared with sockets of the same user alone.
 * @throws when the port cannot be kept
 */
export async function guardPort(port: number): Promise<void> {
  if (process.platform !== 'linux') return;
  const { DataType, load, open } = await import('ffi-rs');
  open({ library: 'libc', path: '' });
  const { I32, U8Array } = DataType;
  const socket = load({
    library: 'libc',
    funcName: 'socket',
    retType: I32,
    paramsType: [I32, I32, I32],
    paramsValue: [afInet, sockStream | sockCloexec, 0],
  });
  const on = Buffer.alloc(4);
  on.writeInt32LE(1);
  const shared = load({
    library: 'libc',
    funcName: 'setsockopt',
    retType: I32,
    paramsType: [I32, I32, I32, U8Array, I32],
    paramsValue: [socket, solSocket, soReuseport, on, on.length],
  });
  const address = Buffer.alloc(16);
  address.writeUInt16LE(afInet, 0);
  address.writeUInt16BE(port, 2);
  address.set([127, 0, 0, 1], 4);
  const bound = load({
    library: 'libc',
    funcName: 'bind',
    retType: I32,
    paramsType: [I32, U8Array, I32],
    paramsValue: [socket, address, address.length],
  });
  if (socket < 0 || shared !== 0 || bound !== 0) throw new Error(`port ${port} cannot be kept from others`);
}

// Of Linux, on x64 and arm64 alike.
const afInet = 2;
const sockStream = 1;
const sockCloexec = 0o2000000;
const solSocket = 1;
const soReuseport = 15;
