// A shoot comes by clicks, while the dashboard's server and the garden's API go away and come back, changes, and goes.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { editorOf, setText, textOf } from './editor.ts';
import { kubectl, landscape, until } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, withVisitors, type Visitor } from './visitor.ts';

useBrowser();

const namespace = 'garden-demo';
const name = 'clicks';
const address = `/shoots/${namespace}/${name}`;

async function removeShoot() {
  const found = await kubectl('garden', '-n', namespace, 'get', 'shoot', name, '--ignore-not-found', '-o', 'name');
  if (found.trim() === '') return;
  await kubectl('garden', '-n', namespace, 'annotate', 'shoot', name, 'confirmation.gardener.cloud/deletion=true', '--overwrite');
  await kubectl('garden', '-n', namespace, 'delete', 'shoot', name, '--ignore-not-found', '--timeout=15m');
}

before(removeShoot);
after(removeShoot);

test('a shoot from its creation to its deletion, by clicks', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    await create(visitor);
    await visitor.mark();
    await visitor.section('Operation').getByRole('figure', { name: /^Tasks of the operation/ }).waitFor();
    await serverIsLost(visitor);
    await gardenIsLost();
    await visitor.section('Operation').getByText('Creation: done').waitFor();
    await tasksAreDone(visitor);
    await status(visitor, 'healthy');
    assert.ok(await visitor.isMarked(), 'the page was loaded anew');
    await look(visitor, 'shoot');
    await edit(visitor);
    if (landscape.longJourneys) {
      await sleepAndWake(visitor);
      await rotate(visitor);
    } else {
      console.log('Not done, as that takes minutes: hibernation, rotation. `make test-browser` does it.');
    }
    await remove(visitor);
  }));

async function create(visitor: Visitor) {
  const { page } = visitor;
  await visitor.visit('/projects/demo/shoots');
  await page.getByRole('link', { name: 'member1', exact: true }).waitFor();
  await look(visitor, 'shoots');
  await page.getByRole('link', { name: 'Create shoot' }).click();
  await visitor.heading('Create a shoot in demo').waitFor();
  const field = page.getByRole('textbox', { name: 'Name', exact: true });
  const submit = page.getByRole('button', { name: 'Create shoot' });
  await field.fill('Not_A_Name');
  await page.getByText('Lower-case letters, digits and single dashes, at most 20.').waitFor();
  assert.ok(await submit.isDisabled(), 'a shoot of that name can be created');
  await field.fill(name);
  const preview = page.getByLabel('The shoot as YAML');
  await preview.getByText('workers:').waitFor();
  await look(visitor, 'create-shoot');
  await page.getByRole('checkbox', { name: 'Without workers' }).check();
  await preview.getByText('workers:').waitFor({ state: 'hidden' });
  await submit.click();
  await visitor.heading(name).waitFor();
}

/** Each stage of the operation is done, without a new load of the page. */
async function tasksAreDone(visitor: Visitor) {
  const stages = visitor.section('Operation').getByRole('list', { name: 'Stages of the operation' }).getByRole('listitem');
  const isDone = (stage: string) => /: (\d+) of \1 done$/.test(stage.trim());
  await until('all tasks', () => stages.allInnerTexts(), (texts) => texts.length > 1 && texts.every(isDone));
}

/** status waits for what the page says first of the shoot. Its sign stands before. */
async function status(visitor: Visitor, word: string) {
  await visitor.section('Details').getByText(new RegExp(`^[^\\p{L}]*${word}$`, 'u')).first().waitFor();
}

/** The dashboard's server is gone until the page says so. */
async function serverIsLost({ page }: Visitor) {
  const notice = page.getByText('The connection to the server is lost.');
  const deployment = ['-n', 'garden', 'deployment/garden-dashboard'];
  const replicas = await kubectl('runtime', 'get', ...deployment, '-o', 'jsonpath={.spec.replicas}');
  try {
    await kubectl('runtime', 'scale', ...deployment, '--replicas=0');
    await notice.waitFor();
  } finally {
    await kubectl('runtime', 'scale', ...deployment, `--replicas=${replicas}`);
  }
  await notice.waitFor({ state: 'hidden' });
}

