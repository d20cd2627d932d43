// Pages as somebody sees them who comes to what is not there, or not for them.
import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, within } from '@testing-library/react';
import axe from 'axe-core';
import type { ComponentType } from 'react';
import { createMemoryRouter, RouterProvider } from 'react-router';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { AboutPage } from './app/AboutPage';
import { FleetPage } from './fleets/FleetPage';
import { FleetsPage } from './fleets/FleetsPage';
import { resetLive } from './live';
import { GardenPage } from './operators/GardenPage';
import { SeedPage } from './operators/SeedPage';
import { ProjectsPage } from './projects/ProjectsPage';
import { CreatePage } from './shoots/CreatePage';
import { EditPage } from './shoots/EditPage';
import { ShootPage } from './shoots/ShootPage';
import { ShootsPage } from './shoots/ShootsPage';
import { TerminalPage } from './terminal/TerminalPage';

type Answer = { code: number; body: unknown };
const good = (body: unknown): Answer => ({ code: 200, body });

/** What somebody may do. */
type May = (check: { resource: string; subresource: string; name: string }) => boolean;

/** What the server answers: requests by their path, subscriptions by their resource. */
interface Server {
  allowed: boolean | May;
  requests: Record<string, Answer>;
  lists: Record<string, unknown[] | { code: number; message: string }>;
}

function serve({ allowed, requests, lists }: Server) {
  vi.stubGlobal('fetch', (path: string, { body }: RequestInit = {}) => {
    const may: May = typeof allowed === 'boolean' ? () => allowed : allowed;
    const checks = path === '/api/rights' ? (JSON.parse(String(body)) as { checks: Parameters<May>[0][] }).checks : [];
    const answer =
      path === '/api/rights' ? good({ allowed: checks.map(may) }) : (requests[path] ?? good({ items: [] }));
    return Promise.resolve(new Response(JSON.stringify(answer.body), { status: answer.code }));
  });
  vi.stubGlobal(
    'WebSocket',
    class {
      onopen?: () => void;
      onmessage?: (event: { data: string }) => void;
      onclose?: (event: { code: number }) => void;

      constructor() {
        queueMicrotask(() => this.onopen?.());
      }

      send(text: string) {
        const { type, id, resource } = JSON.parse(text) as { type: string; id: string; resource: string };
        const list = lists[resource] ?? (resource === 'projects' ? [alpha] : []);
        if (type !== 'subscribe') return;
        if (!Array.isArray(list)) {
          this.tell({ type: 'error', id, error: list, final: true });
          return;
        }
        this.tell({ type: 'snapshot', id, items: list, first: true });
        this.tell({ type: 'sync', id, resourceVersion: '1' });
      }

      close() {
        this.onclose?.({ code: 1000 });
      }

      private tell(message: unknown) {
        queueMicrotask(() => this.onmessage?.({ data: JSON.stringify(message) }));
      }
    },
  );
}

const alpha = { uid: 'p1', name: 'alpha', projectNamespace: 'garden-alpha', stale: '2026-01-01T00:00:00Z' };

let router: ReturnType<typeof createMemoryRouter>;

function open(path: string, address: string, Page: ComponentType) {
  router = createMemoryRouter([{ path, Component: Page }], { initialEntries: [address] });
  const queries = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  render(
    <MantineProvider theme={createTheme({})} withCssVariables={false} withGlobalClasses={false} env="test">
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>,
  );
}

beforeEach(() => {
  vi.stubGlobal('matchMedia', () => ({
    matches: false,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }));
  vi.stubGlobal('scrollTo', () => undefined);
  vi.stubGlobal('ResizeObserver', function (this: object) {
    Object.assign(this, { observe: () => undefined, unobserve: () => undefined, disconnect: () => undefined });
  });
});
afterEach(() => {
  cleanup();
  resetLive();
  vi.unstubAllGlobals();
});

const shootPath = '/shoots/garden-alpha/none';
const fleetPath = '/fleets/garden-alpha/none';
const refused = { code: 403, message: 'shoots is forbidden' };
const broken = { code: 500, message: 'broken' };

