// What people have done to a shoot: each is one write of the garden's API.
import { amend, patch, remove } from '../api/objects';
import { resources } from '../api/paths';
import { operationsOf } from './operation';
import type { HibernationSchedule, Shoot, Worker } from './types';

const key = ({ metadata: { namespace, name } }: Shoot) => ({ namespace, name });

const change = (shoot: Shoot, fields: object) => patch<Shoot>('garden', resources.shoots, key(shoot), fields);

/** withOperation adds an operation to those that are asked for already. */
export function withOperation(annotations: Record<string, string> | undefined, operation: string): string {
  return [...new Set([...operationsOf(annotations), operation])].join(';');
}

/** ask has an operation done, beside those that others have asked for meanwhile. */
export const ask = (shoot: Shoot, operation: string) =>
  amend<Shoot>('garden', resources.shoots, key(shoot), ({ metadata: { annotations } }) => ({
    metadata: { annotations: { 'gardener.cloud/operation': withOperation(annotations, operation) } },
  }));

export const hibernate = (shoot: Shoot, enabled: boolean) => change(shoot, { spec: { hibernation: { enabled } } });

export const upgrade = (shoot: Shoot, version: string) => change(shoot, { spec: { kubernetes: { version } } });

export const setSchedules = (shoot: Shoot, schedules: HibernationSchedule[]) =>
  change(shoot, { spec: { hibernation: { schedules } } });

export const setMaintenance = (shoot: Shoot, maintenance: NonNullable<Shoot['spec']['maintenance']>) =>
  change(shoot, { spec: { maintenance } });

/** setWorker changes a pool, and leaves the others as they are. */
export const setWorker = (shoot: Shoot, worker: Worker) =>
  amend<Shoot>('garden', resources.shoots, key(shoot), ({ spec: { provider } }) => ({
    spec: { provider: { workers: provider.workers?.map((each) => (each.name === worker.name ? worker : each)) } },
  }));

/** deleteShoot confirms the deletion as the garden wants it, and deletes. */
export async function deleteShoot(shoot: Shoot) {
  await change(shoot, { metadata: { annotations: { 'confirmation.gardener.cloud/deletion': 'true' } } });
  await remove('garden', resources.shoots, key(shoot));
}
