// One connection for each tab, over which all lists of its pages are kept. hub.ts has all tabs share one.
import { LiveList, type LiveState } from './list';
import { sessionEnded, subscribeMessage, type Message, type Spec } from './protocol';

/** Socket is what the client needs of a WebSocket. */
export interface Socket {
  send(text: string): void;
  close(): void;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number }) => void) | null;
}

/** Clock is what the client needs of time and chance. */
export interface Clock {
  after(milliseconds: number, then: () => void): () => void;
  random(): number;
}

/** Visitor is what the client needs of the session. */
export interface Visitor {
  /** Whether the server, which tells the user of the connection first, means who is logged in here. */
  is(user: string): boolean;
  /** The session has ended, or is that of somebody else. */
  ended(): void;
  /** Whether the server answers other requests. It is asked when there was no connection to be had. */
  isServed(): Promise<boolean>;
}

/** Connection is refused where the server answers all else. */
export type Connection = 'idle' | 'connecting' | 'connected' | 'lost' | 'refused';

interface Subscription {
  id: string;
  spec: Spec;
  list: LiveList<unknown>;
  listeners: Set<() => void>;
  ended: boolean;
  stopLingering?: () => void;
}

/** lingering is how long a list outlives its last page, so that going back shows it at once. */
const lingering = 10_000;
/** mostLingering lists do so: each is a watch in a cluster, which nobody looks at. */
const mostLingering = 2;
const pingEvery = 30_000;
const together = 50;

export class LiveClient {
  private readonly subscriptions = new Map<string, Subscription>();
  private readonly watchers = new Set<() => void>();
  private readonly changed = new Set<Subscription>();
  /** Lists without a page, the one that lost its last page first in front. */
  private readonly lingers = new Map<Subscription, string>();
  private socket: Socket | undefined;
  private state: Connection = 'idle';
  private failures = 0;
  private ids = 0;
  private stopPinging: (() => void) | undefined;
  private stopWaiting: (() => void) | undefined;

  constructor(
    private readonly open: () => Socket,
    private readonly clock: Clock,
    private readonly visitor: Visitor,
    /** What ids of subscriptions begin with: those of tabs that share a connection have to differ. */
    private readonly prefix = '',
  ) {}

  connection = (): Connection => this.state;

  /** watchConnection calls back when the connection is lost or there again. */
  watchConnection = (listener: () => void) => {
    this.watchers.add(listener);
    return () => this.watchers.delete(listener);
  };

  /** state is what is known of a list; undefined before it is subscribed to. */
  read<T>(key: string): LiveState<T> | undefined {
    return this.subscriptions.get(key)?.list.state() as LiveState<T> | undefined;
  }

  /** subscribe keeps the list of a key until what it returns is called. The same key shares one subscription. */
  subscribe(key: string, spec: Spec, listener: () => void): () => void {
    const subscription = this.subscriptions.get(key) ?? this.begin(key, spec);
    subscription.stopLingering?.();
    this.lingers.delete(subscription);
    subscription.listeners.add(listener);
    if (subscription.ended) this.restart(subscription);
    this.connect();
    return () => {
      subscription.listeners.delete(listener);
      if (subscription.listeners.size === 0) this.linger(key, subscription);
    };
  }

  private linger(key: string, subscription: Subscription) {
    subscription.stopLingering = this.clock.after(lingering, () => this.end(key, subscription));
    this.lingers.set(subscription, key);
    // Not at once: the next page, which takes the place of the one that went, may show the same lists.
    this.clock.after(0, () => {
      const surplus = Math.max(0, this.lingers.size - mostLingering);
      [...this.lingers].slice(0, surplus).forEach(([oldest, of]) => this.end(of, oldest));
    });
  }

  /** filter narrows a list; what is shown stays until the answer is there. */
  filter(key: string, filter: string) {
    const subscription = this.subscriptions.get(key);
    if (!subscription || (subscription.spec.filter ?? '') === filter) return;
    subscription.spec = { ...subscription.spec, filter };
    // What was heard of the other filter is not to be gone on from.
    subscription.list.resourceVersion = '';
    this.send({ type: 'filter', id: subscription.id, filter });
  }

  /** resume goes on after the session had ended, with what it shows. It does not wait for the next try. */
  resume() {
    if (this.subscriptions.size === 0) return;
    this.stopWaiting?.();
    this.stopWaiting = undefined;
    this.failures = 0;
    this.connect();
  }

