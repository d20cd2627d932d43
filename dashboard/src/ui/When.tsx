import { useSyncExternalStore } from 'react';

import { absolute, relative } from '../i18n/time';
import { t } from '../i18n';

const tick = 15_000;
let now = Date.now();
const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void) {
  listeners.add(listener);
  if (timer === undefined) now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    listeners.forEach((each) => each());
  }, tick);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** useNow is the present time, which moves on in steps that people notice. */
export function useNow(): Date {
  return new Date(useSyncExternalStore(subscribe, () => now));
}

/** When shows how long ago a time is, and exactly when in the viewer's zone. */
export function When({ time }: { time: string | undefined }) {
  const present = useNow();
  if (!time) return <>{t('time.never')}</>;
  const at = new Date(time);
  // The clock of the page moves in steps: what happened since the last one is now, and not in the future.
  const isNow = at > present && at.getTime() - present.getTime() < tick;
  return (
    <time dateTime={time} title={absolute(at)}>
      {relative(at, isNow ? at : present)}
    </time>
  );
}
