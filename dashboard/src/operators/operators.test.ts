import { describe, expect, it } from 'vitest';

import type { ShootRow } from '../shoots/types';
import {
  countBy,
  expiringCertificates,
  expiringVersions,
  failuresOf,
  installationTone,
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