  /** reset ends the connection and forgets all lists: they are of who was logged in. */
  reset() {
    this.subscriptions.clear();
    this.lingers.clear();
    this.stopWaiting?.();
    this.disconnect();
    this.set('idle');
  }

  private begin(key: string, spec: Spec): Subscription {
    const subscription: Subscription = {
      id: this.nextID(),
      spec,
      list: new LiveList<unknown>(),
      listeners: new Set(),
      ended: false,
    };
    this.subscriptions.set(key, subscription);
    this.ask(subscription);
    return subscription;
  }

  private nextID = () => `${this.prefix}s${++this.ids}`;

  private restart(subscription: Subscription) {
    subscription.ended = false;
    subscription.id = this.nextID();
    this.ask(subscription);
  }

  private end(key: string, subscription: Subscription) {
    subscription.stopLingering?.();
    this.lingers.delete(subscription);
    if (this.subscriptions.get(key) === subscription) this.subscriptions.delete(key);
    if (!subscription.ended) this.send({ type: 'unsubscribe', id: subscription.id });
  }

  private ask({ id, spec, list }: Subscription) {
    this.send(subscribeMessage(id, spec, list.resourceVersion));
  }

  private send(message: unknown) {
    if (this.state === 'connected') this.socket?.send(JSON.stringify(message));
  }

  private connect() {
    if (this.socket || this.stopWaiting) return;
    if (this.state === 'idle') this.set('connecting');
    const socket = this.open();
    this.socket = socket;
    socket.onopen = () => this.opened(socket);
    socket.onmessage = ({ data }) => this.receive(String(data));
    socket.onclose = ({ code }) => this.lost(socket, code);
  }

  private opened(socket: Socket) {
    if (socket !== this.socket) return;
    this.failures = 0;
    this.set('connected');
    this.subscriptions.forEach((subscription) => {
      if (!subscription.ended) this.ask(subscription);
    });
    this.ping();
  }

  private ping() {
    this.stopPinging = this.clock.after(pingEvery, () => {
      this.send({ type: 'ping' });
      this.ping();
    });
  }

  private receive(text: string) {
    const message = JSON.parse(text) as Message;
    if (message.type === 'pong') return;
    if (message.type === 'hello') {
      if (!this.visitor.is(message.user)) this.endSession();
      return;
    }
    for (const subscription of this.subscriptions.values()) {
      if (subscription.id !== message.id) continue;
      subscription.list.receive(message);
      if (message.type === 'error' && message.final) subscription.ended = true;
      this.tell(subscription);
    }
  }

  // Pages hear of many messages at once: each rendering costs more than a message.
  private tell(subscription: Subscription) {
    if (this.changed.size === 0) {
      this.clock.after(together, () => {
        const all = [...this.changed];
        this.changed.clear();
        all.forEach(({ listeners }) => listeners.forEach((listener) => listener()));
      });
    }
    this.changed.add(subscription);
  }

  private lost(socket: Socket, code: number) {
    if (socket !== this.socket) return;
    if (code === sessionEnded) {
      this.endSession();
      return;
    }
    const wasThere = this.state === 'connected';
    this.disconnect();
    if (this.state !== 'refused') this.set('lost');
    // A browser does not tell why there is no connection.
    if (!wasThere) void this.askWhetherRefused();
    this.stopWaiting = this.clock.after(retryAfter(this.failures++, this.clock.random()), () => {
      this.stopWaiting = undefined;
      if (this.subscriptions.size > 0) this.connect();
    });
  }

  private async askWhetherRefused() {
    if ((await this.visitor.isServed()) && this.state === 'lost') this.set('refused');
  }

  private endSession() {
    this.disconnect();
    this.set('idle');
    this.visitor.ended();
  }

  private disconnect() {
    this.stopPinging?.();
    this.stopWaiting = undefined;
    const socket = this.socket;
    this.socket = undefined;
    socket?.close();
  }

  private set(state: Connection) {
    if (this.state === state) return;
    this.state = state;
    this.watchers.forEach((watcher) => watcher());
  }
}

/** retryAfter is how long to wait before the next try: at most 2 s at first, then longer, and never all at once. */
export function retryAfter(failures: number, random: number): number {
  return random * Math.min(2_000 * 2 ** failures, 30_000);
}
