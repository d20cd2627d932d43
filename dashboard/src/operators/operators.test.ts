import { describe, expect, it } from 'vitest';

import type { ShootRow } from '../shoots/types';
import {
  countBy,
  expiringCertificates,
  expiringOfGarden,
  expiringOwnVersions,
  expiringVersions,
  failuresOf,
  installationTone,
  machinesBy,
  ownProfilesOf,
  roomOf,
  shootOfEntry,
  soonestFirst,
  statesOf,
  toneOf,
} from './glance';
import type { ControllerInstallation, Seed } from './types';

const now = new Date('2026-11-27T12:00:00Z');
const shoot = (name: string, fields: Partial<ShootRow> = {}): ShootRow => ({
  uid: name,
  namespace: 'garden-a',
  name,
  operation: { type: 'Reconcile', state: 'Succeeded' },
  status: 'healthy',
  ...fields,
});
const seed = (name: string, status: Seed['status']): Seed => ({
  metadata: { name },
  spec: { provider: { type: 'local', region: 'r' } },
  status,
});

describe('a garden at a glance', () => {
  const shoots = [
    shoot('a'),
    shoot('b'),
    shoot('c', { status: 'unhealthy', conditions: { EveryNodeReady: 'False' }, codes: ['ERR_X'] }),
    shoot('d', { conditions: { EveryNodeReady: 'Unknown' } }),
  ];

  it('counts shoots by state', () => {
    expect(statesOf(shoots)).toEqual([
      { key: 'shoot.healthy', tone: 'good', count: 3 },
      { key: 'shoot.unhealthy', tone: 'bad', count: 1 },
    ]);
  });

  it('counts what fails most', () => {
    expect(failuresOf(shoots)).toEqual([
      { name: 'EveryNodeReady', count: 2 },
      { name: 'ERR_X', count: 1 },
    ]);
  });

  it('counts the machines that projects may have', () => {
    const all = [
      shoot('a', { project: 'one', workers: ['x:1-3', 'y-2:0-4'] }),
      shoot('b', { project: 'two', workers: ['x:2-9'] }),
      shoot('c', { project: 'one', workers: ['x:2-90'], hibernated: true }),
      shoot('d', { project: 'three' }),
    ];
    expect(machinesBy(all, ({ project = '' }) => project)).toEqual([
      { name: 'two', count: 9 },
      { name: 'one', count: 7 },
    ]);
  });

  it('leaves out what has no name', () =>
    expect(countBy([1, 2, 3], (n) => (n > 1 ? String(n % 2) : undefined))).toEqual([
      { name: '0', count: 1 },
      { name: '1', count: 1 },
    ]));
});

describe('what expires', () => {
  const profile = {
    kind: 'CloudProfile' as const,
    name: 'local',
    spec: {
      type: 'local',
      kubernetes: {
        versions: [
          { version: '1.36.0' },
          { version: '1.35.0', expirationDate: '2026-12-01T00:00:00Z' },
          { version: '1.34.0', expirationDate: '2026-01-01T00:00:00Z' },
          { version: '1.33.0', expirationDate: '2025-01-01T00:00:00Z' },
          { version: '1.37.0', expirationDate: '2027-12-01T00:00:00Z' },
        ],
      },
      machineImages: [
        {
          name: 'linux',
          versions: [
            { version: '1.0.0', expirationDate: '2026-11-01T00:00:00Z' },
            { version: '1.1.0', expirationDate: '2026-12-02T00:00:00Z' },
            { version: '1.2.0' },
          ],
        },
      ],
    },
  };

  it('is soon, or over and still in use', () => {
    const shoots = [
      shoot('a', { profile: 'local', version: '1.34.0' }),
      shoot('b', { profile: 'other', version: '1.33.0' }),
    ];
    expect(
      expiringVersions([profile], shoots, 30, now).map(({ what, expired, shoots }) => [what, expired, shoots]),
    ).toEqual([
      ['Kubernetes 1.35.0', false, 0],
      ['Kubernetes 1.34.0', true, 1],
      ['linux 1.1.0', false, undefined],
    ]);
  });

  it('is a certificate of a gardenlet or a shoot', () => {
    const seeds = [
      seed('near', { clientCertificateExpirationTimestamp: '2026-12-01T00:00:00Z' }),
      seed('far', { clientCertificateExpirationTimestamp: '2027-12-01T00:00:00Z' }),
    ];
    const shoots = [shoot('old', { conditions: { CACertificateValiditiesAcceptable: 'False' } })];
    const found = soonestFirst(expiringCertificates(seeds, shoots, 30, now));
    expect(found.map(({ what, name }) => [what, name])).toEqual([
      ['gardenlet', 'near'],
      ['CA', 'garden-a/old'],
    ]);
  });
});

