import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import {
  focusOf,
  graphIn,
  graphStates,
  isPresent,
  layoutOf,
  parseGraph,
  stageList,
  stagesOf,
  type Graph,
  type GraphTask,
} from './graph';
import type { Shoot } from './types';

const task = (name: string, state: GraphTask['state'] = 'Pending', after: number[] = []): GraphTask => ({
  name,
  state,
  after,
});
const tasks = [
  task('namespace', 'Succeeded'),
  task('etcd', 'Running', [0]),
  task('left out', 'Skipped', [0]),
  task('infrastructure', 'Failed', [0]),
  task('kube-apiserver', 'Pending', [1, 2]),
];
const graph: Graph = { format: 1, type: 'Create', generation: 2, started: '2026-01-01T12:00:00Z', tasks };
const text = (changes: object) => JSON.stringify({ ...graph, ...changes });
const withTask = (changes: object) => text({ tasks: [tasks[0], { ...tasks[1], ...changes }] });

describe('parseGraph', () => {
  it('reads what a gardenlet writes', () => {
    expect(parseGraph(text({}))).toEqual({ graph });
    expect(parseGraph(text({ tasks: null })).graph?.tasks).toEqual([]);
  });

  it('knows the states and bounds that gardenlet has', () => {
    const go = readFileSync('../pkg/operationgraph/graph.go', 'utf8');
    expect([...go.matchAll(/State = "(\w+)"/g)].map(([, state]) => state)).toEqual([...graphStates]);
    expect(go).toContain('MaxSize = 64 << 10');
    expect(go).toContain('MaxTasks = 256');
    expect(go).toContain('maxName, maxText = 128, 400');
  });

  it.each<[string, string, string]>([
    ['nothing', '', 'graph.malformed'],
    ['no object', 'null', 'graph.malformed'],
    ['a list', '[]', 'graph.format'],
    ['what is huge', `"${'x'.repeat(70_000)}"`, 'graph.tooLarge'],
    ['another format', text({ format: 2 }), 'graph.format'],
    ['a number as type', text({ type: 7 }), 'graph.malformed'],
    ['no begin', text({ started: undefined }), 'graph.malformed'],
    ['a begin that is none', text({ started: 'soon' }), 'graph.malformed'],
    ['a generation that is none', text({ generation: -1 }), 'graph.malformed'],
    ['tasks that are none', text({ tasks: { length: 1 } }), 'graph.malformed'],
    ['too many tasks', text({ tasks: Array.from({ length: 300 }, (_, i) => task(`${i}`)) }), 'graph.malformed'],
    ['a task that is none', text({ tasks: [null] }), 'graph.malformed'],
    ['names twice', text({ tasks: [tasks[0], tasks[0]] }), 'graph.malformed'],
    ['an object as name', withTask({ name: { toString: 'x' } }), 'graph.malformed'],
    ['a long name', withTask({ name: 'x'.repeat(129) }), 'graph.malformed'],
    ['a state of tomorrow', withTask({ state: 'Dancing' }), 'graph.malformed'],
    ['a task after itself', withTask({ after: [1] }), 'graph.malformed'],
    ['a task after nothing', withTask({ after: [-1] }), 'graph.malformed'],
    ['a task after one twice', withTask({ after: [0, 0] }), 'graph.malformed'],
    ['a task after a name', withTask({ after: ['namespace'] }), 'graph.malformed'],
    ['a long error', withTask({ error: 'x'.repeat(401) }), 'graph.malformed'],
    ['an element as error', withTask({ error: { $$typeof: 'react' } }), 'graph.malformed'],
  ])('refuses %s', (_, hostile, want) => {
    expect(parseGraph(hostile)).toMatchObject({ fault: { key: want } });
    expect(parseGraph(hostile).graph).toBeUndefined();
  });
});

const shootWith = (fields: object, observedGeneration = 2): Shoot => ({
  metadata: { namespace: 'garden-a', name: 'one', uid: 'u1' },
  spec: { region: 'r', kubernetes: { version: '1' }, provider: { type: 'local' } },
  status: {
    observedGeneration,
    lastOperation: { type: 'Create', state: 'Processing', progress: 1, lastUpdateTime: '2026-01-01T12:00:05Z' },
    ...fields,
  },
});

