import { describe, expect, it } from 'vitest';

import { faultsOf, firstAnswers, fit, newPool, shootOf, type Answers } from './order';
import {
  classificationAt,
  compareVersions,
  defaultVersion,
  expiriesOf,
  imagesFor,
  machineTypes,
  needsVolume,
  upgradesOf,
  versionExpiry,
} from './profile';
import type { ProfileSpec, Shoot } from './types';

const now = new Date('2026-11-27T12:00:00Z');

const profile: ProfileSpec = {
  type: 'local',
  kubernetes: {
    versions: [
      { version: '1.37.0', classification: 'preview' },
      { version: '1.36.3' },
      { version: '1.36.10', classification: 'supported', expirationDate: '2027-06-01T00:00:00Z' },
      { version: '1.35.4', expirationDate: '2026-12-10T00:00:00Z' },
      { version: '1.34.1', expirationDate: '2026-01-01T00:00:00Z' },
    ],
  },
  machineImages: [
    { name: 'intel', versions: [{ version: '1.0.0' }, { version: '1.1.0', expirationDate: '2026-12-01T00:00:00Z' }] },
    { name: 'arm', versions: [{ version: '2.0.0', architectures: ['arm64'] }] },
  ],
  machineTypes: [
    { name: 'small', cpu: '1', memory: '2Gi' },
    { name: 'armed', cpu: '1', memory: '2Gi', architecture: 'arm64' },
    { name: 'disk', cpu: '1', memory: '2Gi', storage: { class: 'standard', type: 'ssd', size: '50Gi' } },
    { name: 'old', cpu: '1', memory: '2Gi', usable: false },
  ],
  volumeTypes: [{ name: 'standard', class: 'standard', minSize: '20Gi' }],
  regions: [
    { name: 'one', zones: [{ name: 'one-a', unavailableMachineTypes: ['small'] }, { name: 'one-b' }] },
    { name: 'two', zones: [{ name: 'two-a' }] },
    { name: 'three' },
  ],
};

describe('versions', () => {
  it.each([
    ['1.36.10', '1.36.9', 1],
    ['1.9.0', '1.10.0', -1],
    ['1.36.0-rc.1', '1.36.0', -1],
    ['1.36.0-rc.10', '1.36.0-rc.9', 1],
    ['v1.36.0', '1.36.0+build', 0],
  ])('%s and %s', (a, b, want) => expect(Math.sign(compareVersions(a, b))).toBe(want));

  it.each([
    [{ version: '1' }, 'supported'],
    [{ version: '1', expirationDate: '2026-11-27T12:00:00Z' }, 'expired'],
    [{ version: '1', classification: 'deprecated' }, 'deprecated'],
    [{ version: '1', lifecycle: [{ classification: 'preview', startTime: '2027-01-01T00:00:00Z' }] }, 'unavailable'],
    [
      {
        version: '1',
        lifecycle: [{ classification: 'preview' }, { classification: 'supported', startTime: '2026-01-01T00:00:00Z' }],
      },
      'supported',
    ],
  ])('%j is %s', (version, want) => expect(classificationAt(version, now)).toBe(want));

  it('begin with the newest that is supported', () => {
    expect(defaultVersion(profile.kubernetes.versions ?? [], now)).toBe('1.36.10');
    expect(defaultVersion([{ version: '1.1.0', classification: 'preview' }], now)).toBe('1.1.0');
    expect(defaultVersion([], now)).toBe('');
  });
});

describe('upgradesOf', () => {
  it('offers patches and the next minor version', () => {
    const offers = upgradesOf('1.35.4', profile.kubernetes.versions ?? [], now);
    expect(offers.map(({ version, kind, offered }) => [version, kind, offered])).toEqual([
      ['1.36.3', 'minor', true],
      ['1.36.10', 'minor', true],
      ['1.37.0', 'minor', false],
    ]);
    expect(upgradesOf('1.36.3', profile.kubernetes.versions ?? [], now)[0]).toMatchObject({
      version: '1.36.10',
      kind: 'patch',
    });
    expect(upgradesOf('1.37.0', profile.kubernetes.versions ?? [], now)).toEqual([]);
  });
});

describe('expiries', () => {
  it('are those of Kubernetes and of images, the next first', () => {
    const shoot = {
      metadata: { name: 'one' },
      spec: {
        kubernetes: { version: '1.35.4' },
        provider: { workers: [{ name: 'p', machine: { type: 'small', image: { name: 'intel', version: '1.1.0' } } }] },
      },
    } as unknown as Shoot;
    expect(expiriesOf(shoot, profile, now).map(({ what, soon, expired }) => [what, soon, expired])).toEqual([
      ['p: intel', true, false],
      ['Kubernetes', true, false],
    ]);
  });

  it('are told of one version', () => {
    expect(versionExpiry(profile, '1.34.1', now)).toMatchObject({ expired: true });
    expect(versionExpiry(profile, '1.36.10', now)).toMatchObject({ soon: false });
    expect(versionExpiry(profile, '1.36.3', now)).toBeUndefined();
    expect(versionExpiry(undefined, '1.36.3', now)).toBeUndefined();
  });
});

