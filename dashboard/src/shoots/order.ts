// From the answers of the form for new shoots to a Shoot, as trellisctl create shoot does.
import { defaultVersion, imagesFor, imageVersions, machineTypes, needsVolume, volumeTypes, zoneNames } from './profile';
import type { OfferedProfile } from './profiles';
import type { HibernationSchedule, ProfileSpec, Shoot, Worker } from './types';
import { scheduleFault } from './calendar';

export interface Pool {
  name: string;
  type: string;
  image: string;
  imageVersion: string;
  minimum: number;
  maximum: number;
  zones: string[];
  volumeType: string;
  volumeSize: string;
}

export interface Answers {
  name: string;
  region: string;
  version: string;
  purpose: string;
  ha: '' | 'node' | 'zone';
  workerless: boolean;
  credentials: string;
  networking: string;
  pools: Pool[];
  schedules: HibernationSchedule[];
}

/** newPool is the first choice of everything. */
export function newPool(profile: ProfileSpec, region: string, name: string, now: Date): Pool {
  const pool = {
    name,
    type: '',
    image: '',
    imageVersion: '',
    minimum: 1,
    maximum: 2,
    zones: [],
    volumeType: '',
    volumeSize: '',
  };
  return fit({ ...pool, zones: zoneNames(profile, region).slice(0, 1) }, profile, region, now);
}

const oneOf = (wanted: string, offered: string[]) => (offered.includes(wanted) ? wanted : (offered[0] ?? ''));

/** fit replaces what is not on offer any more, as after another region or machine type was chosen. */
export function fit(pool: Pool, profile: ProfileSpec, region: string, now: Date): Pool {
  const all = zoneNames(profile, region);
  const kept = pool.zones.filter((zone) => all.includes(zone));
  const zones = kept.length > 0 ? kept : all.slice(0, 1);
  const type = oneOf(
    pool.type,
    machineTypes(profile, region, zones).map(({ name }) => name),
  );
  const image = oneOf(pool.image, imagesFor(profile, type, now));
  const imageVersion = oneOf(
    pool.imageVersion,
    imageVersions(profile, image, type, now).map(({ version }) => version),
  );
  const volumes = needsVolume(profile, type) ? volumeTypes(profile, region, zones) : [];
  const volumeType = oneOf(
    pool.volumeType,
    volumes.map(({ name }) => name),
  );
  const least = volumes.find(({ name }) => name === volumeType)?.minSize;
  const volumeSize = volumeType === '' ? '' : pool.volumeSize || (least ?? '50Gi');
  return { ...pool, zones, type, image, imageVersion, volumeType, volumeSize };
}

/** firstAnswers are those for a profile before somebody chooses. */
export function firstAnswers(profile: ProfileSpec, credentials: string[], networks: string[], now: Date): Answers {
  const region = profile.regions?.[0]?.name ?? '';
  return {
    name: '',
    region,
    version: defaultVersion(profile.kubernetes.versions ?? [], now),
    purpose: 'evaluation',
    ha: '',
    workerless: false,
    credentials: credentials[0] ?? '',
    networking: networks[0] ?? '',
    pools: [newPool(profile, region, 'pool-1', now)],
    schedules: [],
  };
}

function worker({ name, type, image, imageVersion, minimum, maximum, zones, volumeType, volumeSize }: Pool): Worker {
  return {
    name,
    machine: { type, ...(image ? { image: { name: image, version: imageVersion || undefined } } : {}) },
    minimum,
    maximum,
    ...(zones.length > 0 ? { zones } : {}),
    ...(volumeType ? { volume: { type: volumeType, size: volumeSize } } : {}),
  };
}

/** shootOf is the Shoot that the answers make. What is left to the garden is left out. */
export function shootOf(answers: Answers, namespace: string, profile: OfferedProfile): Shoot {
  const { workerless } = answers;
  return {
    apiVersion: 'core.gardener.cloud/v1beta1',
    kind: 'Shoot',
    metadata: { name: answers.name, namespace },
    spec: {
      cloudProfile: { kind: profile.kind, name: profile.name },
      region: answers.region,
      purpose: answers.purpose,
      kubernetes: { version: answers.version },
      ...(answers.ha ? { controlPlane: { highAvailability: { failureTolerance: { type: answers.ha } } } } : {}),
      ...(!workerless && answers.credentials ? { credentialsBindingName: answers.credentials } : {}),
      ...(!workerless && answers.networking ? { networking: { type: answers.networking } } : {}),
      provider: { type: profile.spec.type, ...(workerless ? {} : { workers: answers.pools.map(worker) }) },
      ...(answers.schedules.length > 0 ? { hibernation: { schedules: answers.schedules } } : {}),
    },
  };
}

export type Faults = Partial<
  Record<'name' | 'networking' | 'pools' | 'schedules', 'required' | 'form' | 'order' | 'double'>
>;

const isName = (name: string, most: number) => name.length <= most && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);

/** faultsOf is what can be told without the garden. */
export function faultsOf({ name, workerless, networking, pools, schedules }: Answers): Faults {
  const faults: Faults = {};
  if (name === '') faults.name = 'required';
  else if (!isName(name, 20) || name.includes('--')) faults.name = 'form';
  if (schedules.some((schedule) => scheduleFault(schedule))) faults.schedules = 'form';
  if (workerless) return faults;
  if (networking === '') faults.networking = 'required';
  if (new Set(pools.map((pool) => pool.name)).size < pools.length) faults.pools = 'double';
  if (pools.some(({ minimum, maximum }) => minimum > maximum)) faults.pools = 'order';
  if (pools.some((pool) => !isName(pool.name, 15))) faults.pools = 'form';
  if (pools.length === 0) faults.pools = 'required';
  return faults;
}
