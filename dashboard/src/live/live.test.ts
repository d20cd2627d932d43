import { describe, expect, it, vi } from 'vitest';

import { LiveClient, retryAfter, type Socket } from './client';
import { LiveList, type LiveState } from './list';
import { manyOf } from './many';
import type { Spec } from './protocol';

interface Item {
  uid: string;
  text?: string;
}

const shown = (list: LiveList<Item>) => list.state().items.map(({ uid, text = '' }) => uid + text);

describe('LiveList', () => {
  const filled = () => {
    const list = new LiveList<Item>();
    list.receive({ type: 'snapshot', id: 's', first: true, items: [{ uid: 'a' }, { uid: 'b' }] });
    list.receive({ type: 'sync', id: 's', resourceVersion: '1' });
    return list;
  };

  it('is complete with the sync', () => {
    const list = new LiveList<Item>();
    list.receive({ type: 'snapshot', id: 's', first: true, items: [{ uid: 'a' }] });
    expect(list.state().complete).toBe(false);
    list.receive({ type: 'sync', id: 's', resourceVersion: '1' });
    expect(list.state().complete).toBe(true);
  });

  it('changes by events', () => {
    const list = filled();
    list.receive({ type: 'added', id: 's', item: { uid: 'c' }, resourceVersion: '2' });
    list.receive({ type: 'changed', id: 's', item: { uid: 'a', text: '!' }, resourceVersion: '3' });
    list.receive({ type: 'deleted', id: 's', item: { uid: 'b', name: 'b' }, resourceVersion: '4' });
    list.receive({ type: 'deleted', id: 's', item: { uid: 'unknown', name: 'x' }, resourceVersion: '5' });
    expect(shown(list)).toEqual(['a!', 'c']);
    expect(list.resourceVersion).toBe('5');
  });

  it('does not flicker when it begins anew', () => {
    const list = filled();
    list.receive({ type: 'snapshot', id: 's', first: true, items: [{ uid: 'b' }] });
    expect(shown(list)).toEqual(['a', 'b']);
    list.receive({ type: 'snapshot', id: 's', items: [{ uid: 'c' }] });
    expect(shown(list)).toEqual(['a', 'b', 'c']);
    list.receive({ type: 'sync', id: 's', resourceVersion: '9' });
    expect(shown(list)).toEqual(['b', 'c']);
  });

  it('has no version to go on from before it is complete', () => {
    const list = filled();
    list.receive({ type: 'snapshot', id: 's', first: true, items: [] });
    list.receive({ type: 'added', id: 's', item: { uid: 'd' }, resourceVersion: '7' });
    expect(list.resourceVersion).toBe('');
    list.receive({ type: 'sync', id: 's', resourceVersion: '8' });
    expect([shown(list), list.resourceVersion]).toEqual([['d'], '8']);
  });

  it('keeps what it shows through an error that passes', () => {
    const list = filled();
    list.receive({ type: 'error', id: 's', error: { message: 'away' }, final: false });
    expect([shown(list), list.state().error?.message]).toEqual([['a', 'b'], 'away']);
    list.receive({ type: 'sync', id: 's', resourceVersion: '2' });
    expect(list.state().error).toBeUndefined();
  });

  it('knows objects by the uid in their metadata', () => {
    const list = new LiveList<{ metadata: { uid: string }; n: number }>();
    for (const n of [1, 2])
      list.receive({ type: 'added', id: 's', item: { metadata: { uid: 'a' }, n }, resourceVersion: '1' });
    expect(list.state().items).toEqual([{ metadata: { uid: 'a' }, n: 2 }]);
  });
});

class FakeSocket implements Socket {
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  send(text: string) {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }

  close() {
    this.onclose?.({ code: 1000 });
  }

