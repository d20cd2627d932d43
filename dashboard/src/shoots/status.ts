// How a shoot is, in one word.
import type { MessageKey } from '../i18n';
import type { Tone } from '../ui/Tone';
import type { Shoot, ShootRow } from './types';

export interface Summary {
  tone: Tone;
  key: MessageKey;
  progress?: number;
}

/** summaryOf tells what a shoot's row says first: what is being done, then what is wrong, then that all is well. */
export function summaryOf(row: ShootRow): Summary {
  const { operation } = row;
  const progress = operation?.progress;
  const works = operation?.state === 'Processing' || operation?.state === 'Pending';
  if (row.deleting) return { tone: operation?.state === 'Failed' ? 'bad' : 'busy', key: 'shoot.deleting', progress };
  if (operation?.state === 'Failed') return { tone: 'bad', key: 'shoot.failed' };
  if (operation?.state === 'Error') return { tone: 'bad', key: 'shoot.error', progress };
  if (works && operation?.type === 'Create') return { tone: 'busy', key: 'shoot.creating', progress };
  if (works) return { tone: 'busy', key: 'shoot.working', progress };
  if (!operation) return { tone: 'busy', key: 'shoot.waiting' };
  if (row.status === 'unhealthy') return { tone: 'bad', key: 'shoot.unhealthy' };
  if (row.hibernated) return { tone: 'neutral', key: 'shoot.hibernated' };
  if (row.status === 'progressing') return { tone: 'busy', key: 'shoot.settling' };
  if (row.status === 'unknown') return { tone: 'warning', key: 'shoot.unknown' };
  return { tone: 'good', key: 'shoot.healthy' };
}

/** rowOf makes of a shoot what its row has, as far as summaryOf needs it. */
export function rowOf(shoot: Shoot): ShootRow {
  const { metadata, spec, status } = shoot;
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    deleting: metadata.deletionTimestamp !== undefined,
    version: spec.kubernetes.version,
    hibernated: status?.hibernated,
    status: metadata.labels?.['shoot.gardener.cloud/status'] as ShootRow['status'],
    operation: status?.lastOperation,
  };
}

/** issuesOf counts what is wrong with a shoot: conditions that do not hold, and error codes. */
export function issuesOf(row: ShootRow): string[] {
  const conditions = Object.entries(row.conditions ?? {})
    .filter(([, status]) => status === 'False' || status === 'Unknown')
    .map(([type]) => type);
  return [...conditions, ...(row.codes ?? [])];
}

/** nodesOf is the least and the largest number of machines of all pools, of pools like name:1-3. */
export function nodesOf(workers: string[] = []): string {
  let [least, most] = [0, 0];
  for (const pool of workers) {
    const range = /:(\d+)-(\d+)$/.exec(pool);
    least += Number(range?.[1] ?? 0);
    most += Number(range?.[2] ?? 0);
  }
  return least === most ? String(least) : `${least}–${most}`;
}

export const isFleet = ({ spec }: Shoot) =>
  spec.extensions?.some(({ type, disabled }) => type === 'federation' && !disabled) ?? false;

/** mayLookInside tells whether somebody may read what runs in a shoot, and it runs. */
export const mayLookInside = ({ spec, status }: Shoot, rights: { admin: boolean; viewer: boolean }) =>
  (rights.admin || rights.viewer) &&
  (spec.provider.workers?.length ?? 0) > 0 &&
  !status?.hibernated &&
  status?.lastOperation !== undefined;