describe('what expires of the garden', () => {
  it('is told before it has expired, and after', () => {
    const of = (name: string, days: number) => ({
      what: 'authority',
      name,
      expires: new Date(now.getTime() + days * 86_400_000).toISOString(),
    });
    const told = expiringOfGarden([of('soon', 29), of('later', 31), of('gone', -1)], 30, now);
    expect(told.map(({ name, expired }) => [name, expired])).toEqual([
      ['soon', false],
      ['gone', true],
    ]);
  });
});

describe('what expires of profiles of projects', () => {
  const version = (name: string, days: number) => ({
    version: name,
    expirationDate: new Date(now.getTime() + days * 86_400_000).toISOString(),
  });
  const parent = { type: 'local', kubernetes: { versions: [version('1.34.0', 3), version('1.33.0', -3)] } };
  const profiles = [{ kind: 'CloudProfile' as const, name: 'local', spec: parent }];
  const merged = (...versions: ReturnType<typeof version>[]) =>
    ownProfilesOf(
      [
        {
          metadata: { namespace: 'garden-a', name: 'own' },
          spec: { parent: { name: 'local' } },
          status: { cloudProfileSpec: { type: 'local', kubernetes: { versions } } },
        },
        { metadata: { namespace: 'garden-b', name: 'new' }, spec: { parent: { name: 'local' } } },
      ],
      profiles,
    );
  const told = (own: ReturnType<typeof merged>, shoots: ShootRow[]) =>
    expiringOwnVersions(own, shoots, 30, now).map(({ what, name, shoots }) => `${what} ${name} ${shoots ?? ''}`);

  it('is what they have at another time than their parent', () =>
    expect(told(merged(version('1.34.0', 3), version('1.33.0', 9)), [])).toEqual(['Kubernetes 1.33.0 garden-a/own 0']));

  it('is what their own shoots use', () => {
    const own = merged(version('1.34.0', 3));
    const uses = { profile: 'own', version: '1.34.0' };
    expect(told(own, [shoot('a', { ...uses, ownProfile: true })])).toEqual(['Kubernetes 1.34.0 garden-a/own 1']);
    expect(told(own, [shoot('b', uses), shoot('c', { ...uses, ownProfile: true, namespace: 'garden-b' })])).toEqual([]);
  });

  it('is not counted for a profile of all of the same name', () => {
    const all = [{ kind: 'CloudProfile' as const, name: 'own', spec: parent }];
    const own = shoot('a', { profile: 'own', ownProfile: true, version: '1.34.0' });
    const [first] = expiringVersions(all, [own], 30, now);
    expect(first?.shoots).toBe(0);
  });
});

describe('an entry of backups', () => {
  const shoots = [
    shoot('a', { technicalID: 'shoot--p--a' }),
    shoot('ab', { technicalID: 'shoot--p--ab' }),
    shoot('waits', {}),
  ];

  it.each([
    ['shoot--p--ab--1b9d6bcd', 'ab'],
    ['shoot--p--a--1b9d6bcd', 'a'],
    ['shoot--p--gone--1b9d6bcd', undefined],
  ])('%s is of %s', (entry, want) => expect(shootOfEntry(entry, shoots)?.name).toBe(want));
});

describe('health', () => {
  it.each([
    [[{ type: 'A', status: 'True' }], 'good'],
    [
      [
        { type: 'A', status: 'True' },
        { type: 'B', status: 'False' },
      ],
      'bad',
    ],
    [[{ type: 'EmergencyStopShootReconciliations', status: 'True' }], 'bad'],
    [
      [
        { type: 'A', status: 'Unknown' },
        { type: 'B', status: 'Progressing' },
      ],
      'warning',
    ],
    [[], 'warning'],
  ])('%j', (conditions, want) => expect(toneOf(conditions)).toBe(want));

  it.each([
    [
      [
        { type: 'Installed', status: 'True' },
        { type: 'Progressing', status: 'False' },
      ],
      'good',
    ],
    [
      [
        { type: 'Installed', status: 'True' },
        { type: 'Progressing', status: 'True' },
      ],
      'busy',
    ],
    [
      [
        { type: 'Healthy', status: 'False' },
        { type: 'Progressing', status: 'True' },
      ],
      'bad',
    ],
    [
      [
        { type: 'Installed', status: 'True' },
        { type: 'Required', status: 'False' },
      ],
      'good',
    ],
  ])('of an installation: %j', (conditions, want) =>
    expect(
      installationTone({
        metadata: { name: 'i' },
        spec: { registrationRef: {} },
        status: { conditions },
      } as ControllerInstallation),
    ).toBe(want),
  );

  it('has room', () => {
    const shoots = [shoot('a', { seed: 's' }), shoot('b', { seed: 't' })];
    expect(roomOf(seed('s', { allocatable: { shoots: '100' } }), shoots)).toEqual({ used: 1, allocatable: 100 });
    expect(roomOf(seed('s', {}), shoots)).toEqual({ used: 1, allocatable: undefined });
  });
});
