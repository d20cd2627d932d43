import type { LastOperation } from '../api/types';
import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Empty, ListState } from '../ui/Loading';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge, type Tone } from '../ui/Tone';
import { When } from '../ui/When';
import type { BackupBucket, BackupEntry } from './types';

const tones: Record<string, Tone> = { Succeeded: 'good', Error: 'bad', Failed: 'bad' };

function State({ operation }: { operation: LastOperation | undefined }) {
  if (!operation) return <ToneBadge tone="busy">–</ToneBadge>;
  return <ToneBadge tone={tones[operation.state] ?? 'busy'}>{`${operation.type} ${operation.state}`}</ToneBadge>;
}

/** Backups are the buckets of the seeds, and what the control planes store there. */
export function Backups() {
  const buckets = useLiveList<BackupBucket>({ cluster: 'garden', resource: resources.backupbuckets, view: 'object' });
  const entries = useLiveList<BackupEntry>({ cluster: 'garden', resource: resources.backupentries, view: 'object' });
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
        <ListState list={buckets} />
        {buckets.complete && buckets.items.length === 0 && <Empty>{t('backup.none')}</Empty>}
        {buckets.items.length > 0 && (
          <Table
            label={t('backup.buckets')}
            columns={bucketColumns}
            rows={buckets.items}
            keyOf={({ metadata }) => metadata.uid ?? metadata.name}
          />
        )}
      </Section>
      <Section title={t('backup.entries')}>
        <ListState list={entries} />
        {entries.complete && entries.items.length === 0 && <Empty>{t('backup.none')}</Empty>}
        {entries.items.length > 0 && (
          <Table
            label={t('backup.entries')}
            columns={entryColumns}
            rows={entries.items}
            keyOf={({ metadata }) => metadata.uid ?? metadata.name}
          />
        )}
      </Section>
    </>
  );
}
