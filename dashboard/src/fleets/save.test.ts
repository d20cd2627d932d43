import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { documentFaults, objectsIn, save, targetsOf } from './save';

const text = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: web, namespace: shop}
---
apiVersion: v1
kind: List
items:
- apiVersion: policy.karmada.io/v1alpha1
  kind: ClusterPropagationPolicy
  metadata: {name: all}
---
`;

const fleet = { namespace: 'garden-a', name: 'one' };
const served: Record<string, object[]> = {
  '/api/shoot/garden-a/one/api/v1': [{ name: 'configmaps', kind: 'ConfigMap', namespaced: true }],
  '/api/shoot/garden-a/one/apis/policy.karmada.io/v1alpha1': [
    { name: 'propagationpolicies/status', kind: 'PropagationPolicy', namespaced: true },
    { name: 'propagationpolicies', kind: 'PropagationPolicy', namespaced: true },
    { name: 'clusterpropagationpolicies', kind: 'ClusterPropagationPolicy', namespaced: false },
  ],
};

describe('documents', () => {
  it('are all the objects of a text, also those in lists', () => {
    expect(objectsIn(text).map(({ kind, metadata: { name } }) => `${kind ?? ''} ${name}`)).toEqual([
      'ConfigMap settings',
      'PropagationPolicy web',
      'ClusterPropagationPolicy all',
    ]);
  });

  it('are no fault for being several', () => {
    expect(documentFaults(text)).toEqual([]);
    expect(documentFaults('a: 1\n---\nb: [').length).toBeGreaterThan(0);
  });
});

describe('what was planned', () => {
  const writes: string[] = [];
  let refused = '';

  beforeEach(() => {
    writes.length = 0;
    refused = '';
    vi.stubGlobal('fetch', (path: string, { method = 'GET', body, headers }: RequestInit) => {
      const answer = (code: number, content: object) =>
        Promise.resolve(new Response(JSON.stringify(content), { status: code }));
      if (method === 'GET') return answer(200, { resources: served[path] ?? [] });
      writes.push(`${method} ${path.replace('/api/shoot/garden-a/one', '')}`);
      if (method === 'PATCH') {
        expect((headers as Record<string, string>)['Content-Type']).toBe('application/apply-patch+yaml');
        expect(String(body)).toContain('kind:');
      }
      return refused && path.includes(refused)
        ? answer(409, { kind: 'Status', code: 409, reason: 'Conflict' })
        : answer(200, {});
    });
  });
  afterEach(() => vi.unstubAllGlobals());

  const query = '?fieldManager=dashboard&fieldValidation=Strict';

  it('is applied in its order, where the fleet serves it', async () => {
    await save(fleet, await targetsOf(fleet, text, 'default'), false);
    expect(writes).toEqual([
      `PATCH /api/v1/namespaces/default/configmaps/settings${query}`,
      `PATCH /apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies/web${query}`,
      `PATCH /apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/all${query}`,
    ]);
  });

  it('is deleted the last first', async () => {
    await save(fleet, await targetsOf(fleet, text, 'default'), true);
    expect(writes.map((each) => each.split('/').at(-1))).toEqual(['all', 'web', 'settings']);
    expect(writes.every((each) => each.startsWith('DELETE'))).toBe(true);
  });

  it('ends at what is refused, and takes nothing from who manages it', async () => {
    refused = 'propagationpolicies/web';
    await expect(save(fleet, await targetsOf(fleet, text, 'default'), false)).rejects.toMatchObject({ code: 409 });
    expect(writes.length).toBe(2);
    expect(writes.some((each) => each.includes('force'))).toBe(false);
  });

  it('is not offered where the fleet does not serve a kind', async () => {
    await expect(targetsOf(fleet, 'apiVersion: v1\nkind: Thing\nmetadata: {name: a}', 'default')).rejects.toThrow(
      'v1 Thing',
    );
  });
});
