import { Progress } from '@mantine/core';

import { number } from '../i18n/time';
import type { Count } from './glance';

/** Bars show counts beside each other, the largest as long as there is room. */
export function Bars({ counts, label }: { counts: Count[]; label: string }) {
  const most = Math.max(...counts.map(({ count }) => count), 1);
  return (
    <dl className="bars" aria-label={label}>
      {counts.map(({ name, count }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <Progress value={(100 * count) / most} aria-label={`${name}: ${count}`} /> {number(count)}
          </dd>
        </div>
      ))}
    </dl>
  );
}