describe('a page of what is not there, or not for who asks, says so and what to do', () => {
  it.each<[string, string, string, ComponentType, Partial<Server>, RegExp, string]>([
    [
      'shoots of no project',
      '/projects/:project/shoots',
      '/projects/none/shoots',
      ShootsPage,
      {},
      /no project none/,
      'Projects',
    ],
    [
      'a new shoot in none',
      '/projects/:project/create',
      '/projects/none/create',
      CreatePage,
      {},
      /no project none/,
      'Projects',
    ],
    [
      'a project that is not ready',
      '/projects/:project/shoots',
      '/projects/new/shoots',
      ShootsPage,
      { lists: { projects: [{ uid: 'p', name: 'new' }] } },
      /new is not ready yet/,
      'Projects',
    ],
    [
      'projects that cannot be read',
      '/projects/:project/shoots',
      '/projects/alpha/shoots',
      ShootsPage,
      { lists: { projects: broken } },
      /server has failed/,
      'Projects',
    ],
    ['the YAML of no shoot', '/shoots/:namespace/:name', shootPath, EditPage, {}, /no shoot none/, 'Projects'],
    [
      'the YAML of a shoot of others',
      '/shoots/:namespace/:name',
      shootPath,
      EditPage,
      { lists: { shoots: refused } },
      /You may not do this/,
      'Projects',
    ],
    ['no shoot', '/shoots/:namespace/:name', shootPath, ShootPage, {}, /no shoot none/, 'Shoots of alpha'],
    ['no fleet', '/fleets/:namespace/:name', fleetPath, FleetPage, {}, /no fleet none/, 'Fleets'],
    [
      'a fleet of others',
      '/fleets/:namespace/:name',
      fleetPath,
      FleetPage,
      { lists: { shoots: refused } },
      /You may not do this/,
      'Fleets',
    ],
    [
      'a shoot that is no fleet',
      '/fleets/:namespace/:name',
      fleetPath,
      FleetPage,
      { lists: { shoots: [{ uid: 's', name: 'none', namespace: 'garden-alpha' }] } },
      /none is no fleet/,
      'none',
    ],
    [
      'fleets of projects that cannot be read',
      '/fleets',
      '/fleets',
      FleetsPage,
      { lists: { projects: broken } },
      /server has failed/,
      'Projects',
    ],
    [
      'fleets of a project whose shoots cannot be read',
      '/fleets',
      '/fleets',
      FleetsPage,
      { lists: { shoots: broken } },
      /broken/,
      '',
    ],
    ['no seed', '/operations/seeds/:name', '/operations/seeds/none', SeedPage, {}, /no seed none/, 'Seeds'],
  ])('%s', async (_, path, address, page, server, wanted, way) => {
    serve({ allowed: false, requests: {}, lists: {}, ...server });
    open(path, address, page);
    const alert = await screen.findByRole('alert');
    expect(alert.textContent).toMatch(wanted);
    expect(screen.queryByText('Loading …')).toBeNull();
    if (way) expect(screen.getAllByRole('link', { name: way }).length).toBeGreaterThan(0);
  });

  it('says that there is no fleet only when it is known', async () => {
    serve({ allowed: false, requests: {}, lists: {} });
    open('/fleets', '/fleets', FleetsPage);
    expect(screen.getByText('Loading …')).toBeTruthy();
    expect(screen.queryByText(/no fleet/)).toBeNull();
    expect(await screen.findByText(/no fleet/)).toBeTruthy();
  });
});

