import { describe, expect, it } from 'vitest';

import { withOperation } from './actions';
import {
  calendarOf,
  clock,
  formatWindow,
  hasGoodLength,
  minutesOf,
  parseWindow,
  scheduleFault,
  windowLength,
} from './calendar';
import { isZone, occurrences, parseCron, timeOf } from './cron';
import { follow, operationsOf, runningTasks } from './operation';
import { allTogether, rotationsOf, stepOf } from './rotation';
import { issuesOf, nodesOf, summaryOf } from './status';
import type { Shoot, ShootRow } from './types';

const row = (fields: Partial<ShootRow>): ShootRow => ({ uid: 'u', namespace: 'garden-a', name: 'one', ...fields });
const operation = (type: string, state: string, progress = 50) => ({ operation: { type, state, progress } });

describe('summaryOf', () => {
  it.each<[string, Partial<ShootRow>, string, string]>([
    ['new', {}, 'busy', 'shoot.waiting'],
    ['creation', operation('Create', 'Processing'), 'busy', 'shoot.creating'],
    ['reconciliation', operation('Reconcile', 'Processing'), 'busy', 'shoot.working'],
    ['error', operation('Reconcile', 'Error'), 'bad', 'shoot.error'],
    ['failure', operation('Reconcile', 'Failed'), 'bad', 'shoot.failed'],
    ['deletion', { deleting: true, ...operation('Delete', 'Processing') }, 'busy', 'shoot.deleting'],
    ['failed deletion', { deleting: true, ...operation('Delete', 'Failed') }, 'bad', 'shoot.deleting'],
    ['ill', { status: 'unhealthy', ...operation('Reconcile', 'Succeeded') }, 'bad', 'shoot.unhealthy'],
    [
      'ill and asleep',
      { status: 'unhealthy', hibernated: true, ...operation('Reconcile', 'Succeeded') },
      'bad',
      'shoot.unhealthy',
    ],
    [
      'asleep',
      { hibernated: true, status: 'healthy', ...operation('Reconcile', 'Succeeded') },
      'neutral',
      'shoot.hibernated',
    ],
    ['well', { status: 'healthy', ...operation('Reconcile', 'Succeeded') }, 'good', 'shoot.healthy'],
  ])('%s', (_, fields, tone, key) => expect(summaryOf(row(fields))).toMatchObject({ tone, key }));
});

describe('rows', () => {
  it('count machines of all pools', () => {
    expect(nodesOf(['a:1-3', 'b:2-2'])).toBe('3–5');
    expect(nodesOf(['a:2-2'])).toBe('2');
    expect(nodesOf()).toBe('0');
  });

  it('name what is wrong', () => {
    expect(
      issuesOf(row({ conditions: { A: 'True', B: 'False', C: 'Unknown', D: 'Progressing' }, codes: ['ERR_X'] })),
    ).toEqual(['B', 'C', 'ERR_X']);
  });
});

describe('operation', () => {
  const now = (description: string, progress = 10, state = 'Processing', type = 'Create') => ({
    type,
    state,
    progress,
    description,
  });

  it('names its running tasks', () => {
    expect(runningTasks(now('Deploying etcd, Waiting for DNS'))).toEqual(['Deploying etcd', 'Waiting for DNS']);
    expect(runningTasks(now('anything, else', 100, 'Succeeded'))).toEqual([]);
  });

  it('is followed task by task', () => {
    let course = follow(undefined, now('a, b'));
    course = follow(course, now('b, c', 30));
    expect(course.tasks.map(({ name, state }) => [name, state])).toEqual([
      ['a', 'done'],
      ['b', 'running'],
      ['c', 'running'],
    ]);
    course = follow(course, now('task b failed', 40, 'Error'), [{ description: 'no', taskID: 'b', codes: ['ERR_X'] }]);
    expect(course.tasks.find(({ name }) => name === 'b')).toEqual({
      name: 'b',
      state: 'failed',
      error: 'no',
      codes: ['ERR_X'],
    });
  });

  it('begins anew with another operation', () => {
    const course = follow(undefined, now('a', 80));
    expect(follow(course, now('z', 5)).tasks.map(({ name }) => name)).toEqual(['z']);
    expect(follow(course, now('z', 90, 'Processing', 'Delete')).tasks.map(({ name }) => name)).toEqual(['z']);
  });

  it('joins what is asked for', () => {
    expect(operationsOf({ 'gardener.cloud/operation': 'a;b' })).toEqual(['a', 'b']);
    expect(withOperation({ 'gardener.cloud/operation': 'a' }, 'b')).toBe('a;b');
    expect(withOperation({ 'gardener.cloud/operation': 'a' }, 'a')).toBe('a');
    expect(withOperation(undefined, 'a')).toBe('a');
  });
});

