import type { ReactNode } from 'react';

/** Tone is how good something is. It is never told by colour alone: each has a sign of its own. */
export type Tone = 'good' | 'bad' | 'warning' | 'busy' | 'neutral';

const signs: Record<Tone, string> = { good: '✓', bad: '✕', warning: '!', busy: '↻', neutral: '•' };

export function ToneBadge({ tone, children, title }: { tone: Tone; children: ReactNode; title?: string }) {
  return (
    <span className={`tone tone-${tone}`} title={title}>
      <span aria-hidden="true">{signs[tone]}</span> {children}
    </span>
  );
}
