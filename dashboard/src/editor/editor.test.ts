import { describe, expect, it } from 'vitest';

import { editable, statusFaults, stepsOf, syntaxFaults } from './document';
import { completionsAt, kindSchema, placeAt, schemaAt, type Schemas } from './schema';

describe('placeAt', () => {
  it.each([
    ['', { path: [], field: undefined }],
    ['spec:\n  ', { path: ['spec'], field: undefined }],
    ['spec:\n  provider:\n    type: local\n  ', { path: ['spec'], field: undefined }],
    ['spec:\n  purpose: ', { path: ['spec'], field: 'purpose' }],
    ['spec:\n  workers:\n  - name: a\n    ', { path: ['spec', 'workers', 0], field: undefined }],
    [
      'spec:\n  workers:\n    - name: a\n      machine:\n        ',
      { path: ['spec', 'workers', 0, 'machine'], field: undefined },
    ],
    ['spec:\n  workers:\n  - name: a\n  - ', { path: ['spec', 'workers', 0], field: undefined }],
    ['spec:\n  workers:\n  - name: a\n  region: ', { path: ['spec'], field: 'region' }],
    ['# spec:\nkind: ', { path: [], field: 'kind' }],
  ])('%j', (text, want) => expect(placeAt(text)).toEqual(want));
});

describe('schemas', () => {
  const schemas: Schemas = {
    Shoot: {
      properties: { spec: { $ref: '#/components/schemas/Spec' } },
      'x-kubernetes-group-version-kind': [{ group: 'g', version: 'v', kind: 'Shoot' }],
    },
    Spec: {
      properties: {
        purpose: { type: 'string', enum: ['testing', 'production'] },
        enabled: { type: 'boolean' },
        workers: { type: 'array', items: { allOf: [{ $ref: '#/components/schemas/Worker' }] } },
        labels: { type: 'object', additionalProperties: { type: 'string' } },
      },
    },
    Worker: { type: 'object', properties: { name: { type: 'string', description: 'Name of the pool.' } } },
  };
  const root = kindSchema(schemas, 'g', 'Shoot');

  it('are followed through references, lists and maps', () => {
    expect(schemaAt(schemas, root, ['spec', 'workers', 0, 'name'])?.description).toBe('Name of the pool.');
    expect(schemaAt(schemas, root, ['spec', 'labels', 'any'])?.type).toBe('string');
    expect(schemaAt(schemas, root, ['nothing', 'there'])).toBeUndefined();
  });

  it('complete fields and values', () => {
    const labels = (text: string) => completionsAt(schemas, root, text).map(({ label }) => label);
    expect(labels('spec:\n  ')).toEqual(['purpose', 'enabled', 'workers', 'labels']);
    expect(labels('spec:\n  purpose: ')).toEqual(['testing', 'production']);
    expect(labels('spec:\n  enabled: ')).toEqual(['true', 'false']);
    expect(labels('spec:\n  workers:\n  - ')).toEqual(['name']);
    expect(completionsAt({}, undefined, 'spec:\n  ')).toEqual([]);
  });
});

describe('documents', () => {
  it('are edited without what the garden writes', () => {
    const object = {
      kind: 'Shoot',
      apiVersion: 'v',
      metadata: { name: 'a', uid: 'u', generation: 2, creationTimestamp: 't', resourceVersion: '5' },
      status: {},
      spec: {},
    };
    expect(JSON.stringify(editable(object))).toBe(
      '{"apiVersion":"v","kind":"Shoot","metadata":{"name":"a","resourceVersion":"5"},"spec":{}}',
    );
  });

  it('show where they are no YAML', () => {
    expect(syntaxFaults('a: 1')).toEqual([]);
    expect(syntaxFaults('a: [1')[0]?.message).toMatch(/flow/i);
  });

  it.each([
    ['spec.provider.workers[0].name', ['spec', 'provider', 'workers', 0, 'name']],
    ['metadata.annotations[a.b/c]', ['metadata', 'annotations', 'a.b/c']],
    ['', []],
  ])('%s', (field, want) => expect(stepsOf(field)).toEqual(want));

  it('show what was refused, or the nearest above it', () => {
    const text = 'spec:\n  workers:\n  - name: a\n    maximum: 1\n';
    const at = (field: string) => {
      const [fault] = statusFaults(text, { details: { causes: [{ field, message: 'no' }] } });
      return text.slice(fault?.from, fault?.to);
    };
    expect([at('spec.workers[0].maximum'), at('spec.workers[0].absent'), at('spec.region'), at('other')]).toEqual([
      'maximum',
      'n',
      'spec',
      '',
    ]);
  });
});
