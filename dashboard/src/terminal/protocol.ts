// Messages of a terminal's socket: the first byte is a channel (docs/contracts/dashboard.md).
import type { Status } from '../api/types';

export const subprotocol = 'trellis.terminal.v1';

const channels = { input: 0, output: 1, end: 3, size: 4, awaited: 5, opened: 6 };

export type Received =
  | { type: 'output'; data: Uint8Array }
  | { type: 'end'; status: Status }
  | { type: 'awaited'; text: string }
  | { type: 'opened'; expires: string }
  | { type: 'unknown' };

function frame(channel: number, data: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(data.length + 1);
  message[0] = channel;
  message.set(data, 1);
  return message;
}

const encoder = new TextEncoder();

/** What the server takes in one message is more; a long paste is several. */
const maxInput = 64 << 10;

/** inputs are the messages for what was typed. Characters may be cut: to the shell it is one stream. */
export function inputs(text: string): Uint8Array<ArrayBuffer>[] {
  const bytes = encoder.encode(text);
  const messages = [];
  for (let from = 0; from < bytes.length; from += maxInput) {
    messages.push(frame(channels.input, bytes.subarray(from, from + maxInput)));
  }
  return messages;
}

export type Target = 'shoot' | 'controlplane';

/** path of a terminal's socket. */
export const path = (namespace: string, shoot: string, target: Target) =>
  `/api/terminal?${new URLSearchParams({ namespace, shoot, target }).toString()}`;

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
    case channels.opened:
      return { type: 'opened', expires: expiresIn(new TextDecoder().decode(data)) };
    case channels.end:
      return { type: 'end', status: statusIn(new TextDecoder().decode(data)) };
    default:
      return { type: 'unknown' };
  }
}

function expiresIn(text: string): string {
  try {
    return String((JSON.parse(text) as { expires?: unknown }).expires ?? '');
  } catch {
    return '';
  }
}

function statusIn(text: string): Status {
  try {
    return JSON.parse(text) as Status;
  } catch {
    return { message: text };
  }
}
