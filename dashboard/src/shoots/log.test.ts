import { describe, expect, it } from 'vitest';

import { keepLog, lastLines, type LogState } from './log';

describe('a log that is followed', () => {
  type Attempt = Parameters<typeof keepLog>[0];

  /** watched is what is shown, and how long is waited, until all attempts were made. */
  async function watched(...attempts: Attempt[]) {
    const shown: LogState[] = [];
    const waits: number[] = [];
    let made = 0;
    await keepLog(
      (take) => attempts[made++]?.(take) ?? Promise.resolve(),
      (state) => shown.push(state),
      (milliseconds) => Promise.resolve(waits.push(milliseconds) < attempts.length),
    );
    return { shown, waits };
  }
  const says =
    (...pieces: string[]): Attempt =>
    (take) => {
      pieces.forEach(take);
      return Promise.resolve();
    };
  const lost = new Error('lost');
  const breaks: Attempt = () => Promise.reject(lost);

  it('grows piece by piece', async () => {
    const { shown } = await watched(says('one\n', 'two\n'));
    expect(shown.map(({ text }) => text)).toEqual(['one\n', 'one\ntwo\n', 'one\ntwo\n']);
  });

  it('keeps what it shows over a loss, and waits longer each time', async () => {
    const { shown, waits } = await watched(says('one\n'), breaks, breaks, says('two\n'));
    expect(shown[2]).toEqual({ text: 'one\n', error: lost });
    expect(shown.at(-1)).toEqual({ text: 'two\n' });
    expect(waits[2]).toBeGreaterThan(waits[1] ?? 0);
  });

  it('is empty when nothing was said', async () => {
    expect((await watched(says())).shown).toEqual([{ text: '' }]);
  });

  it('has its last lines, however long they are', () => {
    const lines = Array.from({ length: 600 }, (_, i) => `${i}\n`).join('');
    expect(lastLines(lines).split('\n')).toHaveLength(501);
    expect(lastLines(lines)).toMatch(/^100\n[^]*\n599\n$/);
    expect(lastLines('x'.repeat(3 << 20))).toHaveLength(1 << 20);
  });
});