describe('graphIn', () => {
  const map = (changes: object = {}) => ({
    metadata: {
      name: 'one.operation',
      labels: { 'shoot.gardener.cloud/name': 'one', 'gardener.cloud/role': 'operation' },
      ownerReferences: [{ kind: 'Shoot', name: 'one', uid: 'u1' }],
      ...changes,
    },
    data: { graph: text({}) },
  });
  const shoot = shootWith({});

  it('takes what is of the shoot', () => {
    expect(graphIn(map(), shoot)).toEqual({ graph });
  });

  it('takes nothing of an earlier shoot of its name', () => {
    expect(graphIn(map({ ownerReferences: [{ kind: 'Shoot', name: 'one', uid: 'u0' }] }), shoot)).toEqual({});
  });

  it.each([{ labels: undefined }, { ownerReferences: [] }, { labels: { 'gardener.cloud/role': 'operation' } }])(
    'leaves alone what somebody else has called so: %j',
    (changes) => expect(graphIn(map(changes), shoot)).toMatchObject({ fault: { key: 'graph.foreign' } }),
  );
});

describe('isPresent', () => {
  const ended = { ...graph, ended: '2026-01-01T12:01:00Z' };
  const good = { ...ended, tasks: tasks.slice(0, 1) };
  const last = (state: string, lastUpdateTime = '2026-01-01T12:01:00Z') => ({
    lastOperation: { type: 'Create', state, progress: 1, lastUpdateTime },
  });
  const failed = (...names: (string | undefined)[]) => ({
    ...last('Error'),
    lastErrors: names.map((taskID) => ({ description: 'no', taskID })),
  });

  it.each<[string, Graph, Shoot, boolean]>([
    ['none', graph, shootWith({ lastOperation: undefined }), false],
    ['one that runs', graph, shootWith({}), true],
    ['one that has ended just now', ended, shootWith(last('Processing', '2026-01-01T12:00:58Z')), true],
    ['one after which the next has begun', ended, shootWith(last('Processing', '2026-01-01T12:01:01Z')), false],
    ['one whose end was not told', graph, shootWith(last('Succeeded')), false],
    ['one that failed', ended, shootWith(failed('infrastructure')), true],
    ['one in which another task failed', ended, shootWith(failed('etcd')), false],
    ['one before another that could not be planned', ended, shootWith(failed(undefined)), false],
    ['a good one before another that could not be planned', good, shootWith(failed(undefined)), false],
    ['one that could not be planned', { ...good, tasks: [], error: 'no' }, shootWith(failed(undefined)), true],
    ['one that succeeded', good, shootWith(last('Succeeded')), true],
    ['one that failed before another succeeded', ended, shootWith(last('Succeeded')), false],
    ['one of another generation', graph, shootWith({}, 3), false],
    ['one of another type', { ...graph, type: 'Reconcile' }, shootWith({}), false],
    ['one of a state of tomorrow', graph, shootWith(last('Dancing')), false],
  ])('%s', (_, of, shoot, want) => expect(isPresent(of, shoot)).toBe(want));
});

describe('stages', () => {
  it('come after all that their tasks wait for', () => {
    expect(stagesOf(tasks)).toEqual([[0], [1, 2, 3], [4]]);
    expect(stagesOf([])).toEqual([]);
  });

  it('are counted without what is left out, and name what is open', () => {
    expect(
      stageList(tasks).map(({ number, done, total, open }) => [number, done, total, open.map(({ name }) => name)]),
    ).toEqual([
      [1, 1, 1, []],
      [2, 0, 2, ['etcd', 'infrastructure']],
      [3, 0, 1, []],
    ]);
    expect(stageList([task('a', 'Skipped'), task('b', 'Pending', [0])]).map(({ number }) => number)).toEqual([2]);
  });

  it('have their tasks where none covers another, also in a crowd', () => {
    const crowd = Array.from({ length: 60 }, (_, i) => task(`task ${i}`, 'Pending', i < 20 ? [] : [i - 20]));
    const { nodes, edges } = layoutOf(crowd);
    expect([nodes.length, edges.length]).toEqual([60, 40]);
    for (const [i, one] of nodes.entries()) {
      for (const other of nodes.slice(i + 1)) {
        expect(Math.abs(one.x - other.x) >= 240 || Math.abs(one.y - other.y) >= 90).toBe(true);
      }
    }
    const x = new Map(nodes.map(({ id, x }) => [id, x]));
    edges.forEach(([source, target]) => expect(x.get(source)).toBeLessThan(x.get(target) ?? 0));
    expect(Math.max(...nodes.map(({ y }) => y))).toBeLessThan(600);
  });

  it('are looked at where something is open, else where it goes on', () => {
    expect(focusOf(tasks)).toEqual(['1', '3']);
    expect(focusOf([task('a', 'Succeeded'), task('b')])).toEqual(['1']);
    expect(focusOf([task('a', 'Succeeded')])).toEqual([]);
  });
});