describe('what a list is narrowed by stands in the address', () => {
  const mark = (label: string) => fireEvent.click(screen.getByLabelText(label));

  it.each<[string, string, string, ComponentType, string, string]>([
    ['projects', '/projects', '/projects', ProjectsPage, 'Only those that nobody uses', '?stale=1'],
    ['shoots', '/shoots', '/shoots', ShootsPage, 'Only what is not healthy', '?unhealthy=1'],
    [
      'installations',
      '/operations',
      '/operations?tab=installations',
      GardenPage,
      'Only what is not healthy',
      '?tab=installations&unhealthy=1',
    ],
  ])('%s', async (_, path, address, page, label, want) => {
    serve({ allowed: true, requests: {}, lists: {} });
    open(path, address, page);
    await screen.findByLabelText(label);
    mark(label);
    expect(router.state.location.search).toBe(want);
    fireEvent.change(screen.getByLabelText('Filter'), { target: { value: 'words' } });
    await vi.waitFor(() => expect(router.state.location.search).toBe(`${want}&q=words`));
  });
});

describe('a fleet', () => {
  const fleet = { uid: 's', name: 'none', namespace: 'garden-alpha', fleet: true };
  const object = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };

  it('shows rollouts and held deletions as they are told', async () => {
    const rollout = { number: 3, phase: 'Progressing', currentWave: 1, waves: [{ name: 'first', clusters: ['one'] }] };
    serve({
      allowed: true,
      requests: {},
      lists: {
        shoots: [fleet],
        resourcebindings: [{ uid: 'b', name: 'web-deployment', staged: true, object, rollout }],
        works: [{ uid: 'w', namespace: 'karmada-es-one', name: 'w', cluster: 'one', object, held: true }],
      },
    });
    open('/fleets/:namespace/:name', `${fleetPath}?tab=rollouts`, FleetPage);
    expect(await screen.findByText('first')).toBeTruthy();
    fireEvent.click(screen.getByRole('tab', { name: 'Held deletions' }));
    expect(await screen.findByRole('checkbox', { name: /Deployment shop\/web/ })).toBeTruthy();
  });
});

describe('parts of a page', () => {
  it('are shown by the address, which changes with them', async () => {
    serve({
      allowed: true,
      requests: {},
      lists: { shoots: [{ uid: 's', name: 'none', namespace: 'garden-alpha', fleet: true }] },
    });
    open('/fleets/:namespace/:name', `${fleetPath}?tab=objects&q=words`, FleetPage);
    const tabs = await screen.findByRole('tablist');
    expect(within(tabs).getByRole('tab', { selected: true }).textContent).toBe('Objects');
    fireEvent.click(within(tabs).getByRole('tab', { name: 'Moves' }));
    expect(router.state.location.search).toBe('?tab=moves');
  });
});

describe('a shoot', () => {
  const pool = { name: 'a', minimum: 1, maximum: 1, machine: { type: 't' } };
  const shoot = (workers: object[]) => ({
    metadata: { uid: 's', namespace: 'garden-alpha', name: 'one' },
    spec: { region: 'r', kubernetes: { version: '1.36.0' }, provider: { type: 'local', workers } },
    status: { lastOperation: { type: 'Create', state: 'Succeeded', progress: 100 } },
  });
  const command = 'trellisctl ssh --project alpha --shoot one';

  it('tells how one logs in to its machines', async () => {
    serve({ allowed: true, requests: {}, lists: { shoots: [shoot([pool])] } });
    open('/shoots/:namespace/:name', '/shoots/garden-alpha/one', ShootPage);
    expect(await screen.findByText(command)).toBeTruthy();
  });

  it('tells it only where there are machines, and to who may', async () => {
    serve({ allowed: true, requests: {}, lists: { shoots: [shoot([])] } });
    open('/shoots/:namespace/:name', '/shoots/garden-alpha/one', ShootPage);
    expect(await screen.findByText(/trellisctl kubeconfig/)).toBeTruthy();
    expect(screen.queryByText(command)).toBeNull();
  });

  it('tells what its machines use, and what runs in it says', async () => {
    const inside = '/api/shoot/garden-alpha/one';
    const usage = { cpu: '250000000n', memory: '1572864Ki' };
    const pods = `${inside}/api/v1/namespaces/kube-system/pods/dns`;
    serve({
      allowed: true,
      requests: {
        [`${inside}/apis/metrics.k8s.io/v1beta1/nodes`]: good({ items: [{ metadata: { name: 'n1' }, usage }] }),
        [pods]: good({ metadata: { name: 'dns' }, spec: { containers: [{ name: 'main' }] } }),
        [`${pods}/log?container=main&tailLines=500&follow=true`]: good('it <b>runs</b>'),
      },
      lists: {
        shoots: [shoot([pool])],
        nodes: [{ uid: 'n', name: 'n1', ready: 'True', pool: 'a' }],
        pods: [{ uid: 'p', name: 'dns' }],
      },
    });
    open('/shoots/:namespace/:name', '/shoots/garden-alpha/one?pod=dns', ShootPage);
    expect((await screen.findByLabelText('The last lines of dns')).textContent).toContain('<b>runs</b>');
    expect(await screen.findByText('1.5 GiB')).toBeTruthy();
    expect(screen.getByText('0.3')).toBeTruthy();
  });
});