/** The garden's API is replaced, and answers again. */
async function gardenIsLost() {
  const names = await kubectl('runtime', '-n', 'garden', 'get', 'pods', '-o', 'name');
  const pods = names.split('\n').filter((pod) => pod.startsWith('pod/kube-apiserver-'));
  assert.ok(pods.length > 0, `no pod of the garden's API among ${names}`);
  await kubectl('runtime', '-n', 'garden', 'delete', '--now', ...pods);
  await until("the garden's API", () => kubectl('garden', 'get', '--raw', '/readyz'), (answer) => answer.trim() === 'ok');
}

async function edit(visitor: Visitor) {
  const { page } = visitor;
  await page.getByRole('link', { name: 'YAML', exact: true }).click();
  await visitor.heading(`YAML of ${name}`).waitFor();
  const editor = editorOf(visitor, 'YAML of the object');
  await editor.waitFor();
  const before = await textOf(editor);
  assert.match(before, /^ {2}purpose: evaluation$/m);
  const withPurpose = (purpose: string) => before.replace(/^ {2}purpose: .*$/m, `  purpose: ${purpose}`);
  const review = page.getByRole('button', { name: 'Show the difference' });
  await setText(editor, withPurpose('[broken'));
  await page.getByText('The text is no YAML yet; see the marks.').waitFor();
  assert.ok(await review.isDisabled(), 'what is no YAML can be applied');
  await setText(editor, withPurpose('holidays'));
  await page.getByRole('alert').getByText(/purpose/).first().waitFor();
  await setText(editor, withPurpose('testing'));
  await page.getByText('The garden would accept it.').waitFor();
  await look(visitor, 'shoot-yaml');
  await review.click();
  const dialog = page.getByRole('dialog', { name: 'What would change' });
  await dialog.getByText('testing').first().waitFor();
  await look(visitor, 'shoot-difference');
  await dialog.getByRole('button', { name: 'Apply' }).click();
  await visitor.heading(name).waitFor();
  await visitor.section('Details').getByText('testing', { exact: true }).waitFor();
}

const action = (visitor: Visitor, label: string) => visitor.section('Actions').getByRole('button', { name: label, exact: true });

async function sleepAndWake(visitor: Visitor) {
  await visitor.confirm(action(visitor, 'Hibernate'), 'Hibernate');
  await status(visitor, 'hibernated');
  await visitor.confirm(action(visitor, 'Wake up'), 'Wake up');
  await action(visitor, 'Hibernate').waitFor();
  await status(visitor, 'healthy');
}

async function rotate(visitor: Visitor) {
  const row = visitor.section('Rotation of credentials').getByRole('row').filter({ hasText: 'Certificate authorities' });
  await visitor.confirm(row.getByRole('button', { name: 'Start', exact: true }), 'Start');
  await row.getByText('Prepared').first().waitFor();
  await visitor.confirm(row.getByRole('button', { name: 'Complete', exact: true }), 'Complete');
  await row.getByText('Completed').first().waitFor();
}

async function remove(visitor: Visitor) {
  const { page } = visitor;
  await action(visitor, 'Delete shoot').click();
  const dialog = page.getByRole('dialog', { name: `Delete shoot ${name}` });
  const submit = dialog.getByRole('button', { name: 'Delete shoot', exact: true });
  assert.ok(await submit.isDisabled(), 'a shoot is deleted without its name');
  await look(visitor, 'delete-shoot');
  await dialog.getByRole('textbox', { name: `Type ${name} to go on` }).fill(name);
  await submit.click();
  await dialog.waitFor({ state: 'hidden' });
  assert.equal(new URL(page.url()).pathname, address);
  await page.getByText(`There is no shoot ${name}`).waitFor();
}
