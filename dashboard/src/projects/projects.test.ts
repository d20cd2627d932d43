import { describe, expect, it } from 'vitest';

import { inUnitOf } from '../fleets/quantity';
import type { Shoot } from '../shoots/types';
import { bindingOf, parseData } from './credentials';
import { rolesOf, subjectName, subjectOf, withMember, withoutMember } from './members';
import { projectNameFault, type Member } from './projects';
import { usedOf } from './quotas';

const ada = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ada' };

describe('members', () => {
  const members: Member[] = [
    { ...ada, role: 'admin', roles: ['owner', 'admin'] },
    { kind: 'ServiceAccount', namespace: 'garden-a', name: 'bot', role: 'viewer' },
  ];

  it('have each role once', () => expect(members.map(rolesOf)).toEqual([['admin', 'owner'], ['viewer']]));

  it('get other roles, and stay in their place', () => {
    expect(withMember(members, ada, ['viewer', 'uam'])[0]).toEqual({ ...ada, role: 'viewer', roles: ['uam'] });
    expect(withMember(members, { ...ada, name: 'bob' }, ['viewer'])).toHaveLength(3);
  });

  it('are removed by all that names them', () => {
    expect(withoutMember(members, { kind: 'ServiceAccount', namespace: 'garden-b', name: 'bot' })).toHaveLength(2);
    expect(withoutMember(members, ada)).toHaveLength(1);
  });

  it.each([
    ['User', ' ada ', ada],
    ['ServiceAccount', 'bot', { kind: 'ServiceAccount', namespace: 'garden-a', name: 'bot' }],
    ['ServiceAccount', 'garden-b/bot', { kind: 'ServiceAccount', namespace: 'garden-b', name: 'bot' }],
    [
      'ServiceAccount',
      'system:serviceaccount:garden-b:bot',
      { kind: 'ServiceAccount', namespace: 'garden-b', name: 'bot' },
    ],
  ])('%s %s', (kind, text, want) => expect(subjectOf(kind, text, 'garden-a')).toEqual(want));

  it('are called as people know them', () => expect(members.map(subjectName)).toEqual(['ada', 'garden-a/bot']));
});

describe('projectNameFault', () => {
  it.each([
    ['demo', undefined],
    ['', 'length'],
    ['elevenchars', 'length'],
    ['1demo', 'form'],
    ['a--b', 'form'],
    ['Demo', 'form'],
    ['demo-', 'form'],
  ])('%s', (name, want) => expect(projectNameFault(name)).toBe(want));
});

describe('credentials', () => {
  it.each([
    ['a=1\n\n b = x=y ', { a: '1', b: 'x=y' }],
    ['', {}],
    ['no value', undefined],
  ])('%j', (text, want) => expect(parseData(text)).toEqual(want));

  it('are bound by their own name', () =>
    expect(bindingOf('n', 'c', 'local').credentialsRef).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      namespace: 'n',
      name: 'c',
    }));
});

describe('quotas', () => {
  const quota = (name: string) => ({ metadata: { namespace: 'n', name }, spec: { metrics: {}, scope: {} } });
  const spec = {
    type: 'local',
    kubernetes: {},
    machineTypes: [
      { name: 'small', cpu: '2', memory: '4Gi' },
      { name: 'gpu', cpu: '500m', gpu: '1', memory: '1Gi', storage: { class: 'premium', size: '10Gi', type: 'ssd' } },
    ],
    volumeTypes: [{ name: 'hdd', class: 'standard' }],
  };
  const shoot = (binding: string, type: string, maximum: number, more: object = {}): Shoot => ({
    metadata: { name: `${binding}-${type}` },
    spec: {
      cloudProfile: { kind: 'CloudProfile', name: 'local' },
      credentialsBindingName: binding,
      region: 'r',
      kubernetes: { version: '1.36.0' },
      provider: { type: 'local', workers: [{ name: 'a', minimum: 0, maximum, machine: { type }, ...more }] },
    },
  });

  it('are named by bindings', () => {
    expect(bindingOf('n', 'c', 'local').quotas).toBeUndefined();
    const { quotas, credentialsRef } = bindingOf('n', 'again', 'local', { quotas: ['q'], secret: 'c' });
    expect(quotas).toEqual([{ apiVersion: 'core.gardener.cloud/v1beta1', kind: 'Quota', namespace: 'n', name: 'q' }]);
    expect(credentialsRef.name).toBe('c');
  });

  it('are used by the shoots whose credentials name them, at their largest', () => {
    const bindings = [bindingOf('n', 'limited', 'local', { quotas: ['q'] }), bindingOf('n', 'free', 'local')];
    const shoots = [
      shoot('limited', 'small', 3, { volume: { type: 'hdd', size: '20Gi' } }),
      shoot('limited', 'gpu', 2),
      shoot('limited', 'gone', 9),
      shoot('free', 'small', 9),
    ];
    const profiles = [{ kind: 'CloudProfile' as const, name: 'local', spec }];
    expect(usedOf(quota('q'), bindings, shoots, profiles)).toEqual({
      cpu: 7,
      memory: 14 * 2 ** 30,
      gpu: 2,
      'storage.standard': 60 * 2 ** 30,
      'storage.premium': 20 * 2 ** 30,
    });
    expect(usedOf(quota('other'), bindings, shoots, profiles)).toEqual({});
  });

  it.each([
    [7, '10', '7'],
    [14.5 * 2 ** 30, '20Gi', '14.5Gi'],
    [0.25, '500m', '250m'],
  ])('%s beside %s is %s', (amount, limit, want) => expect(inUnitOf(amount, limit)).toBe(want));
});
