// How a tab comes to a connection: by the one that all tabs of the browser share, or by its own where there is none.
import type { Socket } from './client';
import type { FromTab, ToTab } from './hub';
import { ownSocket } from './socket';

/** TabPort is what is needed of a worker's MessagePort. */
interface TabPort {
  postMessage(message: FromTab): void;
  close(): void;
  onmessage: ((event: { data: unknown }) => void) | null;
}

const goingAway = 1001;
const abnormal = 1006;

/** SharedSocket is a tab's share of a connection. */
class SharedSocket implements Socket {
  onopen: Socket['onopen'] = null;
  onmessage: Socket['onmessage'] = null;
  onclose: Socket['onclose'] = null;

  constructor(
    private readonly port: TabPort,
    user: string,
  ) {
    port.onmessage = ({ data }) => this.hear(data as ToTab);
    port.postMessage({ type: 'open', user });
    // The browser may show the page again later, as it was: it connects anew then.
    addEventListener('pagehide', this.leave);
  }

  send(text: string) {
    this.port.postMessage({ type: 'send', text });
  }

  close() {
    this.port.postMessage({ type: 'close' });
    this.end(1000);
  }

  /** end tells that the connection is lost. */
  end(code: number) {
    removeEventListener('pagehide', this.leave);
    this.port.onmessage = null;
    this.port.close();
    this.onclose?.({ code });
  }

  private leave = () => {
    this.port.postMessage({ type: 'close' });
    this.end(goingAway);
  };

  private hear(message: ToTab) {
    switch (message.type) {
      case 'open':
        this.onopen?.();
        break;
      case 'message':
        this.onmessage?.({ data: message.text });
        break;
      case 'close':
        this.end(message.code);
    }
  }
}

let sharing = typeof SharedWorker !== 'undefined';

/** connect gives a connection of a user. */
export function connect(user: string): Socket {
  if (!sharing) return ownSocket();
  try {
    const worker = new SharedWorker(new URL('./worker.ts', import.meta.url), { type: 'module', name: 'trellis-live' });
    const socket = new SharedSocket(worker.port as TabPort, user);
    worker.onerror = () => {
      // The next try is by a connection of its own.
      sharing = false;
      socket.end(abnormal);
    };
    return socket;
  } catch {
    sharing = false;
    return ownSocket();
  }
}
