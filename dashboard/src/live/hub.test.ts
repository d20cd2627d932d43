import { afterEach, describe, expect, it, vi } from 'vitest';

import type { Socket } from './client';
import { Hub, type FromTab, type ToTab } from './hub';

class ServerSocket implements Socket {
  sent: { type: string; id?: string }[] = [];
  closed = false;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  send(text: string) {
    this.sent.push(JSON.parse(text) as { type: string });
  }

  close() {
    this.closed = true;
  }

  tell(message: unknown) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

function browser() {
  const sockets: ServerSocket[] = [];
  let timers: { at: number; then: () => void }[] = [];
  let now = 0;
  const hub = new Hub(
    () => {
      const socket = new ServerSocket();
      sockets.push(socket);
      return socket;
    },
    {
      after: (milliseconds, then) => {
        const timer = { at: now + milliseconds, then };
        timers.push(timer);
        return () => {
          timers = timers.filter((each) => each !== timer);
        };
      },
      random: () => 0.5,
    },
  );
  const pass = (milliseconds: number) => {
    const until = now + milliseconds;
    for (;;) {
      const due = timers.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at)[0];
      if (!due) break;
      timers = timers.filter((each) => each !== due);
      now = due.at;
      due.then();
    }
    now = until;
  };
  const tab = (user = 'alice') => {
    const heard: ToTab[] = [];
    const tell = hub.attach({ postMessage: (message) => heard.push(message) });
    tell({ type: 'open', user });
    return {
      tell,
      send: (message: object) => tell({ type: 'send', text: JSON.stringify(message) }),
      heard: () => heard.splice(0).map((message) => (message.type === 'message' ? message.text : message.type)),
    };
  };
  const socket = (i = 0) => sockets[i] as ServerSocket;
  return { sockets, socket, tab, pass };
}

const subscribe = (id: string) => ({ type: 'subscribe', id });
const tooMany = (id: string) => ({ type: 'error', id, final: true, error: { code: 429 } });

describe('Hub', () => {
  it('has one connection for twenty tabs of a browser', () => {
    const { sockets, socket, tab } = browser();
    const tabs = Array.from({ length: 20 }, () => tab());
    socket().onopen?.();
    expect(sockets.length).toBe(1);
    expect(tabs.map(({ heard }) => heard())).toEqual(tabs.map(() => ['open']));
  });

  it('tells a tab what it asked for, and nothing else', () => {
    const { socket, tab } = browser();
    const [one, other] = [tab(), tab()];
    socket().onopen?.();
    one.heard();
    other.heard();
    one.send(subscribe('1'));
    other.send(subscribe('2'));
    socket().tell({ type: 'sync', id: '2' });
    socket().tell({ type: 'pong' });
    socket().tell({ type: 'sync', id: 'unknown' });
    expect([one.heard(), other.heard()]).toEqual([[], ['{"type":"sync","id":"2"}']]);
  });

  it('tells each tab whose connection it is, also one that comes later', () => {
    const { socket, tab } = browser();
    const first = tab();
    socket().onopen?.();
    socket().tell({ type: 'hello', user: 'alice' });
    expect([first.heard(), tab().heard()]).toEqual([
      ['open', '{"type":"hello","user":"alice"}'],
      ['open', '{"type":"hello","user":"alice"}'],
    ]);
  });

  // An attacker: somebody who logs in in a further tab, to see by the connection of who was here before.
  it('lets no user onto the connection of another', () => {
    const { sockets, socket, tab } = browser();
    const alice = tab('alice');
    socket().onopen?.();
    alice.send(subscribe('1'));
    const mallory = tab('mallory');
    expect(sockets.length).toBe(2);
    mallory.send({ type: 'unsubscribe', id: '1' });
    socket().tell({ type: 'snapshot', id: '1', items: ['secret'] });
    expect(mallory.heard()).toEqual([]);
  });

  it('ends what a tab asked for when it closes, and the connection with the last tab', () => {
    const { socket, tab } = browser();
    const [one, other] = [tab(), tab()];
    socket().onopen?.();
    one.send(subscribe('1'));
    one.tell({ type: 'close' });
    expect(socket().sent).toEqual([subscribe('1'), { type: 'unsubscribe', id: '1' }]);
    expect(socket().closed).toBe(false);
    other.tell({ type: 'close' });
    expect(socket().closed).toBe(true);
  });

  it('takes a tab that says nothing for gone, and keeps the connection of the others alive', () => {
    const { socket, tab, pass } = browser();
    const [gone, here] = [tab(), tab()];
    socket().onopen?.();
    gone.heard();
    gone.send(subscribe('1'));
    here.heard();
    for (let minute = 0; minute < 4; minute++) {
      here.send({ type: 'ping' });
      pass(60_000);
    }
    expect([gone.heard(), new Set(here.heard())]).toEqual([['close'], new Set(['{"type":"pong"}'])]);
    expect(socket().sent.filter(({ type }) => type === 'unsubscribe')).toEqual([{ type: 'unsubscribe', id: '1' }]);
    expect(socket().sent.filter(({ type }) => type === 'ping').length).toBe(8);
  });

  it('gives a tab another connection when its lists do not fit on the one', () => {
    const { sockets, socket, tab } = browser();
    const [one, other] = [tab(), tab()];
    socket().onopen?.();
    one.send(subscribe('1'));
    other.heard();
    other.send(subscribe('2'));
    socket().tell(tooMany('2'));
    expect(other.heard()).toEqual(['close']);
    tab();
    expect(sockets.length).toBe(2);
    socket(1).onopen?.();
    one.tell({ type: 'close' });
    expect([socket().closed, socket(1).closed]).toEqual([true, false]);
  });

  it('tells a tab that is alone on a connection that the server takes no more', () => {
    const { sockets, socket, tab } = browser();
    const one = tab();
    socket().onopen?.();
    one.heard();
    one.send(subscribe('1'));
    socket().tell(tooMany('1'));
    expect([one.heard(), sockets.length]).toEqual([[JSON.stringify(tooMany('1'))], 1]);
  });

  it('tells all tabs of a loss, and connects anew for the first that asks', () => {
    const { sockets, socket, tab } = browser();
    const tabs = [tab(), tab()];
    socket().onclose?.({ code: 4401 });
    expect(tabs.map(({ heard }) => heard())).toEqual([['close'], ['close']]);
    tab();
    tab();
    expect(sockets.length).toBe(2);
  });
});

