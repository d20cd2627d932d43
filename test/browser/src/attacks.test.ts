// Attackers: another site, another user, a page that asks for more than it may, and text that would be a script.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { editorOf } from './editor.ts';
import { apply, kubectl, landscape } from './landscape.ts';
import { useBrowser, withVisitors, type Visitor } from './visitor.ts';

useBrowser();

const shoot = '/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/member1';
const script = `<img src="x" onerror="alert(1)"><script>alert(2)</script>`;
const annotation = 'example.org/browser';
const event = 'browser-script';

async function removeAll() {
  await kubectl('garden', '-n', 'garden-demo', 'annotate', 'shoot', 'member1', `${annotation}-`);
  await kubectl('garden', '-n', 'garden-demo', 'delete', 'event', event, '--ignore-not-found');
}

before(removeAll);
after(removeAll);

// One of a stranger, and one of somebody who has a host beside the dashboard: to browsers, that is the same site.
const others = ['https://stranger.example', `https://other.${new URL(landscape.dashboard).hostname.split('.').slice(1).join('.')}`];

for (const other of others) {
  test(`pages of ${other} do nothing with the session of who visits them`, () =>
    withVisitors(1, async (visitor) => {
      await visitor.loggedIn('project-admin');
      const page = await visitor.context.newPage();
      await page.route(`${other}/**`, (route) => route.fulfill({ contentType: 'text/html', body: '<h1>Win a cluster</h1>' }));
      await page.goto(`${other}/`);
      const told = await page.evaluate(attack, { dashboard: landscape.dashboard, shoot });
      assert.deepEqual(told, { read: 'refused', write: 'refused', socket: 'refused' });
      await page.evaluate(logOutFromElsewhere, `${landscape.dashboard}/api/logout`);
      const answer = page.waitForResponse((response) => response.url() === `${landscape.dashboard}/api/login/token`);
      await page.evaluate(sendForm, `${landscape.dashboard}/api/login/token`);
      assert.equal((await answer).status(), 403);
      assert.equal((await visitor.session()).user, 'login:project-admin');
      const annotations = await kubectl('garden', '-n', 'garden-demo', 'get', 'shoot', 'member1', '-o', 'jsonpath={.metadata.annotations}');
      assert.doesNotMatch(annotations, /by-another-site/);
      await page.close();
    }));
}

/** attack runs in the other site's page. */
async function attack({ dashboard, shoot }: { dashboard: string; shoot: string }) {
  const refused = () => 'refused';
  const read = await fetch(`${dashboard}/api/session`, { credentials: 'include' }).then((answer) => answer.text(), refused);
  const write = await fetch(dashboard + shoot, {
    method: 'PATCH',
    credentials: 'include',
    headers: { 'Content-Type': 'application/merge-patch+json' },
    body: JSON.stringify({ metadata: { annotations: { 'by-another-site': 'yes' } } }),
  }).then((answer) => String(answer.status), refused);
  const socket = await new Promise<string>((resolve) => {
    const opened = new WebSocket(`${dashboard.replace('https', 'wss')}/api/live`, 'trellis.live.v1');
    opened.onopen = () => resolve('opened');
    opened.onerror = () => resolve('refused');
  });
  return { read, write, socket };
}

/** logOutFromElsewhere sends what needs no leave of the other site; what is answered it cannot read. */
async function logOutFromElsewhere(address: string) {
  await fetch(address, { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' }).catch(() => undefined);
}

/** sendForm logs the visitor in as the attacker, if it can. */
function sendForm(address: string) {
  const form = document.createElement('form');
  form.method = 'post';
  form.enctype = 'text/plain';
  form.action = address;
  const field = document.createElement('input');
  field.name = '{"token":"';
  field.value = '"}';
  form.append(field);
  document.body.append(form);
  form.submit();
}

test('the dashboard is in no frame of another site', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('viewer');
    const page = await visitor.context.newPage();
    const [other] = others;
    await page.route(`${other}/**`, (route) => route.fulfill({ contentType: 'text/html', body: `<iframe src="${landscape.dashboard}/projects"></iframe>` }));
    await page.goto(`${other}/`);
    const inside = page.frames()[1];
    assert.ok(inside);
    assert.equal(await inside.getByRole('heading', { name: 'Projects' }).count(), 0);
    assert.doesNotMatch(inside.url(), /\/projects$/);
    await page.close();
  }));