describe('cron', () => {
  const next = (text: string, zone: string, after: string, days = 7) => {
    const cron = parseCron(text);
    if (!cron) throw new Error(text);
    return occurrences(cron, zone, new Date(after), days).map((time) => time.toISOString().slice(0, 16));
  };

  it.each([
    '',
    '* * * *',
    '60 0 * * *',
    '0 24 * * *',
    '0 0 0 * *',
    '0 0 * 13 *',
    '0 0 * * 8',
    '5-1 * * * *',
    '*/0 * * * *',
    'a b c d e',
    '@daily',
  ])('refuses %j', (text) => expect(parseCron(text)).toBeUndefined());

  it('follows the clock of a zone through the change of summer time', () => {
    expect(next('0 20 * * *', 'Europe/Berlin', '2026-10-24T00:00:00Z', 2)).toEqual([
      '2026-10-24T18:00',
      '2026-10-25T19:00',
    ]);
  });

  it('knows names, ranges, steps, and Sunday as 7', () => {
    expect(next('0 8 * * mon-wed/2', 'UTC', '2026-11-27T00:00:00Z')).toEqual(['2026-11-30T08:00', '2026-12-02T08:00']);
    expect(next('30 6 * dec 7', 'UTC', '2026-11-27T00:00:00Z', 14)).toEqual(['2026-12-06T06:30']);
    expect(next('0/20 23 27 11 *', 'UTC', '2026-11-27T23:10:00Z', 1)).toEqual(['2026-11-27T23:20', '2026-11-27T23:40']);
  });

  it('takes days of the month and of the week as alternatives', () => {
    expect(next('0 0 1 * 5', 'UTC', '2026-11-28T00:00:00Z')).toEqual(['2026-12-01T00:00', '2026-12-04T00:00']);
  });

  it('has a time for one that is left out in spring', () => {
    expect(timeOf({ year: 2026, month: 3, day: 29, hour: 2, minute: 30 }, 'Europe/Berlin').toISOString()).toMatch(
      /^2026-03-29T0[01]:30/,
    );
  });

  it('knows zones', () => expect([isZone('Asia/Shanghai'), isZone('Moon/Base')]).toEqual([true, false]));
});

describe('maintenance windows', () => {
  it.each([
    [
      { begin: '220000+0100', end: '230000+0100' },
      { begin: 1320, end: 1380, offset: 60 },
    ],
    [
      { begin: '233000-0530', end: '003000-0530' },
      { begin: 1410, end: 30, offset: -330 },
    ],
    [
      { begin: '220000+0000', end: '010000+0200' },
      { begin: 1320, end: 1380, offset: 0 },
    ],
  ])('%j', (text, want) => {
    expect(parseWindow(text)).toEqual(want);
    expect(parseWindow(formatWindow(want))).toEqual(want);
  });

  it('are refused when they are none', () => {
    expect(parseWindow({ begin: '22:00', end: '23:00' })).toBeUndefined();
    expect(parseWindow(undefined)).toBeUndefined();
  });

  it('last from half an hour to six hours', () => {
    const length = (begin: number, end: number) => hasGoodLength({ begin, end, offset: 0 });
    expect([length(0, 29), length(0, 30), length(1410, 330), length(0, 361), length(5, 5)]).toEqual([
      false,
      true,
      true,
      false,
      false,
    ]);
    expect(windowLength({ begin: 1410, end: 30, offset: 0 })).toBe(60);
  });

  it('are read from a clock', () => {
    expect([minutesOf('22:05'), minutesOf('24:00'), minutesOf(''), clock(1325)]).toEqual([
      1325,
      undefined,
      undefined,
      '22:05',
    ]);
  });
});

