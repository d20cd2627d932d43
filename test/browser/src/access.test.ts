// Other ways in: a token, a kubeconfig from the page, and what the pods of a cluster say.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { kubectl, kubectlBy, landscape } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, withVisitors, type Visitor } from './visitor.ts';

useBrowser();

const account = 'browser';
const inProject = ['-n', 'garden-demo'];

const removeAccount = () =>
  kubectl('garden', ...inProject, 'delete', 'serviceaccount', account, '--ignore-not-found').then(() => undefined);

before(removeAccount);
after(removeAccount);

test('who has a token logs in by it', () =>
  withVisitors(1, async (visitor) => {
    await kubectl('garden', ...inProject, 'create', 'serviceaccount', account);
    const token = (await kubectl('garden', ...inProject, 'create', 'token', account)).trim();
    await visitor.page.goto('/login');
    await logInBy(visitor, `${token}x`);
    await visitor.page.getByRole('alert').waitFor();
    await logInBy(visitor, token);
    await visitor.heading('Projects').waitFor();
    assert.equal((await visitor.session()).user, `system:serviceaccount:garden-demo:${account}`);
    const kept = await visitor.page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
    assert.ok(!kept.includes(token), 'the page keeps the token');
  }));

async function logInBy({ page }: Visitor, token: string) {
  const form = page.getByRole('tabpanel', { name: 'Token' });
  await form.getByRole('textbox', { name: 'Token' }).fill(token);
  await form.getByRole('button', { name: 'Log in', exact: true }).click();
}

test("a kubeconfig from a shoot's page reads, and no more if it is one that reads", () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    await visitor.visit('/shoots/garden-demo/member1');
    const kubeconfig = join(landscape.work, 'member1.yaml');
    const download = visitor.page.waitForEvent('download');
    await visitor.section('Access').getByRole('link', { name: 'Kubeconfig that reads' }).click();
    writeFileSync(kubeconfig, readFileSync(await (await download).path()), { mode: 0o600 });
    // Its host has a name that only people's machines know: the gateway leads by it.
    const [, host = ''] = /server: https:\/\/([^:/\s]+)/.exec(readFileSync(kubeconfig, 'utf8')) ?? [];
    const way = ['--server', `https://${landscape.gateway}`, '--tls-server-name', host];
    assert.match(await kubectlBy(kubeconfig, ...way, 'get', 'nodes', '-o', 'name'), /^node\//);
    await assert.rejects(kubectlBy(kubeconfig, ...way, 'create', 'namespace', 'browser'), /forbidden/i);
  }));

test('the log of a pod is read on the page', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    const pods = await kubectl('member1', '-n', 'kube-system', 'get', 'pods', '-l', 'k8s-app=kube-dns', '-o', 'jsonpath={.items[0].metadata.name}');
    await visitor.visit('/shoots/garden-demo/member1');
    const logs = visitor.section('Logs');
    await logs.getByRole('combobox', { name: 'What Trellis runs in the cluster' }).selectOption(pods.trim());
    await logs.getByText(/CoreDNS-\d/).waitFor();
    assert.equal(new URL(visitor.page.url()).searchParams.get('pod'), pods.trim());
    await look(visitor, 'logs');
  }));
