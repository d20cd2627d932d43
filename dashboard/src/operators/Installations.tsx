import { Anchor, Checkbox } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';

import { t } from '../i18n';
import { Empty, ListState } from '../ui/Loading';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { installationTone } from './glance';
import { useInstallations } from './lists';
import type { ControllerInstallation } from './types';

/** Installations are the extensions in the seeds. */
export function Installations() {
  const list = useInstallations();
  const [onlyBad, setOnlyBad] = useState(false);
  const shown = list.items.filter((installation) => !onlyBad || installationTone(installation) !== 'good');
  return (
    <>
      <div className="filters">
        <Checkbox
          label={t('shoots.onlyUnhealthy')}
          checked={onlyBad}
          onChange={(event) => setOnlyBad(event.currentTarget.checked)}
        />
      </div>
      <ListState list={list} />
      <InstallationsTable installations={shown} />
    </>
  );
}

export function InstallationsTable({ installations }: { installations: ControllerInstallation[] }) {
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
  if (installations.length === 0) return <Empty>{t('installation.none')}</Empty>;
  return (
    <Table
      label={t('garden.installations')}
      columns={columns}
      rows={installations}
      keyOf={({ metadata }) => metadata.uid ?? metadata.name}
    />
  );
}
