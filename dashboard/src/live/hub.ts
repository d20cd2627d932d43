// The connections that all tabs of a browser share. It runs in a worker of its own, which lives as long as a tab does.
// One is enough for a user, unless their tabs have more lists than the server keeps over one: then some get another.
import type { Clock, Socket } from './client';
import type { Message } from './protocol';

/** FromTab is what a tab asks of its share, and ToTab what it hears of it. */
export type FromTab = { type: 'open'; user: string } | { type: 'send'; text: string } | { type: 'close' };
export type ToTab = { type: 'open' } | { type: 'message'; text: string } | { type: 'close'; code: number };

interface Port {
  postMessage(message: ToTab): void;
}

interface Tab {
  port: Port;
  line?: Line;
  stopDoubting?: () => void;
}

/** Line is a connection of one user. */
interface Line {
  user: string;
  socket: Socket;
  opened: boolean;
  /** What the server said first: tabs that come later hear it as well. */
  hello?: string;
  tabs: Set<Tab>;
  owners: Map<string, Tab>;
  /** Whether the server took no further list. */
  full: boolean;
  stopPinging?: () => void;
}

const pingEvery = 30_000;
/** A tab that is hidden has its timers run once a minute; one that says nothing for longer is gone. */
const silence = 180_000;
/** again has a tab connect anew, as when the server restarts. */
const again = 1001;
const tooManyRequests = 429;

export class Hub {
  private readonly lines = new Set<Line>();

  constructor(
    private readonly open: () => Socket,
    private readonly clock: Clock,
  ) {}

  /** attach gives what a tab's messages are told to. */
  attach(port: Port): (message: FromTab) => void {
    const tab: Tab = { port };
    return (message) => this.hear(tab, message);
  }

  private hear(tab: Tab, message: FromTab) {
    tab.stopDoubting?.();
    switch (message.type) {
      case 'open':
        this.join(tab, message.user);
        break;
      case 'send':
        this.pass(tab, message.text);
        break;
      case 'close':
        this.leave(tab);
        return;
    }
    tab.stopDoubting = this.clock.after(silence, () => this.part(tab));
  }

  private join(tab: Tab, user: string) {
    const line = [...this.lines].find((each) => each.user === user && !each.full) ?? this.begin(user);
    line.tabs.add(tab);
    tab.line = line;
    if (!line.opened) return;
    tab.port.postMessage({ type: 'open' });
    if (line.hello) tab.port.postMessage({ type: 'message', text: line.hello });
  }

  private begin(user: string): Line {
    const socket = this.open();
    const line: Line = { user, socket, opened: false, tabs: new Set(), owners: new Map(), full: false };
    this.lines.add(line);
    socket.onopen = () => {
      line.opened = true;
      line.tabs.forEach(({ port }) => port.postMessage({ type: 'open' }));
      this.ping(line);
    };
    socket.onmessage = ({ data }) => this.receive(line, String(data));
    socket.onclose = ({ code }) => this.lost(line, code);
    return line;
  }

  private ping(line: Line) {
    line.stopPinging = this.clock.after(pingEvery, () => {
      line.socket.send(JSON.stringify({ type: 'ping' }));
      this.ping(line);
    });
  }

  private pass(tab: Tab, text: string) {
    const { line } = tab;
    if (!line?.opened) return;
    const { type, id = '' } = JSON.parse(text) as { type: string; id?: string };
    if (type === 'ping') {
      tab.port.postMessage({ type: 'message', text: JSON.stringify({ type: 'pong' }) });
      return;
    }
    if (type === 'subscribe') line.owners.set(id, tab);
    if (type === 'unsubscribe') line.owners.delete(id);
    line.socket.send(text);
  }

  private receive(line: Line, text: string) {
    const message = JSON.parse(text) as Message;
    if (message.type === 'pong') return;
    if (message.type === 'hello') {
      line.hello = text;
      line.tabs.forEach(({ port }) => port.postMessage({ type: 'message', text }));
      return;
    }
    const tab = line.owners.get(message.id);
    if (!tab) return;
    if (message.type === 'error' && message.error.code === tooManyRequests && message.final && line.tabs.size > 1) {
      this.part(tab);
      line.full = true;
      return;
    }
    tab.port.postMessage({ type: 'message', text });
  }

  /** part has a tab connect anew, if it is still there. */
  private part(tab: Tab) {
    this.leave(tab);
    tab.port.postMessage({ type: 'close', code: again });
  }

  private leave(tab: Tab) {
    const { line } = tab;
    tab.stopDoubting?.();
    tab.line = undefined;
    if (!line) return;
    line.tabs.delete(tab);
    line.full = false;
    if (line.tabs.size === 0) {
      this.forget(line);
      line.socket.close();
      return;
    }
    for (const [id, owner] of line.owners) {
      if (owner !== tab) continue;
      line.owners.delete(id);
      line.socket.send(JSON.stringify({ type: 'unsubscribe', id }));
    }
  }

  private lost(line: Line, code: number) {
    if (!this.lines.has(line)) return;
    this.forget(line);
    line.tabs.forEach((tab) => {
      tab.stopDoubting?.();
      tab.line = undefined;
      tab.port.postMessage({ type: 'close', code });
    });
  }

  private forget(line: Line) {
    line.stopPinging?.();
    this.lines.delete(line);
  }
}
