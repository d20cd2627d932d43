// A garden at a glance: what operators look at first.
import type { Condition } from '../api/types';
import type { MessageKey } from '../i18n';
import { conditionTone } from '../ui/Conditions';
import type { Tone } from '../ui/Tone';
import { classificationAt, expirationOf } from '../shoots/profile';
import type { OfferedProfile } from '../shoots/profiles';
import { issuesOf, summaryOf } from '../shoots/status';
import type { NamespacedCloudProfile, ProfileSpec, ShootRow, Version } from '../shoots/types';
import type { ControllerInstallation, Seed } from './types';

export interface Count {
  name: string;
  count: number;
}

const sorted = (counts: Map<string, number>): Count[] =>
  [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || a.name.localeCompare(b.name));

/** countBy counts what a function names; what it does not name is left out. The largest are first. */
export function countBy<T>(items: T[], nameOf: (item: T) => string | undefined): Count[] {
  const counts = new Map<string, number>();
  for (const item of items) {
    const name = nameOf(item);
    if (name) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return sorted(counts);
}

/** machinesOf is how many machines a shoot may have: what it may cost. */
const machinesOf = ({ workers = [] }: ShootRow): number =>
  workers.reduce((sum, pool) => sum + Number(/-(\d+)$/.exec(pool)?.[1] ?? 0), 0);

/** machinesBy adds up the machines of shoots for each name. The largest are first. */
export function machinesBy(shoots: ShootRow[], nameOf: (shoot: ShootRow) => string): Count[] {
  const counts = new Map<string, number>();
  for (const shoot of shoots) {
    const machines = shoot.hibernated ? 0 : machinesOf(shoot);
    if (machines > 0) counts.set(nameOf(shoot), (counts.get(nameOf(shoot)) ?? 0) + machines);
  }
  return sorted(counts);
}

export interface StateCount {
  key: MessageKey;
  tone: Tone;
  count: number;
}

/** statesOf counts shoots by what their rows say first. */
export function statesOf(shoots: ShootRow[]): StateCount[] {
  const states = Map.groupBy(shoots.map(summaryOf), ({ key }) => key);
  return [...states]
    .map(([key, all]) => ({ key, tone: all[0]?.tone ?? ('neutral' as Tone), count: all.length }))
    .sort((a, b) => b.count - a.count);
}

/** failuresOf counts what has failed: conditions that do not hold, and error codes. */
export const failuresOf = (shoots: ShootRow[]): Count[] => countBy(shoots.flatMap(issuesOf), (issue) => issue);

export interface Expiring {
  what: string;
  name: string;
  expires?: Date;
  expired: boolean;
  /** How many shoots use it; undefined where that is no question. */
  shoots?: number;
}

const withinDays = (days: number, now: Date) => (time: Date | undefined) =>
  time !== undefined && time.getTime() - now.getTime() <= days * 86_400_000;

/**
 * expiringVersions are those of Kubernetes that expire soon, or have expired and are still used, and those of machine
 * images that expire soon: rows do not tell who uses one.
 */
export function expiringVersions(profiles: OfferedProfile[], shoots: ShootRow[], days: number, now: Date): Expiring[] {
  const uses = ({ profile, ownProfile = false, version }: ShootRow, name: string, of: Version) =>
    !ownProfile && profile === name && version === of.version;
  return expiringOf(profiles, shoots, uses, days, now);
}

/** OwnProfile is a NamespacedCloudProfile with its place, and the parent of which it has most versions. */
interface OwnProfile {
  namespace: string;
  name: string;
  parent?: ProfileSpec;
  spec: ProfileSpec;
}

/** ownProfilesOf are the NamespacedCloudProfiles that were merged with their parents. */
export const ownProfilesOf = (all: NamespacedCloudProfile[], profiles: OfferedProfile[]): OwnProfile[] =>
  all.flatMap(({ metadata, spec: { parent }, status }) =>
    status?.cloudProfileSpec
      ? [
          {
            namespace: metadata.namespace ?? '',
            name: metadata.name,
            parent: profiles.find(({ name }) => name === parent?.name)?.spec,
            spec: status.cloudProfileSpec,
          },
        ]
      : [],
  );

/** expiringOwnVersions are those that projects have at another time than all others, or that their shoots use. */
export function expiringOwnVersions(own: OwnProfile[], shoots: ShootRow[], days: number, now: Date): Expiring[] {
  return own.flatMap(({ namespace, name, parent, spec }) => {
    const uses = (shoot: ShootRow, _: string, of: Version) =>
      shoot.ownProfile === true &&
      shoot.namespace === namespace &&
      shoot.profile === name &&
      shoot.version === of.version;
    const inParent = new Set(
      [
        ...(parent?.kubernetes.versions ?? []),
        ...(parent?.machineImages ?? []).flatMap(({ versions }) => versions),
      ].map(({ version, expirationDate = '' }) => `${version} ${expirationDate}`),
    );
    const isOwn = (version: Version) =>
      !inParent.has(`${version.version} ${version.expirationDate ?? ''}`) ||
      shoots.some((shoot) => uses(shoot, name, version));
    const theirs: ProfileSpec = {
      ...spec,
      kubernetes: { versions: (spec.kubernetes.versions ?? []).filter(isOwn) },
      machineImages: (spec.machineImages ?? []).map((image) => ({ ...image, versions: image.versions.filter(isOwn) })),
    };
    return expiringOf(
      [{ kind: 'NamespacedCloudProfile', name: `${namespace}/${name}`, spec: theirs }],
      shoots,
      uses,
      days,
      now,
    );
  });
}

type Uses = (shoot: ShootRow, profile: string, version: Version) => boolean;

function expiringOf(profiles: OfferedProfile[], shoots: ShootRow[], uses: Uses, days: number, now: Date): Expiring[] {
  const isNear = withinDays(days, now);
  const expiring = (what: string, name: string, version: Version): Expiring => ({
    what: `${what} ${version.version}`,
    name,
    expires: expirationOf(version),
    expired: classificationAt(version, now) === 'expired',
  });
  return profiles.flatMap(({ name, spec }) => [
    ...(spec.kubernetes.versions ?? [])
      .map((version) => ({
        ...expiring('Kubernetes', name, version),
        shoots: shoots.filter((shoot) => uses(shoot, name, version)).length,
      }))
      .filter(({ expires, expired, shoots }) => (expired ? shoots > 0 : isNear(expires))),
    ...(spec.machineImages ?? [])
      .flatMap((image) => image.versions.map((version) => expiring(image.name, name, version)))
      .filter(({ expires, expired }) => !expired && isNear(expires)),
  ]);
}

/** expiringCertificates are those of gardenlets, and of shoots whose authorities expire. */
export function expiringCertificates(seeds: Seed[], shoots: ShootRow[], days: number, now: Date): Expiring[] {
  const isNear = withinDays(days, now);
  const ofSeeds = seeds.flatMap(({ metadata, status }): Expiring[] => {
    const text = status?.clientCertificateExpirationTimestamp;
    const expires = text ? new Date(text) : undefined;
    return isNear(expires)
      ? [{ what: 'gardenlet', name: metadata.name, expires, expired: expires !== undefined && expires <= now }]
      : [];
  });
  const ofShoots = shoots
    .filter(({ conditions }) => conditions?.CACertificateValiditiesAcceptable === 'False')
    .map(({ namespace, name }): Expiring => ({ what: 'CA', name: `${namespace}/${name}`, expired: false }));
  return [...ofSeeds, ...ofShoots];
}

/** GardenCertificate is one that the garden shows to everybody. */
export interface GardenCertificate {
  what: string;
  name: string;
  expires: string;
}

/** expiringOfGarden are those of the garden itself, of the dashboard among them. */
export const expiringOfGarden = (all: GardenCertificate[], days: number, now: Date): Expiring[] =>
  all
    .map(({ what, name, expires }) => ({ what, name, expires: new Date(expires), expired: new Date(expires) <= now }))
    .filter(({ expires }) => withinDays(days, now)(expires));

/** soonestFirst sorts what expires; what has no date is last. */
export const soonestFirst = (all: Expiring[]): Expiring[] =>
  [...all].sort((a, b) => (a.expires?.getTime() ?? Infinity) - (b.expires?.getTime() ?? Infinity));

/** toneOf is the worst of some conditions. */
export function toneOf(conditions: Condition[] = []): Tone {
  const tones = conditions.map(({ type, status }) => conditionTone(type, status));
  return (
    (['bad', 'warning', 'busy'] as const).find((tone) => tones.includes(tone)) ??
    (tones.length > 0 ? 'good' : 'warning')
  );
}

/** installationTone: an installation is Progressing by being True, which is not good but under way. */
export function installationTone({ status }: ControllerInstallation): Tone {
  const conditions = status?.conditions ?? [];
  const isProgressing = conditions.some(({ type, status }) => type === 'Progressing' && status === 'True');
  const tone = toneOf(conditions.filter(({ type }) => type !== 'Progressing' && type !== 'Required'));
  return tone === 'good' && isProgressing ? 'busy' : tone;
}

/** roomOf is how many shoots a seed has, and may have. */
export function roomOf(seed: Seed, shoots: ShootRow[]): { used: number; allocatable?: number } {
  const allocatable = seed.status?.allocatable?.shoots;
  const used = shoots.filter((shoot) => shoot.seed === seed.metadata.name).length;
  return { used, allocatable: allocatable === undefined ? undefined : Number(allocatable) };
}

/** shootOfEntry is whose backups an entry has: its name begins with the technical ID. */
export const shootOfEntry = (entry: string, shoots: ShootRow[]) =>
  shoots.find(({ technicalID }) => technicalID !== undefined && entry.startsWith(`${technicalID}--`));
