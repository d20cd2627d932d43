// What people have done to a shoot: each is one write of the garden's API.
import { patch, remove } from '../api/objects';
import { resources } from '../api/paths';
import { operationsOf } from './operation';
import type { HibernationSchedule, Shoot, Worker } from './types';

const key = ({ metadata: { namespace, name } }: Shoot) => ({ namespace, name });

const change = (shoot: Shoot, fields: object) => patch<Shoot>('garden', resources.shoots, key(shoot), fields);

/** withOperation adds an operation to those that are asked for already. */
export function withOperation(annotations: Record<string, string> | undefined, operation: string): string {
  return [...new Set([...operationsOf(annotations), operation])].join(';');
}

/** ask has an operation done. The shoot must be as it was read, so that no operation of somebody else is lost. */
export function ask(shoot: Shoot, operation: string) {
  const { annotations, resourceVersion } = shoot.metadata;
  return change(shoot, {
    metadata: { resourceVersion, annotations: { 'gardener.cloud/operation': withOperation(annotations, operation) } },
  });
}

export const hibernate = (shoot: Shoot, enabled: boolean) => change(shoot, { spec: { hibernation: { enabled } } });

export const upgrade = (shoot: Shoot, version: string) => change(shoot, { spec: { kubernetes: { version } } });

export const setSchedules = (shoot: Shoot, schedules: HibernationSchedule[]) =>
  change(shoot, { spec: { hibernation: { schedules } } });

export const setMaintenance = (shoot: Shoot, maintenance: NonNullable<Shoot['spec']['maintenance']>) =>
  change(shoot, { spec: { maintenance } });

/** setWorkers writes all pools, as lists are replaced as a whole: nobody may have changed them meanwhile. */
export const setWorkers = (shoot: Shoot, workers: Worker[]) =>
  change(shoot, { metadata: { resourceVersion: shoot.metadata.resourceVersion }, spec: { provider: { workers } } });

/** deleteShoot confirms the deletion as the garden wants it, and deletes. */
export async function deleteShoot(shoot: Shoot) {
  await change(shoot, { metadata: { annotations: { 'confirmation.gardener.cloud/deletion': 'true' } } });
  await remove('garden', resources.shoots, key(shoot));
}