test("another user's cookie and token are of no use", () =>
  withVisitors(3, async (admin, viewer, third) => {
    await admin.loggedIn('project-admin');
    await viewer.loggedIn('viewer');
    const theirs = await sessionCookies(admin);
    const own = await sessionCookies(viewer);
    for (const cookie of [...theirs, ...own]) {
      assert.ok(cookie.httpOnly && cookie.secure && cookie.sameSite === 'Strict' && cookie.path === '/', JSON.stringify({ ...cookie, value: '' }));
    }
    assert.equal(await viewer.page.evaluate(() => document.cookie), '');
    const { csrfToken } = await admin.session();
    for (const token of [csrfToken, '', `${(await viewer.session()).csrfToken}x`]) {
      const answer = await viewer.ask('/api/logout', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': token }, body: '{}' });
      assert.equal(answer.status, 403, answer.text);
      assert.match(answer.text, /CSRF/);
    }
    await spliced(third, theirs, own);
  }));

const sessionCookies = async ({ context }: Visitor) =>
  (await context.cookies(landscape.dashboard)).filter(({ name }) => name.startsWith('__Host-trellis-session'));

/** Half of one cookie and half of another make no session, nor does one with a letter changed. */
async function spliced(visitor: Visitor, theirs: { name: string; value: string }[], own: { name: string; value: string }[]) {
  const [first, second] = [theirs[0]?.value ?? '', own[0]?.value ?? ''];
  assert.ok(first.length > 40 && second.length > 40);
  const middle = first.length >> 1;
  const changed = first.slice(0, middle) + (first[middle] === 'A' ? 'B' : 'A') + first.slice(middle + 1);
  for (const value of [first.slice(0, middle) + second.slice(second.length >> 1), changed]) {
    const others = theirs.slice(1).map(({ name, value }) => ({ name, value }));
    const made = [{ name: theirs[0]?.name ?? '', value }, ...others];
    await visitor.context.addCookies(made.map((cookie) => ({ ...cookie, url: landscape.dashboard, secure: true, httpOnly: true, sameSite: 'Strict' as const })));
    await visitor.page.goto('/login');
    assert.equal((await visitor.ask('/api/session')).status, 401);
    await visitor.context.clearCookies();
  }
}

test('a script on a page gets no credential, and leaves the paths of the proxy by none', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    const { csrfToken } = await visitor.session();
    const headers = { 'Content-Type': 'application/json', 'X-CSRF-Token': csrfToken };
    const inShoot = '/api/shoot/garden-demo/member1';
    for (const [method, path] of [
      ['POST', `${shoot}/adminkubeconfig`],
      ['POST', `${shoot}/viewerkubeconfig`],
      ['POST', '/api/garden/api/v1/namespaces/garden-demo/serviceaccounts/default/token'],
      ['GET', '/api/kubeconfig/shoot/garden-demo/member1?level=admin&expirationSeconds=3600'],
      ['GET', '/api/garden/metrics'],
      ['GET', '/api/garden/logs/'],
      ['GET', '/api/garden/debug/pprof/'],
      ['GET', '/api/garden/apis/apiregistration.k8s.io/v1/apiservices'],
      ['GET', '/api/garden/api/v1/namespaces/garden-demo/configmaps?watch=true'],
      ['GET', '/api/garden/api/v1/namespaces/garden-demo%2f..%2fkube-system/configmaps'],
      ['GET', '/api/garden/api/v1/namespaces/garden-demo/%2e%2e/%2e%2e/nodes'],
      ['GET', '/api/garden/api/v1/namespaces/garden-demo/services/http:x:80/proxy/'],
      ['GET', '/api/garden//api/v1/namespaces'],
      ['GET', '/api/garden/https:%2f%2fstranger.example/'],
      ['GET', `${inShoot}/api/v1/namespaces/kube-system/pods/x/exec?command=id`],
      ['GET', `${inShoot}/api/v1/nodes/x/proxy/pods`],
      ['POST', `${inShoot}/api/v1/namespaces/kube-system/serviceaccounts/default/token`],
      ['POST', `${inShoot}/apis/certificates.k8s.io/v1/certificatesigningrequests`],
      ['GET', '/api/shoot/garden-demo/..%2f..%2fgarden/api'],
      ['GET', '/api/shoot/kube-system/none/api'],
    ] as const) {
      const answer = await visitor.ask(path, { method, headers, ...(method === 'POST' ? { body: '{}' } : {}) });
      assert.ok(answer.status >= 400 && answer.status < 500, `${method} ${path}: ${answer.status} ${answer.text.slice(0, 300)}`);
    }
    const secrets = await visitor.ask('/api/garden/api/v1/namespaces/garden-demo/secrets');
    assert.doesNotMatch(secrets.text, /"(data|stringData)":/);
    const inCluster = await visitor.ask(`${inShoot}/api/v1/namespaces/kube-system/secrets`);
    assert.doesNotMatch(inCluster.text, /"(data|stringData)":/);
    // What the browser itself makes of dots leads to a page, or to a path that is refused.
    const climbed = await visitor.ask('/api/garden/../../metrics');
    assert.match(climbed.type, /^text\/html/);
  }));