  tell(message: unknown) {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

// Timers run when a test says so, in the order of their times.
function world() {
  const sockets: FakeSocket[] = [];
  let timers: { at: number; then: () => void }[] = [];
  let now = 0;
  let ended = 0;
  const server = { user: 'alice', served: false };
  const client = new LiveClient(
    () => {
      const socket = new FakeSocket();
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
    { is: (user) => user === server.user, ended: () => ended++, isServed: () => Promise.resolve(server.served) },
  );
  const pass = (milliseconds: number) => {
    now += milliseconds;
    for (;;) {
      const due = timers.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at)[0];
      if (!due) return;
      timers = timers.filter((each) => each !== due);
      due.then();
    }
  };
  const socket = () => sockets.at(-1) as FakeSocket;
  return { client, sockets, socket, pass, endings: () => ended, server };
}

const spec: Spec = { cluster: 'garden', apiVersion: 'v1', resource: 'things', view: 'row' };

/** A client whose connection is there, with a list. */
function opened() {
  const w = world();
  let heard = 0;
  const stop = w.client.subscribe('k', spec, () => heard++);
  w.socket().onopen?.();
  return { ...w, stop, heard: () => heard };
}

describe('lists without a page', () => {
  it('keeps a list for a while after its last page', () => {
    const { client, socket, pass, stop } = opened();
    stop();
    pass(5_000);
    const again = client.subscribe('k', spec, () => undefined);
    pass(60_000);
    expect(socket().sent.filter(({ type }) => type === 'unsubscribe')).toEqual([]);
    again();
    pass(10_000);
    expect(socket().sent.filter(({ type }) => type === 'unsubscribe')).toEqual([{ type: 'unsubscribe', id: 's1' }]);
    expect(client.read('k')).toBeUndefined();
  });

  it('keeps two lists without a page, those that lost it last', () => {
    const { client, socket, pass, stop } = opened();
    const stops = ['a', 'b', 'c'].map((key) => client.subscribe(key, spec, () => undefined));
    const unsubscribed = () => socket().sent.flatMap(({ type, id }) => (type === 'unsubscribe' ? [id] : []));
    stop();
    stops.forEach((each) => each());
    // A page that comes in place of another takes over its lists: nothing of them ends.
    const again = client.subscribe('a', spec, () => undefined);
    pass(0);
    expect(unsubscribed()).toEqual(['s1']);
    again();
    pass(0);
    expect(unsubscribed(), 'b lost its page before c, and a after both').toEqual(['s1', 's3']);
    expect(['k', 'a', 'b', 'c'].map((key) => client.read(key) !== undefined)).toEqual([false, true, false, true]);
    pass(60_000);
    expect(unsubscribed(), 'each ends once').toEqual(['s1', 's3', 's4', 's2']);
  });

  it('has few lists open for who goes through all pages, and those of the page always', () => {
    const { client, socket, pass, stop } = opened();
    stop();
    const open = new Set<unknown>(['s1']);
    const count = () => {
      for (const { type, id } of socket().sent.splice(0)) {
        if (type === 'subscribe') open.add(id);
        if (type === 'unsubscribe') open.delete(id);
      }
      return open.size;
    };
    // The garden's tabs, with what each of them shows.
    const both = ['shoots', 'seeds'];
    const tabs = [both, ['seeds', 'shoots'], ['managed'], ['installed'], both, ['buckets', 'entries']];
    let leave: () => void = () => undefined;
    for (const lists of [...tabs, ...tabs]) {
      leave();
      const stops = lists.map((key) => client.subscribe(key, spec, () => undefined));
      leave = () => stops.forEach((each) => each());
      pass(500);
      expect(count()).toBeLessThanOrEqual(4);
      expect(lists.every((key) => client.read(key))).toBe(true);
    }
  });
});

describe('LiveClient', () => {
  it('shares one connection and one subscription', () => {
    const { client, sockets, socket } = opened();
    client.subscribe('k', spec, () => undefined);
    client.subscribe('other', spec, () => undefined);
    expect(sockets.length).toBe(1);
    expect(socket().sent.map(({ id }) => id)).toEqual(['s1', 's2']);
  });

  it('tells pages of many messages at once', () => {
    const { client, socket, pass, heard } = opened();
    socket().tell({ type: 'snapshot', id: 's1', first: true, items: [{ uid: 'a' }] });
    socket().tell({ type: 'sync', id: 's1', resourceVersion: '5' });
    expect(heard()).toBe(0);
    pass(50);
    expect(heard()).toBe(1);
    expect(client.read('k')?.items.length).toBe(1);
  });

  it('goes on after a loss from what it heard last, with what it shows', () => {
    const { client, socket, sockets, pass } = opened();
    socket().tell({ type: 'snapshot', id: 's1', first: true, items: [{ uid: 'a' }] });
    socket().tell({ type: 'sync', id: 's1', resourceVersion: '5' });
    socket().onclose?.({ code: 1001 });
    expect([client.connection(), client.read('k')?.items.length]).toEqual(['lost', 1]);
    pass(2_000);
    expect(sockets.length).toBe(2);
    socket().onopen?.();
    expect(socket().sent[0]).toMatchObject({ type: 'subscribe', id: 's1', resourceVersion: '5' });
    expect(client.connection()).toBe('connected');
  });

  it('ends with the session, and goes on with the next', () => {
    const { client, socket, sockets, pass, endings } = opened();
    socket().onclose?.({ code: 4401 });
    pass(60_000);
    expect([endings(), sockets.length]).toEqual([1, 1]);
    client.resume();
    expect(sockets.length).toBe(2);
  });

  it('connects at once after a log-in, though it waited to try again', () => {
    const { client, socket, sockets, pass } = opened();
    for (let i = 0; i < 8; i++) {
      socket().onclose?.({ code: 1006 });
      if (i < 7) pass(30_000);
    }
    expect([sockets.length, client.connection()]).toEqual([8, 'lost']);
    client.resume();
    expect(sockets.length).toBe(9);
    pass(60_000);
    expect(sockets.length, 'the try that was planned is none more').toBe(9);
  });

  it('does not resume with a version of another filter', () => {
    const { client, socket, pass } = opened();
    socket().tell({ type: 'sync', id: 's1', resourceVersion: '5' });
    client.filter('k', 'words');
    expect(socket().sent.at(-1)).toEqual({ type: 'filter', id: 's1', filter: 'words' });
    socket().onclose?.({ code: 1006 });
    pass(2_000);
    socket().onopen?.();
    expect(socket().sent[0]).toMatchObject({ filter: 'words', resourceVersion: '' });
  });

  it('asks again, by another id, for what was refused', () => {
    const { client, socket } = opened();
    socket().tell({ type: 'error', id: 's1', error: { code: 403 }, final: true });
    client.subscribe('k', spec, () => undefined);
    expect(socket().sent.at(-1)).toMatchObject({ type: 'subscribe', id: 's2' });
  });

  it('pings, and forgets everything when somebody else logs in', () => {
    const { client, socket, pass } = opened();
    pass(30_000);
    expect(socket().sent.at(-1)).toEqual({ type: 'ping' });
    client.reset();
    expect([client.read('k'), client.connection()]).toEqual([undefined, 'idle']);
  });
});

describe('a connection', () => {
  it('ends where the connection is that of somebody else', () => {
    const { socket, endings, client } = opened();
    socket().tell({ type: 'hello', user: 'alice' });
    expect([endings(), client.connection()]).toEqual([0, 'connected']);
    socket().tell({ type: 'hello', user: 'mallory' });
    expect([endings(), client.connection()]).toEqual([1, 'idle']);
  });

  it('tells of a server that answers and gives no connection', async () => {
    const w = world();
    w.client.subscribe('k', spec, () => undefined);
    w.socket().onclose?.({ code: 1006 });
    await Promise.resolve();
    expect(w.client.connection(), 'nothing answers').toBe('lost');
    w.server.served = true;
    w.pass(2_000);
    w.socket().onclose?.({ code: 1006 });
    await vi.waitFor(() => expect(w.client.connection()).toBe('refused'));
    w.pass(30_000);
    w.socket().onopen?.();
    expect(w.client.connection()).toBe('connected');
  });
});

describe('retryAfter', () => {
  it.each([
    [0, 1_000],
    [1, 2_000],
    [20, 15_000],
  ])('after %d failures', (failures, want) => expect(retryAfter(failures, 0.5)).toBe(want));
});

describe('several lists', () => {
  const spec = (namespace: string): Spec => ({
    cluster: 'garden',
    apiVersion: 'v1',
    resource: 'pods',
    namespace,
    view: 'row',
  });
  const specs = [spec('a'), spec('b')];
  const [a, b] = specs.map((each) => JSON.stringify(each)) as [string, string];
  const kept = (states: Record<string, LiveState<string>>) => ({
    subscribe: vi.fn(() => () => undefined),
    read: <T>(key: string) => states[key] as LiveState<T> | undefined,
  });

  it('are complete when all are, and the same until one changes', () => {
    const states: Record<string, LiveState<string>> = { [a]: { items: ['1'], complete: true } };
    const store = manyOf<string>(kept(states), specs);
    expect(store.read()).toEqual({ items: ['1'], complete: false, error: undefined });
    expect(store.read()).toBe(store.read());
    states[b] = { items: ['2'], complete: true };
    expect(store.read()).toEqual({ items: ['1', '2'], complete: true, error: undefined });
  });

  it('have the error of one, unless it is none to speak of', () => {
    const states = { [a]: { items: [], complete: false, error: { code: 403 } }, [b]: { items: ['2'], complete: true } };
    expect(manyOf(kept(states), specs).read()).toMatchObject({ complete: false, error: { code: 403 } });
    expect(manyOf(kept(states), specs, ({ code }) => code === 403).read()).toEqual({ items: ['2'], complete: true });
  });

  it('are subscribed to together, and none is complete at once', () => {
    const client = kept({});
    manyOf(client, specs).subscribe(() => undefined);
    expect(client.subscribe).toHaveBeenCalledTimes(2);
    expect(manyOf(client, []).read().complete).toBe(true);
  });
});
