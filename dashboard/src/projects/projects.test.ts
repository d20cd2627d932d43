import { describe, expect, it } from 'vitest';

import { bindingOf, parseData } from './credentials';
import { rolesOf, subjectName, subjectOf, withMember, withoutMember } from './members';
import { projectNameFault, type Member } from './projects';

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
