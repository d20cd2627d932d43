import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { t } from '../i18n';
import type { LiveState } from '../live/list';
import { Filters, useAddress } from '../ui/Filters';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { installationTone } from './glance';
import { useInstallations } from './lists';
import type { ControllerInstallation } from './types';

/** Installations are the extensions in the seeds. */
export function Installations() {
  const list = useInstallations();
  const [search] = useAddress();
  const onlyBad = search.get('unhealthy') === '1';
  const words = (search.get('q') ?? '').toLowerCase();
  const shown = list.items.filter(
    (installation) =>
      (!onlyBad || installationTone(installation) !== 'good') &&
      `${installation.spec.registrationRef.name ?? ''} ${installation.spec.seedRef?.name ?? ''}`.includes(words),
  );
  return (
    <>
      <Filters only={{ name: 'unhealthy', label: t('shoots.onlyUnhealthy') }} />
      <InstallationsTable list={list} rows={shown} />
    </>
  );
}

interface InstallationsTableProps {
  list: LiveState<ControllerInstallation>;
  rows: ControllerInstallation[];
}

export function InstallationsTable({ list, rows }: InstallationsTableProps) {
  const columns: Column<ControllerInstallation>[] = [
    {
      id: 'extension',
      title: t('installation.extension'),
      sort: ({ spec }) => spec.registrationRef.name ?? '',
      cell: ({ spec }) => spec.registrationRef.name,
    },
    {
      id: 'seed',
      title: t('shoots.seed'),
      sort: ({ spec }) => spec.seedRef?.name ?? '',
      cell: ({ spec: { seedRef } }) =>
        seedRef?.name && (
          <Anchor component={Link} to={`/operations/seeds/${seedRef.name}`}>
            {seedRef.name}
          </Anchor>
        ),
    },
    {
      id: 'health',
      title: t('shoot.health'),
      cell: (installation) => {
        const tone = installationTone(installation);
        return <ToneBadge tone={tone}>{t(`tone.${tone}`)}</ToneBadge>;
      },
    },
    {
      id: 'message',
      title: t('events.message'),
      width: '3fr',
      cell: ({ status }) =>
        (status?.conditions ?? [])
          .filter(({ type, status }) => status !== 'True' && type !== 'Progressing')
          .map(({ type, message }) => `${type}: ${message ?? ''}`)
          .join('; '),
    },
  ];
  return (
    <ListTable
      label={t('garden.installations')}
      list={list}
      columns={columns}
      none={t('installation.none')}
      rows={rows}
    />
  );
}
