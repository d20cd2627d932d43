// A fleet is asked what would happen, told to do it, says why it did, and holds deletions until somebody means them.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { editorOf, setText } from './editor.ts';
import { apply, kubectl, until } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, withVisitors, type Visitor } from './visitor.ts';

useBrowser();

const member = 'member2';
const fleet = '/fleets/garden-demo/fleet';
const selector = 'test=browser';

const policy = (name: string, selectors: string) => `---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ${name}, namespace: default}
spec:
  resourceSelectors: [${selectors}]
  placement: {clusterAffinity: {clusterNames: [${member}]}}
`;

const application = `apiVersion: apps/v1
kind: Deployment
metadata: {name: clicks, namespace: default, labels: {app: clicks}}
spec:
  replicas: 1
  selector: {matchLabels: {app: clicks}}
  template:
    metadata: {labels: {app: clicks}}
    spec: {containers: [{name: nginx, image: nginx}], terminationGracePeriodSeconds: 1}
${policy('clicks', '{apiVersion: apps/v1, kind: Deployment, name: clicks}')}`;

/** many is more than may be deleted in a member without a confirmation. */
const many = 60;

const configMaps = policy('browser', '{apiVersion: v1, kind: ConfigMap, labelSelector: {matchLabels: {test: browser}}}') +
  Array.from({ length: many }, (_, i) => `---
{apiVersion: v1, kind: ConfigMap, metadata: {name: browser-${i}, namespace: default, labels: {test: browser}}}
`).join('');

const rolled = 'rolled-by-clicks';

/** inWaves is a Deployment whose next version waits after member2 until somebody lets it go on. */
const inWaves = (version: string) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${rolled}, namespace: default, labels: {app: ${rolled}}}
spec:
  replicas: 1
  selector: {matchLabels: {app: ${rolled}}}
  template:
    metadata: {labels: {app: ${rolled}}, annotations: {version: ${version}}}
    spec: {containers: [{name: nginx, image: nginx}], terminationGracePeriodSeconds: 1}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: ${rolled}, namespace: default}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: ${rolled}}]
  placement: {clusterAffinity: {clusterNames: [member1, member2]}}
  rollout: {waves: [{name: canary, clusterAffinity: {clusterNames: [member2]}, pause: true}]}
