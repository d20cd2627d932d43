// What the shoots of a project take of its quotas: as admission counts it, when all their pools are at their maximum.
import type { KubernetesObject, ObjectReference } from '../api/types';
import { parseQuantity } from '../fleets/quantity';
import { profileOf } from '../shoots/profile';
import { findProfile, type OfferedProfile } from '../shoots/profiles';
import type { ProfileSpec, Shoot, Worker } from '../shoots/types';
import type { CredentialsBinding } from './credentials';

export interface Quota extends KubernetesObject {
  spec: { clusterLifetimeDays?: number; metrics: Record<string, string>; scope: ObjectReference };
}

/** metrics that a quota may limit, as shoots count against them. */
export const metrics = ['cpu', 'gpu', 'memory', 'storage.standard', 'storage.premium', 'loadbalancer'];

type Amounts = Record<string, number>;

const isLimitedBy = ({ metadata }: Quota, { quotas = [] }: CredentialsBinding) =>
  quotas.some(({ namespace, name }) => namespace === metadata.namespace && name === metadata.name);

/** usedOf is what the shoots take together whose credentials name the quota. */
export function usedOf(
  quota: Quota,
  bindings: CredentialsBinding[],
  shoots: Shoot[],
  profiles: OfferedProfile[] | undefined,
): Amounts {
  const limiting = bindings.filter((binding) => isLimitedBy(quota, binding));
  const limited = new Set(limiting.map(({ metadata }) => metadata.name));
  const used: Amounts = {};
  for (const shoot of shoots) {
    if (!limited.has(shoot.spec.credentialsBindingName ?? '')) continue;
    const { kind, name } = profileOf(shoot);
    add(used, demandOf(shoot, findProfile(profiles, kind, name)?.spec), 1);
  }
  return used;
}

function demandOf({ spec }: Shoot, profile: ProfileSpec | undefined): Amounts {
  const demand: Amounts = {};
  for (const worker of spec.provider.workers ?? []) add(demand, demandOfMachine(worker, profile), worker.maximum);
  if (spec.addons?.nginxIngress?.enabled) add(demand, { loadbalancer: 1 }, 1);
  return demand;
}

/** A type that has left the profile is not counted. */
function demandOfMachine({ machine, volume, dataVolumes = [] }: Worker, profile: ProfileSpec | undefined): Amounts {
  const type = profile?.machineTypes?.find(({ name }) => name === machine.type);
  const demand: Amounts = {};
  if (type) {
    const of = (text: string | undefined) => parseQuantity(text) ?? 0;
    add(demand, { cpu: of(type.cpu), memory: of(type.memory), gpu: of(type.gpu) }, 1);
  }
  const classOf = (name: string | undefined) => profile?.volumeTypes?.find((each) => each.name === name)?.class;
  if (volume) addStorage(demand, classOf(volume.type), volume.size);
  else addStorage(demand, type?.storage?.class, type?.storage?.size);
  dataVolumes.forEach(({ type, size }) => addStorage(demand, classOf(type), size));
  return demand;
}

/** Classes other than standard and premium have no metric. */
function addStorage(to: Amounts, storage: string | undefined, size: string | undefined) {
  if (storage !== 'standard' && storage !== 'premium') return;
  add(to, { [`storage.${storage}`]: parseQuantity(size) ?? 0 }, 1);
}

function add(to: Amounts, added: Amounts, times: number) {
  for (const [name, amount] of Object.entries(added)) to[name] = (to[name] ?? 0) + times * amount;
}
