// Lists and objects that are kept up to date, as hooks.
import { useCallback, useEffect, useId, useMemo, useSyncExternalStore } from 'react';

import { currentUser } from '../api/http';
import { apiVersion, type Cluster, type Resource } from '../api/paths';
import type { Status } from '../api/types';
import { LiveClient, type Connection, type Visitor } from './client';
import { connect } from './connect';
import type { LiveState } from './list';
import { manyOf } from './many';
import type { Spec, View } from './protocol';
import { timers } from './socket';

const none: LiveState<never> = { items: [], complete: false };

let visitor: Visitor = { is: () => true, ended: () => undefined, isServed: () => Promise.resolve(false) };

const client = new LiveClient(
  () => connect(currentUser()),
  timers,
  {
    is: (user) => visitor.is(user),
    ended: () => visitor.ended(),
    isServed: () => visitor.isServed(),
  },
  `${crypto.getRandomValues(new Uint32Array(2)).join('-')}-`,
);

/** onLiveVisitor tells who the visitor is, and what to do when the server ends the connection with the session. */
export function onLiveVisitor(of: Visitor) {
  visitor = of;
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
  view?: View;
  /** Words, on the server. A list with a filter is not shared with other pages. */
  filter?: string;
}

function specOf({ resource, ...rest }: LiveQuery): Spec {
  return { ...rest, apiVersion: apiVersion(resource), resource: resource.resource, view: rest.view ?? 'row' };
}

/** useLiveLists keeps several lists as one; those with an error that is none to speak of are empty. */
export function useLiveLists<T>(queries: LiveQuery[], isNone?: (error: Status) => boolean): LiveState<T> {
  const key = JSON.stringify(queries.map(specOf));
  const store = useMemo(() => manyOf<T>(client, JSON.parse(key) as Spec[], isNone), [key, isNone]);
  return useSyncExternalStore(store.subscribe, store.read);
}

/** useLiveList keeps a list; of null it keeps nothing. */
export function useLiveList<T>(query: LiveQuery | null): LiveState<T> {
  const own = useId();
  const filter = query?.filter;
  const spec = query && specOf(query);
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
