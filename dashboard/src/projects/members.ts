// Members of a project, and their roles (docs/authorization.md).
import type { Subject } from '../api/types';
import type { Member } from './projects';

/** roles that every garden knows, the most far-reaching first. */
export const roles = ['admin', 'viewer', 'uam', 'serviceaccountmanager'] as const;

export const rolesOf = ({ role, roles = [] }: Member) => [...new Set([role, ...roles])];

const sameSubject = (a: Subject, b: Subject) =>
  a.kind === b.kind && a.name === b.name && (a.namespace ?? '') === (b.namespace ?? '');

/** withMember gives a subject roles, whether or not it is a member already. */
export function withMember(members: Member[], subject: Subject, chosen: string[]): Member[] {
  const [role = 'viewer', ...more] = chosen;
  const member: Member = { ...subject, role, ...(more.length > 0 ? { roles: more } : {}) };
  const known = members.some((each) => sameSubject(each, subject));
  return known ? members.map((each) => (sameSubject(each, subject) ? member : each)) : [...members, member];
}

export const withoutMember = (members: Member[], subject: Subject) =>
  members.filter((member) => !sameSubject(member, subject));

/** subjectOf reads what somebody typed: a service account is one of the project's, or namespace/name. */
export function subjectOf(kind: string, text: string, namespace: string): Subject {
  const name = text.trim();
  if (kind !== 'ServiceAccount') return { apiGroup: 'rbac.authorization.k8s.io', kind, name };
  const full = /^(?:system:serviceaccount:)?([^:/]+)[:/](.+)$/.exec(name);
  return full ? { kind, namespace: full[1], name: full[2] ?? '' } : { kind, namespace, name };
}

export const subjectName = ({ kind, name, namespace }: Subject) =>
  kind === 'ServiceAccount' && namespace ? `${namespace}/${name}` : name;
