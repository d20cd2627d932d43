// A log that is followed, over losses.
import { useEffect, useState } from 'react';

import { followLog, linesOfLogs, type Key } from '../api/objects';
import type { Cluster } from '../api/paths';
import { retryAfter } from '../live/client';

export interface LogState {
  text?: string;
  error?: unknown;
}

/** longest is how many characters are kept, whatever lines they make. */
const longest = 1 << 20;

/** lastLines is as much of a log as is shown. */
export function lastLines(text: string): string {
  const lines = text.slice(-longest).split('\n');
  // What ends with a line break has an empty line behind it.
  return lines.slice(-linesOfLogs - 1).join('\n');
}

/** Attempt reads a log until it ends. */
type Attempt = (take: (text: string) => void) => Promise<void>;

/** ended is how long to wait with a log that has ended: its container may come again. */
const ended = 30_000;

/**
 * keepLog shows a log, and reads it anew after a loss, or when it has ended. What is shown stays until there is more.
 * wait is false when nobody looks any more.
 */
export async function keepLog(
  attempt: Attempt,
  show: (state: LogState) => void,
  wait: (milliseconds: number) => Promise<boolean>,
) {
  let text: string | undefined;
  for (let failures = 0, goesOn = true; goesOn;) {
    let fresh = '';
    try {
      await attempt((piece) => {
        failures = 0;
        fresh = lastLines(fresh + piece);
        text = fresh;
        show({ text });
      });
      text = fresh;
      show({ text });
      goesOn = await wait(ended);
    } catch (error) {
      show({ text, error });
      goesOn = await wait(retryAfter(++failures, 1));
    }
  }
}

/** waiting is false when the signal ends it. */
const waiting = (signal: AbortSignal) => (milliseconds: number) =>
  new Promise<boolean>((resolve) => {
    if (signal.aborted) resolve(false);
    const timer = setTimeout(() => resolve(true), milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(false);
    });
  });

/** together is for how long pieces are collected before they are shown. */
const together = 100;

/** useLog follows the log of a container. A pod that has changed is read anew. */
export function useLog(cluster: Cluster, key: Key, container: string, podState: string): LogState {
  const [shown, setShown] = useState<LogState>({});
  const { namespace, name } = key;
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let latest: LogState = {};
    const show = (state: LogState) => {
      latest = state;
      timer ??= setTimeout(() => {
        timer = undefined;
        if (!stop.signal.aborted) setShown(latest);
      }, together);
    };
    void keepLog(
      (take) => followLog(cluster, { namespace, name }, container, take, stop.signal),
      show,
      waiting(stop.signal),
    );
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [cluster, namespace, name, container, podState]);
  return shown;
}