describe('connect', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    vi.resetModules();
  });

  // What a browser without workers has: each tab a connection of its own.
  const own = () => {
    const sockets: object[] = [];
    vi.stubGlobal('WebSocket', function (this: object) {
      sockets.push(this);
    });
    return sockets;
  };
  const shared = () => {
    const workers: {
      port: { asked: FromTab[]; onmessage?: (event: { data: ToTab }) => void };
      onerror?: () => void;
    }[] = [];
    vi.stubGlobal(
      'SharedWorker',
      class {
        port = {
          asked: [] as FromTab[],
          postMessage(message: FromTab) {
            this.asked.push(message);
          },
          close: () => undefined,
        };

        constructor() {
          workers.push(this);
        }
      },
    );
    return workers;
  };

  it('is by the connection that all tabs share', async () => {
    const [sockets, workers] = [own(), shared()];
    const { connect } = await import('./connect');
    const socket = connect('alice');
    const closed = vi.fn();
    socket.onopen = vi.fn();
    socket.onclose = closed;
    workers[0]?.port.onmessage?.({ data: { type: 'open' } });
    expect(socket.onopen).toHaveBeenCalledOnce();
    socket.send('{}');
    window.dispatchEvent(new Event('pagehide'));
    expect(workers[0]?.port.asked).toEqual([
      { type: 'open', user: 'alice' },
      { type: 'send', text: '{}' },
      { type: 'close' },
    ]);
    expect(closed).toHaveBeenCalledExactlyOnceWith({ code: 1001 });
    expect(sockets).toEqual([]);
  });

  it('is by one of its own where no worker is to be had', async () => {
    const [sockets, workers] = [own(), shared()];
    const { connect } = await import('./connect');
    const closed = vi.fn();
    connect('alice').onclose = closed;
    workers[0]?.onerror?.();
    expect(closed).toHaveBeenCalledExactlyOnceWith({ code: 1006 });
    connect('alice');
    expect([sockets.length, workers.length]).toEqual([1, 1]);
  });
});
