// Several lists that are shown as one.
import type { Status } from '../api/types';
import type { LiveClient } from './client';
import type { LiveState } from './list';
import type { Spec } from './protocol';

/**
 * manyOf is what useSyncExternalStore needs of some lists. A list whose error is none to speak of is empty. The state
 * is the same until one of them changes.
 */
export function manyOf<T>(
  client: Pick<LiveClient, 'subscribe' | 'read'>,
  specs: Spec[],
  isNone: (error: Status) => boolean = () => false,
) {
  const keys = specs.map((spec) => JSON.stringify(spec));
  let before: (LiveState<T> | undefined)[] = [];
  let all: LiveState<T> = { items: [], complete: keys.length === 0 };
  return {
    subscribe: (listener: () => void) => {
      const ends = specs.map((spec, i) => client.subscribe(keys[i] ?? '', spec, listener));
      return () => ends.forEach((end) => end());
    },
    read: () => {
      const now = keys.map((key) => client.read<T>(key));
      if (now.some((part, i) => part !== before[i])) {
        const asked = now.filter((part) => !part?.error || !isNone(part.error));
        all = {
          items: asked.flatMap((part) => part?.items ?? []),
          complete: asked.every((part) => part?.complete ?? false),
          error: asked.find((part) => part?.error)?.error,
        };
      }
      before = now;
      return all;
    },
  };
}
