// What holds of each page: it can be used without seeing it well, in light and dark.
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';

import type { Visitor } from './visitor.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** largestPicture bounds what the documentation gets. */
const largestPicture = 300_000;

/** look checks a page, and takes a picture of it. */
export async function look(visitor: Visitor, name: string) {
  const { page } = visitor;
  await visitor.settled();
  const faults: string[] = [];
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`html[data-mantine-color-scheme="${scheme}"]`).waitFor({ state: 'attached' });
    await still(visitor);
    faults.push(...(await faultsOf(visitor, scheme)).map((fault) => `${name}, ${scheme}: ${fault}`));
    if (scheme === 'dark') continue;
    const { size } = statSync(await visitor.picture(name));
    assert.ok(size <= largestPicture, `the picture ${name} has ${size} bytes`);
  }
  await page.emulateMedia({ colorScheme: 'light' });
  assert.deepEqual(faults, []);
}

/** still waits until colours have changed. What turns for ever is not waited for. */
async function still({ page }: Visitor) {
  await page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .filter(({ effect }) => Number.isFinite(Number(effect?.getComputedTiming().endTime ?? 0)))
        .map(({ finished }) => finished.catch(() => undefined)),
    ),
  );
}

/** In the dark, only colours are others. */
const rulesIn = { light: {}, dark: { runOnly: ['color-contrast'] } };

async function faultsOf({ page }: Visitor, scheme: keyof typeof rulesIn): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(
    async (rules) => {
      const { axe } = window as unknown as { axe: { run: (options: object) => Promise<AxeResults> } };
      return axe.run({ resultTypes: ['violations'], ...rules });
    },
    rulesIn[scheme],
  );
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ html, failureSummary }) => `${html} ${failureSummary ?? ''}`).join(' | ')}`);
}
