// People log in, see what is theirs, and let others in.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { kubectl, landscape, until, type User } from './landscape.ts';
import { look } from './look.ts';
import { useBrowser, Visitor, withVisitors } from './visitor.ts';

useBrowser();

const project = 'browser';
const script = `<img src="x" onerror="alert(1)"><script>alert(2)</script>`;

async function removeProject() {
  const found = await kubectl('garden', 'get', 'project', project, '--ignore-not-found', '-o', 'name');
  if (found.trim() === '') return;
  await kubectl('garden', 'annotate', 'project', project, 'confirmation.gardener.cloud/deletion=true', '--overwrite');
  await kubectl('garden', 'delete', 'project', project, '--ignore-not-found', '--timeout=5m');
}

before(removeProject);
after(removeProject);

test('each user of the landscape logs in', () =>
  withVisitors(3, async (...them) => {
    const users: User[] = ['operator', 'project-admin', 'viewer'];
    await look(await atLogIn(them[0]), 'login');
    for (const [i, user] of users.entries()) {
      const visitor = them[i] as Visitor;
      await visitor.loggedIn(user);
      assert.equal((await visitor.session()).user, `login:${user}`);
      await visitor.page.getByRole('link', { name: 'demo', exact: true }).first().waitFor();
      await look(visitor, `projects-${user}`);
    }
  }));

async function atLogIn(visitor: Visitor | undefined): Promise<Visitor> {
  assert.ok(visitor);
  await visitor.page.goto('/projects');
  await visitor.page.waitForURL((url) => url.pathname === '/login' && url.searchParams.get('next') === '/projects');
  await visitor.page.getByRole('link', { name: /^Log in by / }).waitFor();
  return visitor;
}

test('a wrong password makes no session', () =>
  withVisitors(1, async (visitor) => {
    await visitor.logIn('viewer', 'wrong');
    await visitor.page.getByRole('alert').waitFor();
    assert.deepEqual(await visitor.context.cookies(landscape.dashboard).then(sessionsIn), []);
  }));

const sessionsIn = (cookies: { name: string }[]) =>
  cookies.map(({ name }) => name).filter((name) => name.startsWith('__Host-trellis-session'));

test('who logs out is out, and so is who has a copy of the cookie', () =>
  withVisitors(2, async (visitor, thief) => {
    await visitor.logIn('viewer');
    await visitor.heading('Projects').waitFor();
    await thief.context.addCookies(await visitor.context.cookies(landscape.dashboard));
    await visitor.page.getByRole('button', { name: 'Log out' }).click();
    await visitor.page.getByRole('link', { name: /^Log in by / }).waitFor();
    assert.deepEqual(sessionsIn(await visitor.context.cookies(landscape.dashboard)), []);
    await thief.page.goto('/login');
    assert.equal((await thief.ask('/api/session')).status, 401);
  }));

test('a viewer is offered nothing that they may not do', () =>
  withVisitors(1, async (visitor) => {
    const { page } = visitor;
    await visitor.loggedIn('viewer');
    const navigation = page.getByRole('navigation', { name: 'Main' });
    await navigation.getByRole('link', { name: 'Fleets' }).waitFor();
    // Everybody may found a project.
    await page.getByRole('button', { name: 'Create project' }).waitFor();
    for (const name of ['All shoots', 'The garden']) {
      assert.equal(await navigation.getByRole('link', { name }).count(), 0, name);
    }
    await visitor.visit('/projects/demo/shoots');
    await page.getByRole('link', { name: 'member1', exact: true }).waitFor();
    await page.getByText('Admins of the project may do this.').first().waitFor();
    await nothingCalled(visitor, 'Create shoot');
    await look(visitor, 'shoots-viewer');
    await visitor.visit('/shoots/garden-demo/member1');
    await visitor.section('Operation').getByText(': done').first().waitFor();
    await nothingCalled(visitor, 'Hibernate', 'Reconcile', 'Delete shoot', 'Start', 'Start all', 'Change');
    await visitor.visit('/operations');
    await page.getByText('Operators of the garden may do this.').waitFor();
    await visitor.visit('/nowhere');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await look(visitor, 'not-found');
    await mayNotChange(visitor);
  }));

async function nothingCalled(visitor: Visitor, ...names: string[]) {
  await visitor.settled();
  for (const name of names) {
    for (const role of ['button', 'link'] as const) {
      assert.equal(await visitor.page.getByRole(role, { name, exact: true }).count(), 0, `${role} ${name}`);
    }
  }
}

/** What is not offered is refused, too. */
async function mayNotChange(visitor: Visitor) {
  const { csrfToken } = await visitor.session();
  const answer = await visitor.ask('/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/member1', {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/merge-patch+json', 'X-CSRF-Token': csrfToken },
    body: JSON.stringify({ spec: { hibernation: { enabled: true } } }),
  });
  assert.equal(answer.status, 403, answer.text);
  assert.match(answer.text, /Forbidden/);
}