test('a script in what the garden stores is text', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('project-admin');
    const { page } = visitor;
    // The API takes no such label.
    await assert.rejects(kubectl('garden', '-n', 'garden-demo', 'label', 'shoot', 'member1', `example.org/browser=${script}`));
    await kubectl('garden', '-n', 'garden-demo', 'annotate', 'shoot', 'member1', `${annotation}=${script}`, '--overwrite');
    await visitor.visit('/shoots/garden-demo/member1');
    await tellEvent();
    await visitor.section('Events').getByText(script).first().waitFor();
    await visitor.visit('/shoots/garden-demo/member1/yaml');
    await editorOf(visitor, 'YAML of the object').getByText('onerror').first().waitFor();
    await visitor.visit(`/projects/demo/shoots?q=${encodeURIComponent('<script>alert(2)</script>')}&sort=${encodeURIComponent(script)}`);
    await page.getByText('No shoot matches the filter.').waitFor();
    await visitor.visit(`/fleets/garden-demo/fleet/object?apiVersion=v1&kind=${encodeURIComponent(script)}&name=${encodeURIComponent(script)}`);
    await visitor.visit(`/login?error=other&message=${encodeURIComponent(script)}&next=${encodeURIComponent('javascript:alert(3)')}`);
    assert.equal(await page.evaluate(() => document.querySelectorAll('img[src=x]').length), 0);
    assert.equal(new URL(page.url()).origin, landscape.dashboard);
  }));

async function tellEvent() {
  const uid = await kubectl('garden', '-n', 'garden-demo', 'get', 'shoot', 'member1', '-o', 'jsonpath={.metadata.uid}');
  const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
  await apply('garden', JSON.stringify({
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: event, namespace: 'garden-demo' },
    involvedObject: { apiVersion: 'core.gardener.cloud/v1beta1', kind: 'Shoot', namespace: 'garden-demo', name: 'member1', uid },
    type: 'Warning',
    reason: 'Browser',
    message: script,
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    source: { component: script },
  }));
}

test('the log-in leads nowhere else', () =>
  withVisitors(1, async (visitor) => {
    await visitor.loggedIn('viewer');
    for (const next of ['https://stranger.example/', '//stranger.example/', '/\\stranger.example/', 'javascript:alert(1)']) {
      await visitor.page.goto(`/login?next=${encodeURIComponent(next)}`);
      await visitor.heading('Projects').waitFor();
      assert.equal(new URL(visitor.page.url()).origin, landscape.dashboard, next);
    }
  }));
