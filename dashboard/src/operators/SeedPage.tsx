import { useParams } from 'react-router';

import { patch } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { useLiveList, useLiveObject } from '../live';
import { shootColumns } from '../shoots/columns';
import { Confirmed } from '../shoots/Operations';
import { useProfiles } from '../shoots/profiles';
import type { ShootRow } from '../shoots/types';
import { Offer } from '../ui/Action';
import { Conditions } from '../ui/Conditions';
import { ListTable } from '../ui/ListTable';
import { ObjectState } from '../ui/Missing';
import { Facts, Page, Section } from '../ui/Page';
import { When } from '../ui/When';
import { InstallationsTable } from './Installations';
import { useInstallations } from './lists';
import { Room } from './Seeds';
import type { Seed } from './types';

/** SeedPage is a seed with its health, its shoots and its extensions. */
export function SeedPage() {
  const { name = '' } = useParams();
  const seed = useLiveObject<Seed>({ cluster: 'garden', resource: resources.seeds, name });
  const way = { title: t('garden.seeds'), to: '/operations?tab=seeds' };
  return (
    <Page title={t('seed.title', { name })} path={[way]}>
      <ObjectState of={seed} gone={t('seed.gone', { name })} way={way} />
      {seed.object && <Sections seed={seed.object} />}
    </Page>
  );
}

function Sections({ seed }: { seed: Seed }) {
  const { name } = seed.metadata;
  const shoots = useLiveList<ShootRow>({ cluster: 'garden', resource: resources.shoots, filter: `seed:${name}` });
  const installations = useInstallations();
  const { data: profiles } = useProfiles();
  const hosted = shoots.items.filter((shoot) => shoot.seed === name);
  return (
    <>
      <Section title={t('shoot.health')}>
        <Conditions conditions={seed.status?.conditions ?? []} />
      </Section>
      <Section title={t('shoot.facts')}>
        <SeedFacts seed={seed} shoots={hosted} />
      </Section>
      <SeedOperations name={name} />
      <Section title={t('shoots.title')}>
        <ListTable
          label={t('shoots.title')}
          list={shoots}
          columns={shootColumns(profiles, true)}
          none={t('shoots.none')}
          rows={hosted}
        />
      </Section>
      <Section title={t('garden.installations')}>
        <InstallationsTable
          list={installations}
          rows={installations.items.filter(({ spec }) => spec.seedRef?.name === name)}
        />
      </Section>
    </>
  );
}

function SeedFacts({ seed, shoots }: { seed: Seed; shoots: ShootRow[] }) {
  const { spec, status, metadata } = seed;
  return (
    <Facts
      facts={[
        [t('seed.room'), <Room key="room" seed={seed} shoots={shoots} />],
        [
          t('credentials.provider'),
          `${spec.provider.type} ${spec.provider.region} ${(spec.provider.zones ?? []).join(', ')}`,
        ],
        [t('shoots.version'), status?.kubernetesVersion],
        [t('shoot.gardenlet'), status?.gardener?.version],
        [
          t('seed.certificate'),
          status?.clientCertificateExpirationTimestamp && <When time={status.clientCertificateExpirationTimestamp} />,
        ],
        [t('seed.taints'), (spec.taints ?? []).map(({ key, value }) => (value ? `${key}=${value}` : key)).join(', ')],
        [t('seed.visible'), t(spec.settings?.scheduling?.visible === false ? 'ui.no' : 'ui.yes')],
        [t('seed.backup'), spec.backup && `${spec.backup.provider} ${spec.backup.region ?? ''}`],
        [
          t('shoot.ranges'),
          [spec.networks?.nodes, spec.networks?.pods, spec.networks?.services].filter(Boolean).join(' · '),
        ],
        [t('projects.created'), <When key="created" time={metadata.creationTimestamp} />],
      ]}
    />
  );
}

function SeedOperations({ name }: { name: string }) {
  const rights = useRights('garden', { change: { verb: 'patch', resource: resources.seeds, name } });
  const ask = (operation: string) => () =>
    patch(
      'garden',
      resources.seeds,
      { name },
      { metadata: { annotations: { 'gardener.cloud/operation': operation } } },
    );
  return (
    <Section title={t('actions.title')}>
      <Offer may={rights.change} who="operator">
        <Confirmed label="actions.reconcile" help="seed.reconcileHelp" act={ask('reconcile')} />{' '}
        <Confirmed label="seed.renewKubeconfig" help="seed.renewKubeconfigHelp" act={ask('renew-kubeconfig')} />
      </Offer>
    </Section>
  );
}
