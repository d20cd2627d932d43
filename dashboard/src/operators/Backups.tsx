import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import type { LastOperation } from '../api/types';
import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import type { ShootRow } from '../shoots/types';
import { conditionTone } from '../ui/Conditions';
import { ListTable } from '../ui/ListTable';
import { Section } from '../ui/Page';
import type { Column } from '../ui/Table';
import { ToneBadge, type Tone } from '../ui/Tone';
import { When } from '../ui/When';
import { shootOfEntry } from './glance';
import { useAllShoots } from './lists';
import type { BackupBucket, BackupEntry } from './types';

const tones: Record<string, Tone> = { Succeeded: 'good', Error: 'bad', Failed: 'bad' };

function State({ operation }: { operation: LastOperation | undefined }) {
  if (!operation) return <ToneBadge tone="busy">–</ToneBadge>;
  return <ToneBadge tone={tones[operation.state] ?? 'busy'}>{`${operation.type} ${operation.state}`}</ToneBadge>;
}

function Owner({ shoot }: { shoot: ShootRow | undefined }) {
  if (!shoot) return '–';
  return (
    <Anchor component={Link} to={`/shoots/${shoot.namespace}/${shoot.name}`}>
      {shoot.name}
    </Anchor>
  );
}

/** Saved is whether all changes are in the backups, and those can be restored. The shoot's page says since when. */
function Saved({ shoot }: { shoot: ShootRow | undefined }) {
  const status = shoot?.conditions?.EtcdBackupReady;
  if (!status) return '–';
  const tone = conditionTone('EtcdBackupReady', status);
  return <ToneBadge tone={tone}>{t(`tone.${tone}`)}</ToneBadge>;
}

/** Backups are the buckets of the seeds, and what the control planes store there. */
export function Backups() {
  const buckets = useLiveList<BackupBucket>({ cluster: 'garden', resource: resources.backupbuckets, view: 'object' });
  const entries = useLiveList<BackupEntry>({ cluster: 'garden', resource: resources.backupentries, view: 'object' });
  const shoots = useAllShoots();
  const bucketColumns: Column<BackupBucket>[] = [
    {
      id: 'name',
      title: t('backup.bucket'),
      width: '2fr',
      sort: ({ metadata }) => metadata.name,
      cell: ({ metadata }) => metadata.name,
    },
    { id: 'seed', title: t('shoots.seed'), sort: ({ spec }) => spec.seedName ?? '', cell: ({ spec }) => spec.seedName },
    {
      id: 'provider',
      title: t('credentials.provider'),
      cell: ({ spec }) => `${spec.provider.type} ${spec.provider.region}`,
    },
    { id: 'state', title: t('shoots.status'), cell: ({ status }) => <State operation={status?.lastOperation} /> },
    { id: 'error', title: t('events.message'), width: '2fr', cell: ({ status }) => status?.lastError?.description },
  ];
  const entryColumns: Column<BackupEntry>[] = [
    {
      id: 'name',
      title: t('backup.entry'),
      width: '2fr',
      sort: ({ metadata }) => metadata.name,
      cell: ({ metadata }) => metadata.name,
    },
    {
      id: 'shoot',
      title: t('search.shoot'),
      cell: ({ metadata }) => <Owner shoot={shootOfEntry(metadata.name, shoots.items)} />,
    },
    {
      id: 'saved',
      title: t('backup.saved'),
      cell: ({ metadata }) => <Saved shoot={shootOfEntry(metadata.name, shoots.items)} />,
    },
    {
      id: 'drill',
      title: t('backup.drill'),
      sort: ({ metadata }) => shootOfEntry(metadata.name, shoots.items)?.drill ?? '',
      cell: ({ metadata }) => <When time={shootOfEntry(metadata.name, shoots.items)?.drill} />,
    },
    { id: 'bucket', title: t('backup.bucket'), cell: ({ spec }) => spec.bucketName },
    { id: 'seed', title: t('shoots.seed'), sort: ({ spec }) => spec.seedName ?? '', cell: ({ spec }) => spec.seedName },
    { id: 'state', title: t('shoots.status'), cell: ({ status }) => <State operation={status?.lastOperation} /> },
    {
      id: 'time',
      title: t('backup.since'),
      cell: ({ status }) => <When time={status?.lastOperation?.lastUpdateTime} />,
    },
    { id: 'error', title: t('events.message'), width: '2fr', cell: ({ status }) => status?.lastError?.description },
  ];
  return (
    <>
      <Section title={t('backup.buckets')}>
        <ListTable label={t('backup.buckets')} list={buckets} columns={bucketColumns} none={t('backup.none')} />
      </Section>
      <Section title={t('backup.entries')}>
        <ListTable label={t('backup.entries')} list={entries} columns={entryColumns} none={t('backup.none')} />
      </Section>
    </>
  );
}