test('a member who is invited sees the project, and another does not', () =>
  withVisitors(3, async (operator, admin, viewer) => {
    await operator.loggedIn('operator');
    await createProject(operator);
    await addMember(operator, 'login:project-admin', ['Admin', 'User access manager']);
    await admin.loggedIn('project-admin');
    await seesProject(admin);
    await viewer.loggedIn('viewer');
    await seesNoProject(viewer);
    await admin.visit(`/projects/${project}`);
    await addMember(admin, 'login:viewer', []);
    await look(admin, 'project');
    await seesProject(viewer);
    await deleteProject(operator);
  }));

async function createProject(operator: Visitor) {
  const { page } = operator;
  await page.getByRole('button', { name: 'Create project' }).click();
  const dialog = page.getByRole('dialog');
  const name = dialog.getByRole('textbox', { name: 'Name', exact: true });
  await name.fill('much-too-long');
  await dialog.getByText('At most 10 characters.', { exact: true }).waitFor();
  await look(operator, 'create-project');
  await name.fill(project);
  await dialog.getByRole('textbox', { name: 'Description' }).fill(script);
  await dialog.getByRole('button', { name: 'Create project' }).click();
  await operator.heading(`Project ${project}`).waitFor();
  await page.getByText(script).first().waitFor();
}

async function addMember(visitor: Visitor, name: string, roles: string[]) {
  const members = visitor.section('Members');
  await members.getByRole('button', { name: 'Add member' }).click();
  const dialog = visitor.page.getByRole('dialog');
  await dialog.getByRole('combobox', { name: 'Kind' }).selectOption({ label: 'User' });
  await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill(name);
  for (const role of roles) await dialog.getByRole('checkbox', { name: role, exact: true }).check();
  await dialog.getByRole('button', { name: 'Add member' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await members.getByRole('row').filter({ hasText: name }).waitFor();
}

const projectLink = ({ page }: Visitor) => page.getByRole('table', { name: 'Projects' }).getByRole('link', { name: project, exact: true });

async function seesProject(visitor: Visitor) {
  await until(
    `the list of projects with ${project}`,
    async () => {
      await visitor.visit('/projects');
      return projectLink(visitor).count();
    },
    (count) => count === 1,
  );
  await visitor.page.getByText(script).first().waitFor();
}

async function seesNoProject(visitor: Visitor) {
  await visitor.visit('/projects');
  await visitor.page.getByRole('link', { name: 'demo', exact: true }).first().waitFor();
  assert.equal(await projectLink(visitor).count(), 0);
  await visitor.visit(`/projects/${project}`);
  await visitor.page.getByRole('alert').getByText(`There is no project ${project} for you`).waitFor();
}

async function deleteProject(operator: Visitor) {
  const { page } = operator;
  await operator.visit(`/projects/${project}`);
  await operator.section('Delete project').getByRole('button', { name: 'Delete project' }).click();
  const dialog = page.getByRole('dialog');
  const submit = dialog.getByRole('button', { name: 'Delete project' });
  assert.ok(await submit.isDisabled(), 'a project is deleted without its name');
  await dialog.getByRole('textbox', { name: `Type ${project} to go on` }).fill(project);
  await submit.click();
  await operator.heading('Projects').waitFor();
}

test('pages can be read in Chinese', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('viewer');
    await visitor.page.getByRole('combobox', { name: 'Language' }).selectOption('zh');
    await visitor.heading('项目').waitFor();
    await look(visitor, 'projects-chinese');
  }));

/** Every page of the dashboard, with each of its parts. */
async function everyPage(): Promise<string[]> {
  const seed = (await kubectl('garden', 'get', 'seeds', '-o', 'jsonpath={.items[0].metadata.name}')).trim();
  const [shoot, fleet] = ['/shoots/garden-demo/member1', '/fleets/garden-demo/fleet'];
  const tabs = (path: string, ...names: string[]) => names.map((name) => `${path}?tab=${name}`);
  return [
    '/projects',
    '/projects/demo',
    '/projects/demo/shoots',
    '/projects/demo/create',
    '/shoots',
    shoot,
    `${shoot}/yaml`,
    `${shoot}/terminal`,
    '/fleets',
    ...tabs(fleet, 'members', 'objects', 'rollouts', 'deletions', 'moves'),
    `${fleet}/object?apiVersion=apps/v1&kind=Deployment&namespace=default&name=none`,
    `${fleet}/plan`,
    ...tabs('/operations', 'glance', 'seeds', 'managedseeds', 'installations', 'expiring', 'backups'),
    `/operations/seeds/${seed}`,
    '/about',
    '/nowhere',
  ];
}

test('no page is wider than a phone, or than a small screen', async () => {
  const paths = await everyPage();
  const wide: string[] = [];
  const sizes = [
    { width: 390, height: 800 },
    { width: 1280, height: 900 },
  ];
  for (const size of sizes) {
    const visitor = await Visitor.open(size);
    await visitor.loggedIn('operator');
    for (const path of paths) {
      await visitor.visit(path);
      await visitor.page.getByRole('heading', { level: 1 }).waitFor();
      await visitor.settled();
      const beyond = await visitor.page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (beyond > 0) wide.push(`${path} is ${beyond} pixels wider than ${size.width}`);
      if (size === sizes[0] && path === '/shoots/garden-demo/member1') await look(visitor, 'shoot-phone');
    }
    visitor.fine();
  }
  assert.deepEqual(wide, []);
});