describe('what can be had', () => {
  const names = (region: string, zones: string[]) => machineTypes(profile, region, zones).map(({ name }) => name);

  it('depends on the zones', () => {
    expect(names('one', ['one-a'])).toEqual(['armed', 'disk']);
    expect(names('one', ['one-b'])).toEqual(['small', 'armed', 'disk']);
    expect(names('one', ['one-a', 'one-b'])).toEqual(['armed', 'disk']);
    expect(names('one', [])).toEqual(['small', 'armed', 'disk']);
    expect(names('three', [])).toEqual(['small', 'armed', 'disk']);
  });

  it('depends on the architecture', () => {
    expect(imagesFor(profile, 'armed', now)).toEqual(['arm']);
    expect(imagesFor(profile, 'small', now)).toEqual(['intel']);
  });

  it('has disks of its own', () =>
    expect([needsVolume(profile, 'disk'), needsVolume(profile, 'small')]).toEqual([false, true]));
});

describe('the form for new shoots', () => {
  const answers = (change: Partial<Answers> = {}): Answers => ({
    ...firstAnswers(profile, ['cred'], ['flannel'], now),
    name: 'one',
    ...change,
  });
  const offered = { kind: 'CloudProfile' as const, name: 'local', spec: profile };

  it('begins with what is on offer', () => {
    expect(answers()).toMatchObject({ region: 'one', version: '1.36.10', credentials: 'cred', networking: 'flannel' });
    expect(newPool(profile, 'one', 'p', now)).toMatchObject({
      type: 'armed',
      image: 'arm',
      zones: ['one-a'],
      volumeType: 'standard',
      volumeSize: '20Gi',
    });
  });

  it('drops what another choice rules out', () => {
    const pool = { ...newPool(profile, 'one', 'p', now), zones: ['one-b'], type: 'small' };
    expect(fit(pool, profile, 'one', now)).toMatchObject({ type: 'small', image: 'intel', imageVersion: '1.1.0' });
    expect(fit(pool, profile, 'two', now)).toMatchObject({ zones: ['two-a'] });
    expect(fit({ ...pool, type: 'disk' }, profile, 'one', now)).toMatchObject({ volumeType: '', volumeSize: '' });
  });

  it('makes a Shoot', () => {
    expect(shootOf(answers({ ha: 'node' }), 'garden-a', offered)).toEqual({
      apiVersion: 'core.gardener.cloud/v1beta1',
      kind: 'Shoot',
      metadata: { name: 'one', namespace: 'garden-a' },
      spec: {
        cloudProfile: { kind: 'CloudProfile', name: 'local' },
        region: 'one',
        purpose: 'evaluation',
        kubernetes: { version: '1.36.10' },
        controlPlane: { highAvailability: { failureTolerance: { type: 'node' } } },
        credentialsBindingName: 'cred',
        networking: { type: 'flannel' },
        provider: {
          type: 'local',
          workers: [
            {
              name: 'pool-1',
              machine: { type: 'armed', image: { name: 'arm', version: '2.0.0' } },
              minimum: 1,
              maximum: 2,
              zones: ['one-a'],
              volume: { type: 'standard', size: '20Gi' },
            },
          ],
        },
      },
    });
  });

  it('leaves out what a cluster without workers cannot have', () => {
    const { spec } = shootOf(answers({ workerless: true }), 'garden-a', offered);
    expect([spec.credentialsBindingName, spec.networking, spec.provider]).toEqual([
      undefined,
      undefined,
      { type: 'local' },
    ]);
  });

  it.each<[Partial<Answers>, object]>([
    [{}, {}],
    [{ name: '' }, { name: 'required' }],
    [{ name: 'Big' }, { name: 'form' }],
    [{ name: 'a--b' }, { name: 'form' }],
    [{ name: 'a'.repeat(21) }, { name: 'form' }],
    [{ networking: '' }, { networking: 'required' }],
    [{ networking: '', workerless: true }, {}],
    [{ pools: [] }, { pools: 'required' }],
    [{ schedules: [{ start: 'x' }] }, { schedules: 'form' }],
  ])('%j', (change, want) => expect(faultsOf(answers(change))).toEqual(want));

  it('tells what is wrong with pools', () => {
    const pool = newPool(profile, 'one', 'p', now);
    expect(faultsOf(answers({ pools: [pool, pool] })).pools).toBe('double');
    expect(faultsOf(answers({ pools: [{ ...pool, minimum: 3 }] })).pools).toBe('order');
    expect(faultsOf(answers({ pools: [{ ...pool, name: 'P' }] })).pools).toBe('form');
  });
});
