// A shell in a shoot, in the browser. What programs print is text, and nothing else.
import { after, before, test } from 'node:test';

import assert from 'node:assert/strict';
import { apply, kubectl } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, withVisitors, type Visitor } from './visitor.ts';

useBrowser();

const pod = 'browser-loud';
const script = '<img src=x onerror=alert(1)><script>alert(2)</script>';

const removePod = () => kubectl('member1', 'delete', 'pod', pod, '--ignore-not-found', '--now').then(() => undefined);

before(removePod);
after(removePod);

test('a terminal runs kubectl, and shows what it prints as text', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    const { page } = visitor;
    await apply('member1', `{apiVersion: v1, kind: Pod, metadata: {name: ${pod}, namespace: default}, spec: {restartPolicy: Never,
      containers: [{name: loud, image: nginx, command: [sh, -c, "echo '${script}'"]}]}}`);
    await kubectl('member1', 'wait', '--for=jsonpath={.status.phase}=Succeeded', `pod/${pod}`, '--timeout=10m');
    await visitor.visit('/shoots/garden-demo/member1/terminal');
    await page.getByRole('button', { name: 'Start a terminal' }).click();
    // What is typed before there is a shell is lost.
    await page.getByText('It ends by itself').waitFor();
    await typed(visitor, 'kubectl get nodes', /\bReady\b/);
    await look(visitor, 'terminal');
    await typed(visitor, `kubectl -n default logs ${pod}`, script);
    await typed(visitor, `printf '\\033]0;${script}\\007'; echo title $((6 * 7))`, 'title 42');
    assert.equal(await page.evaluate(() => document.querySelectorAll('img[src=x]').length), 0);
    await page.getByRole('button', { name: 'End the terminal' }).click();
    await page.getByRole('button', { name: 'Start a terminal' }).waitFor();
  }));

async function typed({ page }: Visitor, command: string, answer: string | RegExp) {
  const screen = page.getByRole('region', { name: 'Terminal', exact: true });
  await screen.locator('textarea').focus();
  await page.keyboard.type(`clear; ${command}`);
  await page.keyboard.press('Enter');
  await screen.getByText(answer).first().waitFor();
}
