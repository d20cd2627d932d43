// What pages and the worker alike connect by.
import type { Clock, Socket } from './client';
import { subprotocol } from './protocol';

/** ownSocket connects to the server. */
export function ownSocket(): Socket {
  const { protocol, host } = globalThis.location;
  const address = `${protocol === 'https:' ? 'wss' : 'ws'}://${host}/api/live`;
  return new WebSocket(address, subprotocol) as unknown as Socket;
}

export const timers: Clock = {
  after: (milliseconds, then) => {
    const timer = setTimeout(then, milliseconds);
    return () => clearTimeout(timer);
  },
  random: Math.random,
};
