// The worker in which the hub runs. Tabs come to it by connect.ts.
import { Hub, type FromTab } from './hub';
import { ownSocket, timers } from './socket';

const hub = new Hub(ownSocket, timers);

const scope = self as unknown as { onconnect: (event: MessageEvent) => void };
scope.onconnect = ({ ports: [port] }) => {
  if (!port) return;
  const hear = hub.attach(port);
  port.onmessage = ({ data }) => hear(data as FromTab);
};
