import { describe, expect, it } from 'vitest';

import {
  bindingTone,
  byCluster,
  clusterTone,
  mapOf,
  objectIn,
  objectName,
  objectQuery,
  rolloutActions,
  shown,
} from './placement';
import { markedMoves } from './moves';
import { parseQuantity, shareOf } from './quantity';
import type { Rollout } from './types';

describe('quantities', () => {
  it.each<[string | number | undefined, number | undefined]>([
    ['250m', 0.25],
    ['2', 2],
    ['1.5Gi', 1.5 * 2 ** 30],
    ['1e3', 1000],
    ['2E', 2e18],
    [3, 3],
    ['', undefined],
    ['x', undefined],
    [undefined, undefined],
  ])('%s', (text, want) => expect(parseQuantity(text)).toBe(want));

  it('are shares of what there is', () => {
    expect(shareOf({ allocatable: '4', allocated: '1500m' })).toBe(38);
    expect(shareOf({ allocatable: '1Gi', allocated: '2Gi' })).toBe(100);
    expect(shareOf({ allocatable: '0' })).toBeUndefined();
    expect(shareOf(undefined)).toBeUndefined();
  });
});

describe('objects', () => {
  const web = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };

  it('are named in addresses', () => {
    expect(objectQuery(web)).toBe('apiVersion=apps%2Fv1&kind=Deployment&namespace=shop&name=web');
    expect(objectIn(new URLSearchParams(objectQuery(web)))).toEqual(web);
    expect(objectIn(new URLSearchParams('kind=a'))).toBeUndefined();
    expect([objectName(web), objectName({ ...web, namespace: undefined })]).toEqual([
      'Deployment shop/web',
      'Deployment web',
    ]);
  });

  it.each([
    [{ applied: true, health: 'Healthy' }, 'good'],
    [{ applied: true, health: 'Unhealthy' }, 'bad'],
    [{ applied: true, health: 'Unknown' }, 'neutral'],
    [{ applied: false }, 'busy'],
  ])('%j in a member is %s', (cluster, want) => expect(clusterTone(cluster)).toBe(want));

  it('are as in their worst member', () => {
    const [good, bad] = [
      { name: 'a', applied: true, health: 'Healthy' },
      { name: 'b', applied: true, health: 'Unhealthy' },
    ];
    const tone = (clusters: object[], scheduled?: string) =>
      bindingTone({ uid: 'u', name: 'n', clusters: clusters as never, scheduled });
    expect([tone([good]), tone([good, bad]), tone([]), tone([good], 'False')]).toEqual([
      'good',
      'bad',
      'warning',
      'bad',
    ]);
  });

  it('are on a map with their policy and members', () => {
    const { nodes, edges } = mapOf('web', 'policy', [{ name: 'a', replicas: 2 }, { name: 'b' }]);
    expect(nodes.map(({ id, x, y, detail }) => [id, x, y, detail])).toEqual([
      ['policy', 0, 37, undefined],
      ['object', 280, 37, undefined],
      ['cluster a', 560, 0, '2'],
      ['cluster b', 560, 74, undefined],
    ]);
    expect(edges).toEqual([
      ['policy', 'object'],
      ['object', 'cluster a'],
      ['object', 'cluster b'],
    ]);
    expect(mapOf('web', undefined, []).nodes).toHaveLength(1);
  });

  it('have values that are absent or empty', () =>
    expect([shown(undefined), shown(''), shown(0), shown({ a: 1 })]).toEqual([undefined, '', '0', '{"a":1}']));
});

describe('rolloutActions', () => {
  const rollout = (phase: string, change: object = {}, control?: object): Rollout =>
    ({
      object: {},
      rollout: { number: 2, phase, stableRevision: 'a', updateRevision: 'b', ...change },
      control,
    }) as unknown as Rollout;

  it.each<[string, Rollout, string[]]>([
    ['under way', rollout('Progressing'), ['pause', 'undo']],
    ['under way and to be paused', rollout('Soaking', {}, { paused: true }), ['resume', 'undo']],
    ['paused', rollout('Paused'), ['resume', 'undo']],
    ['failed', rollout('Failed'), ['resume', 'undo']],
    ['the first', rollout('Completed', { stableRevision: 'b', revisions: [{}] }), []],
    ['complete', rollout('Completed', { stableRevision: 'b', revisions: [{}, {}] }), ['undo']],
    ['rolled back', rollout('RolledBack'), []],
  ])('%s', (_, given, want) => expect(rolloutActions(given)).toEqual(want));
});

describe('byCluster', () => {
  it('has most deletions first', () => {
    const held = (cluster: string, name: string) => ({
      cluster,
      work: { namespace: 'n', name },
      object: { apiVersion: 'v1', kind: 'K', name },
    });
    const groups = byCluster([held('b', '1'), held('a', '2'), held('c', '3'), held('c', '4')]);
    expect(groups.map(({ cluster, deletions }) => [cluster, deletions.length])).toEqual([
      ['c', 2],
      ['a', 1],
      ['b', 1],
    ]);
  });
});

describe('moves', () => {
  const web = { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'web' };
  const other = { ...web, name: 'other' };
  const changes = (moves: Parameters<typeof markedMoves>[0]) =>
    markedMoves(moves).map(({ parts }) => parts.map(({ name, change }) => `${name} ${change}`));

  it('mark the clusters that an object left, and those that it came to', () => {
    expect(
      changes([
        { time: '5', object: web, type: 'Decision', clusters: ['a', 'b', 'c'] },
        { time: '4', object: web, type: 'FailBack', clusters: ['a'] },
        { time: '3', object: web, type: 'Eviction', clusters: ['b'] },
        { time: '2', object: other, type: 'Eviction', clusters: ['c'] },
        { time: '1', object: web, type: 'Failover', clusters: ['a'] },
        { time: '0', object: web, type: 'Rollout' },
      ]),
    ).toEqual([['a stays', 'b came', 'c stays'], ['a came'], ['b left'], ['c left'], ['a left'], []]);
  });

  it('leave out of account what came after', () => {
    expect(
      changes([
        { time: '2', object: web, type: 'Eviction', clusters: ['a'] },
        { time: '1', object: web, type: 'Decision', clusters: ['a'] },
      ]),
    ).toEqual([['a left'], ['a stays']]);
  });

  it('are told apart', () => {
    const uids = markedMoves([
      { time: '1', object: web, type: 'Eviction', clusters: ['a'] },
      { time: '1', object: web, type: 'Eviction', clusters: ['b'] },
    ]).map(({ uid }) => uid);
    expect(new Set(uids).size).toBe(2);
  });
});
