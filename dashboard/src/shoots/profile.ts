// What a cloud profile offers, and when that ends. The rules are those of the garden (pkg/apis/core/v1beta1).
import type { MachineType, ProfileSpec, Shoot, Version, VolumeType, Worker } from './types';

/** Days before a version expires from which on its users are warned. */
export const noticeDays = 30;

const defaultArchitecture = 'amd64';

/** classificationAt tells where a version is in its life. */
export function classificationAt(version: Version, now: Date): string {
  if (version.lifecycle?.length) {
    const begun = version.lifecycle.filter(({ startTime }) => !startTime || new Date(startTime) <= now);
    return begun.at(-1)?.classification ?? 'unavailable';
  }
  if (version.expirationDate && new Date(version.expirationDate) <= now) return 'expired';
  return version.classification ?? 'supported';
}

/** expirationOf is when a version expires; undefined if that is not known. */
export function expirationOf(version: Version): Date | undefined {
  const stage = version.lifecycle?.find(({ classification }) => classification === 'expired');
  const time = stage ? stage.startTime : version.expirationDate;
  return time ? new Date(time) : undefined;
}

/** compareVersions orders versions by their numbers; what comes before a release is before it. */
export function compareVersions(a: string, b: string): number {
  const [x, y] = [parse(a), parse(b)];
  for (let i = 0; i < 3; i++) {
    const difference = (x.numbers[i] ?? 0) - (y.numbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  if (x.suffix === y.suffix) return 0;
  if (x.suffix === '') return 1;
  return y.suffix === '' ? -1 : x.suffix.localeCompare(y.suffix, 'en', { numeric: true });
}

function parse(version: string) {
  const [numbers = '', ...suffix] = version.replace(/^v/, '').split('+', 1)[0]?.split('-') ?? [];
  return { numbers: numbers.split('.').map(Number), suffix: suffix.join('-') };
}

/** usable are the versions that somebody may ask for, the newest first. */
export function usable<V extends Version>(versions: V[], now: Date): V[] {
  return versions
    .filter((version) => !['expired', 'unavailable'].includes(classificationAt(version, now)))
    .sort((a, b) => compareVersions(b.version, a.version));
}

/** defaultVersion is the newest that is supported, else the newest that may be asked for. */
export function defaultVersion(versions: Version[], now: Date): string {
  const offered = usable(versions, now);
  return (offered.find((version) => classificationAt(version, now) === 'supported') ?? offered[0])?.version ?? '';
}

export interface Upgrade {
  version: string;
  classification: string;
  kind: 'patch' | 'minor';
  /** Minor versions are gone through one after another: later ones are named, but not offered. */
  offered: boolean;
  expires?: Date;
}

/** upgradesOf are the versions above the present one, the next first. */
export function upgradesOf(current: string, versions: Version[], now: Date): Upgrade[] {
  const minor = parse(current).numbers[1] ?? 0;
  return usable(versions, now)
    .filter(({ version }) => compareVersions(version, current) > 0)
    .reverse()
    .map((version): Upgrade => {
      const ahead = (parse(version.version).numbers[1] ?? 0) - minor;
      return {
        version: version.version,
        classification: classificationAt(version, now),
        kind: ahead === 0 ? 'patch' : 'minor',
        offered: ahead <= 1,
        expires: expirationOf(version),
      };
    });
}

const architectureOf = (type: MachineType | undefined) => type?.architecture ?? defaultArchitecture;

/** imageVersions are those of an image that a machine type can boot, the newest first. */
export function imageVersions(profile: ProfileSpec, image: string, machineType: string, now: Date): Version[] {
  const type = profile.machineTypes?.find(({ name }) => name === machineType);
  const versions = profile.machineImages?.find(({ name }) => name === image)?.versions ?? [];
  return usable(versions, now).filter(({ architectures }) =>
    (architectures ?? [defaultArchitecture]).includes(architectureOf(type)),
  );
}

/** imagesFor are the images that a machine type can boot. */
export function imagesFor(profile: ProfileSpec, machineType: string, now: Date): string[] {
  return (profile.machineImages ?? [])
    .map(({ name }) => name)
    .filter((name) => imageVersions(profile, name, machineType, now).length > 0);
}

const zonesOf = (profile: ProfileSpec, region: string) =>
  profile.regions?.find(({ name }) => name === region)?.zones ?? [];

export const zoneNames = (profile: ProfileSpec, region: string) => zonesOf(profile, region).map(({ name }) => name);

/** machineTypes are those that can be had in all chosen zones; in one zone of the region if none is chosen. */
export function machineTypes(profile: ProfileSpec, region: string, zones: string[]): MachineType[] {
  const lacks = (type: MachineType) => (zone: { unavailableMachineTypes?: string[] }) =>
    zone.unavailableMachineTypes?.includes(type.name) ?? false;
  return (profile.machineTypes ?? []).filter(
    (type) => type.usable !== false && isToBeHad(profile, region, zones, lacks(type)),
  );
}

/** volumeTypes are the same for volumes. */
export function volumeTypes(profile: ProfileSpec, region: string, zones: string[]): VolumeType[] {
  const lacks = (type: VolumeType) => (zone: { unavailableVolumeTypes?: string[] }) =>
    zone.unavailableVolumeTypes?.includes(type.name) ?? false;
  return (profile.volumeTypes ?? []).filter(
    (type) => type.usable !== false && isToBeHad(profile, region, zones, lacks(type)),
  );
}

function isToBeHad(profile: ProfileSpec, region: string, chosen: string[], lacks: (zone: object) => boolean): boolean {
  const all = zonesOf(profile, region);
  if (chosen.length === 0) return all.length === 0 || all.some((zone) => !lacks(zone));
  return all.filter(({ name }) => chosen.includes(name)).every((zone) => !lacks(zone));
}

/** needsVolume: machines of the type have no disk of their own. */
export function needsVolume(profile: ProfileSpec, machineType: string): boolean {
  const type = profile.machineTypes?.find(({ name }) => name === machineType);
  return (profile.volumeTypes?.length ?? 0) > 0 && type?.storage === undefined;
}

export interface Expiry {
  what: string;
  version: string;
  expires: Date;
  expired: boolean;
  soon: boolean;
}

function expiry(what: string, version: string | undefined, versions: Version[], now: Date): Expiry[] {
  const found = versions.find((each) => each.version === version);
  const expires = found && expirationOf(found);
  if (!found || !expires) return [];
  const days = (expires.getTime() - now.getTime()) / 86_400_000;
  return [{ what, version: found.version, expires, expired: days <= 0, soon: days <= noticeDays }];
}

/** versionExpiry is when a version of Kubernetes expires; nothing if the profile does not say. */
export function versionExpiry(
  profile: ProfileSpec | undefined,
  version: string | undefined,
  now: Date,
): Expiry | undefined {
  return expiry('Kubernetes', version, profile?.kubernetes.versions ?? [], now)[0];
}

/** expiriesOf are those of all that a shoot uses, the next first. */
export function expiriesOf(shoot: Shoot, profile: ProfileSpec, now: Date): Expiry[] {
  const ofWorker = ({ name, machine }: Worker) =>
    expiry(
      `${name}: ${machine.image?.name ?? ''}`,
      machine.image?.version,
      profile.machineImages?.find((image) => image.name === machine.image?.name)?.versions ?? [],
      now,
    );
  return [
    ...expiry('Kubernetes', shoot.spec.kubernetes.version, profile.kubernetes.versions ?? [], now),
    ...(shoot.spec.provider.workers ?? []).flatMap(ofWorker),
  ].sort((a, b) => a.expires.getTime() - b.expires.getTime());
}

/** profileOf is the kind and name of a shoot's profile. */
export function profileOf({ spec }: Shoot): { kind: string; name: string } {
  return spec.cloudProfile ?? { kind: 'CloudProfile', name: spec.cloudProfileName ?? '' };
}