`;

async function removeAll() {
  await kubectl('fleet', 'delete', 'configmaps', '-l', selector, '--ignore-not-found');
  await kubectl('fleet', 'delete', 'deployments', 'clicks', rolled, '--ignore-not-found');
  await kubectl('fleet', 'delete', 'propagationpolicies', 'browser', 'clicks', rolled, '--ignore-not-found');
}

before(removeAll);
after(removeAll);

test('a deployment is planned, saved and explained', () =>
  withVisitors(2, async (visitor, other) => {
    const { page } = visitor;
    await visitor.loggedIn('project-admin');
    await page.getByRole('link', { name: 'Fleets' }).click();
    const link = page.getByRole('table', { name: 'Fleets' }).getByRole('link', { name: 'fleet', exact: true });
    await link.waitFor();
    await look(visitor, 'fleets');
    await link.click();
    await visitor.heading('Fleet fleet').waitFor();
    await page.getByRole('row').filter({ hasText: member }).waitFor();
    await look(visitor, 'fleet');
    for (const tab of ['Rollouts', 'Moves']) {
      await page.getByRole('tab', { name: tab, exact: true }).click();
      await page.getByRole('tabpanel', { name: tab, exact: true }).waitFor();
      await look(visitor, `fleet-${tab.toLowerCase()}`);
    }
    await page.getByRole('link', { name: 'Plan', exact: true }).click();
    await setText(editorOf(visitor, 'Policies and objects as YAML'), application);
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    const planned = visitor.section('Deployment default/clicks');
    await planned.getByRole('row').filter({ hasText: member }).getByText('added').waitFor();
    await look(visitor, 'plan');
    assert.equal((await kubectl('fleet', 'get', 'deployment', 'clicks', '--ignore-not-found', '-o', 'name')).trim(), '', 'the plan changed the fleet');
    await other.loggedIn('project-admin');
    await other.visit(`${fleet}?tab=objects`);
    await visitor.confirm(page.getByRole('button', { name: 'Save 2 objects', exact: true }), 'Save 2 objects');
    await explained(other);
  }));

/** explained begins on a page that was opened before the deployment came, and hears of it by itself. */
async function explained(visitor: Visitor) {
  const { page } = visitor;
  const link = page.getByRole('link', { name: 'Deployment default/clicks' });
  await link.waitFor();
  await look(visitor, 'fleet-objects');
  await link.click();
  await visitor.heading('Deployment default/clicks').waitFor();
  const why = visitor.section('Why here and not there');
  await why.getByRole('row').filter({ hasText: member }).getByText('chosen').waitFor();
  await why.getByRole('row').filter({ hasText: 'member1' }).getByText('does not fit').waitFor();
  await look(visitor, 'why');
  // Before the others use up what may be deleted.
  await removeAll();
}

const versionIn = (cluster: string) =>
  kubectl(cluster, 'get', 'deployment', rolled, '-o', 'jsonpath={.spec.template.metadata.annotations.version}');

const hasVersion = (cluster: string, version: string) => until(`${version} in ${cluster}`, () => versionIn(cluster), (found) => found === version);

test('a rollout goes on and back by clicks', () =>
  withVisitors(1, async (visitor) => {
    const { page } = visitor;
    await visitor.loggedIn('project-admin');
    await apply('fleet', inWaves('one'));
    await hasVersion('member1', 'one');
    await visitor.visit(`${fleet}?tab=rollouts`);
    const rollout = visitor.section(`Deployment default/${rolled}`);
    await rollout.getByText('Completed').first().waitFor();
    await apply('fleet', inWaves('two'));
    await hasVersion('member2', 'two');
    await rollout.getByText('Paused').first().waitFor();
    assert.equal(await versionIn('member1'), 'one', 'the second wave did not wait');
    await look(visitor, 'rollout');
    await visitor.confirm(rollout.getByRole('button', { name: 'Resume', exact: true }), 'Resume');
    await hasVersion('member1', 'two');
    await rollout.getByText('Completed').first().waitFor();
    await rollout.getByRole('button', { name: 'Undo', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('combobox', { name: 'Back to' }).waitFor();
    await dialog.getByRole('button', { name: 'Undo', exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
    for (const cluster of ['member1', 'member2']) await hasVersion(cluster, 'one');
    await rollout.getByText('RolledBack').first().waitFor();
    await removeAll();
  }));

test('deletions are held until they are confirmed', () =>
  withVisitors(1, async (visitor) => {
    const { page } = visitor;
    await visitor.loggedIn('project-admin');
    await apply('fleet', configMaps);
    await inMember((count) => count === many);
    await visitor.visit(`${fleet}?tab=deletions`);
    await kubectl('fleet', 'delete', 'configmaps', '-l', selector, '--wait=false');
    const held = page.getByRole('checkbox', { name: /browser-/ });
    await held.nth(many / 3).waitFor();
    await visitor.settled();
    await look(visitor, 'deletions');
    assert.ok((await namesInMember()) > 0, 'held deletions were done');
    await until('the end of held deletions', () => confirmAll(visitor), (left) => left === 0);
    await inMember((count) => count === 0);
  }));

/** confirmAll confirms what is held now, and tells how much came meanwhile. */
async function confirmAll(visitor: Visitor): Promise<number> {
  const { page } = visitor;
  const held = page.getByRole('checkbox', { name: /browser-/ });
  if ((await held.count()) === 0) return namesInMember();
  for (const box of await held.all()) await box.check();
  await page.getByRole('button', { name: /^Confirm \d+ deletions$/ }).click();
  const dialog = page.getByRole('dialog');
  const submit = dialog.getByRole('button', { name: 'Delete for good' });
  assert.ok(await submit.isDisabled(), 'deletions are confirmed without the name of the fleet');
  await dialog.getByRole('textbox', { name: 'Type fleet to go on' }).fill('fleet');
  await submit.click();
  await dialog.waitFor({ state: 'hidden' });
  await visitor.visit(`${fleet}?tab=deletions`);
  return (await held.count()) + (await namesInMember());
}

async function namesInMember(): Promise<number> {
  return (await kubectl(member, 'get', 'configmaps', '-l', selector, '-o', 'name')).split('\n').filter(Boolean).length;
}

const inMember = (accept: (count: number) => boolean) => until(`ConfigMaps in ${member}`, namesInMember, accept);