describe('calendarOf', () => {
  const spec = {
    region: 'r',
    kubernetes: { version: '1' },
    provider: { type: 'local' },
    maintenance: { timeWindow: { begin: '220000+0100', end: '230000+0100' } },
    hibernation: {
      schedules: [{ start: '0 19 * * *', end: '0 7 * * *', location: 'Europe/Berlin' }, { start: 'nonsense' }],
    },
  };

  it('tells what comes, in its order', () => {
    const entries = calendarOf(spec, new Date('2026-11-27T12:00:00Z'), 1);
    expect(entries.map(({ kind, begin }) => [kind, begin.toISOString().slice(0, 16)])).toEqual([
      ['sleep', '2026-11-27T18:00'],
      ['maintenance', '2026-11-27T21:00'],
      ['wake', '2026-11-28T06:00'],
    ]);
  });

  it('has a window that is open now', () => {
    expect(calendarOf(spec, new Date('2026-11-27T21:30:00Z'), 1)[0]).toMatchObject({ kind: 'maintenance' });
  });

  it.each([
    [{}, 'empty'],
    [{ start: 'x' }, 'start'],
    [{ start: '0 1 * * *', end: 'x' }, 'end'],
    [{ end: '0 1 * * *', location: 'X/Y' }, 'location'],
    [{ end: '0 1 * * *', location: 'UTC' }, undefined],
  ])('%j has fault %s', (schedule, want) => expect(scheduleFault(schedule)).toBe(want));
});

describe('rotations', () => {
  const shoot = (rotation: object, workers = [{ name: 'p' }]) =>
    ({
      metadata: { name: 'one' },
      spec: { provider: { workers } },
      status: { credentials: { rotation } },
    }) as unknown as Shoot;

  it('offer what comes next', () => {
    const list = rotationsOf(
      shoot({
        certificateAuthorities: { phase: 'Prepared' },
        serviceAccountKey: {
          phase: 'WaitingForWorkersRollout',
          pendingWorkersRollouts: [{ name: 'a' }, { name: 'b' }],
        },
        etcdEncryptionKey: { phase: 'Completing' },
      }),
    );
    expect(list.map(({ id, next }) => [id, next?.operation])).toEqual([
      ['ca', 'rotate-ca-complete'],
      ['serviceaccount-key', 'rotate-rollout-workers=a,b'],
      ['etcd-encryption-key', undefined],
      ['ssh-keypair', 'rotate-ssh-keypair'],
    ]);
  });

  it('have no SSH key without workers', () =>
    expect(rotationsOf(shoot({}, [])).map(({ id }) => id)).not.toContain('ssh-keypair'));

  it.each([
    [{}, 'rotate-credentials-start'],
    [
      { certificateAuthorities: { phase: 'Prepared' }, serviceAccountKey: { phase: 'Prepared' } },
      'rotate-credentials-complete',
    ],
    [{ certificateAuthorities: { phase: 'Prepared' } }, undefined],
    [{ certificateAuthorities: { phase: 'Preparing' }, serviceAccountKey: { phase: 'Preparing' } }, undefined],
  ])('together: %j', (rotation, want) => expect(allTogether(rotationsOf(shoot(rotation)))?.operation).toBe(want));

  it('are counted by phases', () =>
    expect([undefined, 'PreparingWithoutWorkersRollout', 'Completed'].map(stepOf)).toEqual([0, 1, 5]));
});
