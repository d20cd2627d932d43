// Lists and objects that are kept up to date, as hooks.
import { useCallback, useEffect, useId, useSyncExternalStore } from 'react';

import { apiVersion, type Cluster, type Resource } from '../api/paths';
import type { Status } from '../api/types';
import { LiveClient, type Connection, type Socket } from './client';
import type { LiveState } from './list';
import { subprotocol, type Spec } from './protocol';

const none: LiveState<never> = { items: [], complete: false };

let sessionEnded: () => void = () => undefined;

const client = new LiveClient(
  () => {
    const address = `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/live`;
    return new WebSocket(address, subprotocol) as unknown as Socket;
  },
  {
    after: (milliseconds, then) => {
      const timer = setTimeout(then, milliseconds);
      return () => clearTimeout(timer);
    },
    random: Math.random,
  },
  () => sessionEnded(),
);

/** onLiveSessionEnd tells what to do when the server ends the connection with the session. */
export function onLiveSessionEnd(ended: () => void) {
  sessionEnded = ended;
}

/** resumeLive goes on after somebody has logged in again. */
export function resumeLive() {
  client.resume();
}

/** resetLive forgets what was read for who was logged in. */
export function resetLive() {
  client.reset();
}

export function useConnection(): Connection {
  return useSyncExternalStore(client.watchConnection, client.connection);
}

export interface LiveQuery {
  cluster: Cluster;
  resource: Resource;
  namespace?: string;
  name?: string;
  labelSelector?: string;
  fieldSelector?: string;
  view?: 'row' | 'object' | 'meta';
  /** Words, on the server. A list with a filter is not shared with other pages. */
  filter?: string;
}

/** useLiveList keeps a list; of null it keeps nothing. */
export function useLiveList<T>(query: LiveQuery | null): LiveState<T> {
  const own = useId();
  const { filter, ...shared } = query ?? { filter: undefined };
  const spec: Spec | null = query && {
    ...(shared as Omit<LiveQuery, 'filter' | 'resource'>),
    apiVersion: apiVersion(query.resource),
    resource: query.resource.resource,
    view: query.view ?? 'row',
    filter,
  };
  const key = spec ? JSON.stringify([{ ...spec, filter: undefined }, filter === undefined ? '' : own]) : '';
  const subscribe = useCallback(
    (listener: () => void) => (spec ? client.subscribe(key, spec, listener) : () => undefined),
    // The key has all of the specification but the filter, which is told apart below.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [key],
  );
  useEffect(() => {
    if (filter !== undefined) client.filter(key, filter);
  }, [key, filter]);
  return useSyncExternalStore(subscribe, () => client.read<T>(key) ?? none);
}

export interface LiveObject<T> {
  object: T | undefined;
  /** Whether it is known that there is no such object. */
  missing: boolean;
  error?: Status;
}

/** useLiveObject keeps one object. */
export function useLiveObject<T>(query: (LiveQuery & { name: string }) | null): LiveObject<T> {
  const { items, complete, error } = useLiveList<T>(query && { ...query, view: query.view ?? 'object' });
  const object = items[0];
  return { object, missing: complete && object === undefined, error };
}