describe('the operation on a shoot', () => {
  const working = (state: string) => ({
    metadata: { uid: 's', namespace: 'garden-alpha', name: 'one' },
    spec: { region: 'r', kubernetes: { version: '1.36.0' }, provider: { type: 'local', workers: [] } },
    status: {
      observedGeneration: 1,
      lastOperation: { type: 'Create', state, progress: 40, description: 'Deploying etcd' },
    },
  });
  const operation = (
    graph: string,
    labels = { 'gardener.cloud/role': 'operation', 'shoot.gardener.cloud/name': 'one' },
  ) => ({
    metadata: {
      uid: 'c',
      namespace: 'garden-alpha',
      name: 'one.operation',
      labels,
      ownerReferences: [{ kind: 'Shoot', name: 'one', uid: 's' }],
    },
    data: { graph },
  });
  const graph = (state: string, ended?: string) =>
    JSON.stringify({
      format: 1,
      type: 'Create',
      generation: 1,
      started: '2026-01-01T12:00:00Z',
      ended,
      tasks: [
        { name: 'Deploying namespace', state: 'Succeeded' },
        { name: 'Deploying etcd', after: [0], state, error: state === 'Running' ? '0 of 1 <b>ready</b>' : undefined },
        { name: 'Left out', after: [0], state: 'Skipped' },
      ],
    });
  const show = (shoot: object, map: object) => {
    serve({ allowed: true, requests: {}, lists: { shoots: [shoot], configmaps: [map] } });
    open('/shoots/:namespace/:name', '/shoots/garden-alpha/one', ShootPage);
  };

  it('is shown as a picture and as a list of stages', async () => {
    show(working('Processing'), operation(graph('Running')));
    const list = await screen.findByRole('list', { name: 'Stages of the operation' });
    expect(within(list).getByText(/Stage 1: 1 of 1 done/)).toBeTruthy();
    expect(within(list).getByText(/Stage 2: 0 of 1 done/).textContent).toMatch(/runs.*Deploying etcd.*<b>ready<\/b>/);
    const picture = await screen.findByRole('figure', { name: /Tasks of the operation/ });
    expect(within(picture).getByText('Left out')).toBeTruthy();
    expect(picture.querySelectorAll('style, script')).toHaveLength(0);
    const section = screen.getByRole('region', { name: 'Operation' });
    const { violations } = await axe.run(section, { rules: { 'color-contrast': { enabled: false } } });
    expect(violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')).toEqual([]);
  });

  it('is folded when it is done, until somebody wants to see it', async () => {
    show(working('Succeeded'), operation(graph('Succeeded', '2026-01-01T12:01:00Z')));
    const button = await screen.findByRole('button', { name: 'Show 2 tasks' });
    expect(screen.queryByRole('list', { name: 'Stages of the operation' })).toBeNull();
    fireEvent.click(button);
    expect(await screen.findByText(/Stage 2: 1 of 1 done/)).toBeTruthy();
    expect(button.getAttribute('aria-expanded')).toBe('true');
  });

  it.each<[string, object, RegExp]>([
    ['a hostile seed', operation('x'.repeat(1_000_000)), /larger than 64 KiB/],
    ['a malformed graph', operation('{"format":1,"tasks":[{"name":{}}]}'), /not what a gardenlet writes/],
    ['a ConfigMap of somebody else', operation(graph('Running'), {} as never), /somebody else/],
  ])('is told as far as the shoot knows it, with %s', async (_, map, want) => {
    show(working('Processing'), map);
    expect(await screen.findByText(want)).toBeTruthy();
    expect(screen.getByText('Deploying etcd')).toBeTruthy();
    expect(screen.queryByRole('figure')).toBeNull();
  });

  it('is not that of the try before', async () => {
    show(working('Error'), operation(graph('Failed', '2026-01-01T12:01:00Z')));
    expect(await screen.findByText('Deploying etcd')).toBeTruthy();
    expect(screen.queryByRole('button', { name: /tasks/ })).toBeNull();
  });
});

describe('terminals are offered', () => {
  const requests = { '/api/config': good({ terminal: true }) };
  const row = (workerless: boolean) => [
    { uid: 's', namespace: 'garden-alpha', name: 'one', seed: 'local', ...(workerless && { workerless }) },
  ];
  const offered = async (workerless: boolean, allowed: Server['allowed'], wanted: string[]) => {
    serve({ allowed, requests, lists: { shoots: row(workerless) } });
    open('/shoots/:namespace/:name/terminal', '/shoots/garden-alpha/one/terminal', TerminalPage);
    const buttons = () => screen.queryAllByRole('button').map(({ textContent }) => textContent);
    await vi.waitFor(() => expect(buttons()).toEqual(wanted));
  };
  const [shell, controlPlane] = ['Start a terminal', 'Start one in the control plane'];

  it('to admins of the project, and to operators in the control plane, by the access that they stored', async () => {
    await offered(false, true, [shell, controlPlane]);
    cleanup();
    await offered(false, ({ resource }) => resource === 'shoots', [shell, controlPlane]);
    cleanup();
    await offered(false, ({ resource, name }) => resource === 'secrets' && name === 'local.login', [controlPlane]);
    expect(screen.getByText(/Admins of the project/)).toBeTruthy();
  });

  it('not in clusters without nodes', async () => {
    await offered(true, true, [controlPlane]);
    expect(screen.getByText(/no nodes of its own/)).toBeTruthy();
  });

  it.each([
    ['with nodes', [{ name: 'a', minimum: 1, maximum: 1, machine: { type: 't' } }], false, true],
    ['without nodes', [], false, false],
    ['without nodes, for operators', [], true, true],
  ])('by a link to them: %s', async (_, workers, isOperator, isThere) => {
    const shoot = {
      metadata: { uid: 's', namespace: 'garden-alpha', name: 'one' },
      spec: { region: 'r', kubernetes: { version: '1.36.0' }, provider: { type: 'local', workers } },
      status: { seedName: 'local' },
    };
    serve({
      allowed: ({ resource, name }) => isOperator && resource === 'secrets' && name === 'local.login',
      requests,
      lists: { shoots: [shoot] },
    });
    open('/shoots/:namespace/:name', '/shoots/garden-alpha/one', ShootPage);
    await screen.findByRole('link', { name: 'YAML' });
    if (isThere) expect(await screen.findByRole('link', { name: 'Terminal' })).toBeTruthy();
    else expect(screen.queryByRole('link', { name: 'Terminal' })).toBeNull();
  });
});

describe('about the dashboard', () => {
  it('names what it is made of, with the licences', async () => {
    const react = { name: 'react', version: '19.3.1', licence: 'MIT', text: 'Permission is <b>granted</b>' };
    const mute = { name: 'mute', version: '1.0.0', licence: 'ISC', text: '' };
    serve({ allowed: false, requests: { '/licences.json': good([react, mute]) }, lists: {} });
    open('/about', '/about', AboutPage);
    expect(await screen.findByText('react 19.3.1 · MIT')).toBeTruthy();
    expect(screen.getByText('mute 1.0.0 · ISC')).toBeTruthy();
    expect(screen.getByText(react.text)).toBeTruthy();
  });
});
