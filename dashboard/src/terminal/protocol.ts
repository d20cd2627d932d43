// Messages of a terminal's socket: the first byte is a channel (docs/contracts/dashboard.md).
import type { Status } from '../api/types';

export const subprotocol = 'trellis.terminal.v1';

const channels = { input: 0, output: 1, end: 3, size: 4, awaited: 5 };

export type Received =
  | { type: 'output'; data: Uint8Array }
  | { type: 'end'; status: Status }
  | { type: 'awaited'; text: string }
  | { type: 'unknown' };

function frame(channel: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(data.length + 1);
  message[0] = channel;
  message.set(data, 1);
  return message;
}

const encoder = new TextEncoder();

export const input = (text: string) => frame(channels.input, encoder.encode(text));

export const size = (columns: number, rows: number) =>
  frame(channels.size, encoder.encode(JSON.stringify({ Width: columns, Height: rows })));

/** read takes a message apart. */
export function read(message: ArrayBuffer): Received {
  const bytes = new Uint8Array(message);
  const data = bytes.subarray(1);
  switch (bytes[0]) {
    case channels.output:
      return { type: 'output', data };
    case channels.awaited:
      return { type: 'awaited', text: new TextDecoder().decode(data) };
    case channels.end:
      return { type: 'end', status: statusIn(new TextDecoder().decode(data)) };
    default:
      return { type: 'unknown' };
  }
}

function statusIn(text: string): Status {
  try {
    return JSON.parse(text) as Status;
  } catch {
    return { message: text };
  }
}
