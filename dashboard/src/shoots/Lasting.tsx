import { lasting } from '../i18n/time';
import { useNow } from '../ui/When';
import type { GraphTask } from './graph';

/** Lasting is how long a task has been running, or took. */
export function Lasting({ task: { started, ended } }: { task: GraphTask }) {
  const now = useNow();
  if (!started) return null;
  const end = ended ? Date.parse(ended) : now.getTime();
  return <> · {lasting((end - Date.parse(started)) / 1000)}</>;
}
