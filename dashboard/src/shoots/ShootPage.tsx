import { Anchor, Group } from '@mantine/core';
import { Link, useParams } from 'react-router';

import { resources } from '../api/paths';
import { useConfig } from '../api/session';
import { t } from '../i18n';
import { useLiveObject } from '../live';
import { useProjectOf } from '../projects/projects';
import { Conditions } from '../ui/Conditions';
import { Events } from '../ui/Events';
import { ObjectState } from '../ui/Missing';
import { Facts, Page, Section } from '../ui/Page';
import { When } from '../ui/When';
import { Access } from './Access';
import { ShootStatus } from './columns';
import { Logs } from './Logs';
import { Operation } from './Operation';
import { Operations } from './Operations';
import { Pools } from './Pools';
import { profileOf } from './profile';
import { findProfile, useProfiles } from './profiles';
import { useSeedRight, useShootRights } from './rights';
import { Rotations } from './Rotations';
import { Schedules } from './Schedules';
import { isFleet, rowOf } from './status';
import type { Shoot } from './types';
import { Upgrades } from './Upgrades';

/** ShootPage is a shoot with all that can be known of it and done to it. */
export function ShootPage() {
  const { namespace = '', name = '' } = useParams();
  const state = useLiveObject<Shoot>({ cluster: 'garden', resource: resources.shoots, namespace, name });
  const { object: shoot } = state;
  const project = useProjectOf(namespace);
  return (
    <Page
      title={name}
      path={
        project
          ? [
              { title: t('projects.title'), to: '/projects' },
              { title: project.name, to: `/projects/${project.name}/shoots` },
            ]
          : []
      }
      actions={shoot && <Links shoot={shoot} />}
    >
      <ObjectState
        of={state}
        gone={t('shoot.gone', { name })}
        way={
          project
            ? { title: t('shoots.ofProject', { project: project.name }), to: `/projects/${project.name}/shoots` }
            : { title: t('projects.title'), to: '/projects' }
        }
      />
      {shoot && <Sections key={shoot.metadata.uid} shoot={shoot} />}
    </Page>
  );
}

function Links({ shoot }: { shoot: Shoot }) {
  const { namespace, name } = shoot.metadata;
  const { data: config } = useConfig();
  const maySeed = useSeedRight(shoot.status?.seedName);
  return (
    <Group gap="md">
      {isFleet(shoot) && (
        <Anchor component={Link} to={`/fleets/${namespace}/${name}`}>
          {t('shoot.fleet')}
        </Anchor>
      )}
      {config?.terminal && ((shoot.spec.provider.workers?.length ?? 0) > 0 || maySeed) && (
        <Anchor component={Link} to={`/shoots/${namespace}/${name}/terminal`}>
          {t('shoot.terminal')}
        </Anchor>
      )}
      <Anchor component={Link} to={`/shoots/${namespace}/${name}/yaml`}>
        {t('shoot.yaml')}
      </Anchor>
    </Group>
  );
}

function Sections({ shoot }: { shoot: Shoot }) {
  const { namespace = '', name } = shoot.metadata;
  const rights = useShootRights(namespace);
  const { kind, name: profileName } = profileOf(shoot);
  const { data: profiles } = useProfiles(kind === 'CloudProfile' ? undefined : namespace);
  const profile = findProfile(profiles, kind, profileName)?.spec;
  return (
    <>
      <Operation shoot={shoot} />
      <Section title={t('shoot.health')}>
        <Conditions conditions={[...(shoot.status?.conditions ?? []), ...(shoot.status?.constraints ?? [])]} />
      </Section>
      <Section title={t('shoot.facts')}>
        <ShootFacts shoot={shoot} />
      </Section>
      <Operations shoot={shoot} rights={rights} />
      <Access shoot={shoot} rights={rights} />
      <Upgrades shoot={shoot} profile={profile} mayChange={rights.change} />
      <Pools shoot={shoot} profile={profile} rights={rights} />
      <Schedules shoot={shoot} mayChange={rights.change} />
      <Rotations shoot={shoot} mayChange={rights.change} />
      <Logs shoot={shoot} rights={rights} />
      <Events cluster="garden" namespace={namespace} kind="Shoot" name={name} may={rights.events} />
    </>
  );
}

function ShootFacts({ shoot }: { shoot: Shoot }) {
  const { metadata, spec, status } = shoot;
  const { kind, name } = profileOf(shoot);
  return (
    <Facts
      facts={[
        [t('shoots.status'), <ShootStatus key="status" row={rowOf(shoot)} />],
        [t('shoots.version'), spec.kubernetes.version],
        [t('shoots.purpose'), spec.purpose],
        [t('create.profile'), kind === 'CloudProfile' ? name : `${kind}/${name}`],
        [t('create.region'), spec.region],
        [t('create.credentials'), spec.credentialsBindingName ?? spec.secretBindingName],
        [t('create.ha'), spec.controlPlane?.highAvailability?.failureTolerance.type],
        [t('shoots.seed'), status?.seedName ?? spec.seedName],
        [t('shoot.gardenlet'), status?.gardener?.version],
        [t('shoot.technicalID'), status?.technicalID && <code>{status.technicalID}</code>],
        [t('create.networking'), spec.networking?.type],
        [
          t('shoot.ranges'),
          [spec.networking?.nodes, spec.networking?.pods, spec.networking?.services].filter(Boolean).join(' · '),
        ],
        [t('shoot.domain'), spec.dns?.domain],
        [t('shoot.creator'), metadata.annotations?.['gardener.cloud/created-by']],
        [t('projects.created'), <When key="created" time={metadata.creationTimestamp} />],
        [t('shoot.selfTermination'), expiration(metadata.annotations)],
      ]}
    />
  );
}

function expiration(annotations: Record<string, string> = {}) {
  const time = annotations['shoot.gardener.cloud/expiration-timestamp'];
  return time && <When time={time} />;
}
