import { Anchor, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useState } from 'react';
import { Link } from 'react-router';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Empty, ListState } from '../ui/Loading';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { clusterOf, type Fleet } from './api';
import { bindingTone, clusterTone, objectName, objectQuery, rolloutTone } from './placement';
import type { BindingRow } from './types';

/** Objects are what policies have spread over the members. */
export function Objects({ fleet }: { fleet: Fleet }) {
  const [typed, setTyped] = useState('');
  const [filter] = useDebouncedValue(typed, 200);
  const cluster = clusterOf(fleet);
  const inNamespaces = useLiveList<BindingRow>({ cluster, resource: resources.resourcebindings, filter });
  const ofAll = useLiveList<BindingRow>({ cluster, resource: resources.clusterresourcebindings, filter });
  const rows = [...inNamespaces.items, ...ofAll.items];
  const columns: Column<BindingRow>[] = [
    {
      id: 'object',
      title: t('object.object'),
      width: '2fr',
      sort: ({ object, name }) => (object ? objectName(object) : name),
      cell: ({ object, name }) =>
        object ? (
          <Anchor component={Link} to={`/fleets/${fleet.namespace}/${fleet.name}/object?${objectQuery(object)}`}>
            {objectName(object)}
          </Anchor>
        ) : (
          name
        ),
    },
    { id: 'policy', title: t('object.policy'), sort: ({ policy }) => policy ?? '', cell: ({ policy }) => policy },
    {
      id: 'replicas',
      title: t('object.replicas'),
      width: '0.6fr',
      sort: ({ replicas }) => replicas ?? 0,
      cell: ({ replicas }) => replicas,
    },
    {
      id: 'state',
      title: t('shoots.status'),
      cell: (row) => {
        const tone = bindingTone(row);
        return (
          <ToneBadge tone={tone} title={row.message}>
            {t(`binding.${tone}`)}
          </ToneBadge>
        );
      },
    },
    { id: 'clusters', title: t('object.clusters'), width: '2.5fr', cell: (row) => <Clusters row={row} /> },
    {
      id: 'rollout',
      title: t('fleet.rollouts'),
      cell: ({ rollout }) =>
        rollout?.phase && (
          <ToneBadge
            tone={rolloutTone(rollout.phase)}
          >{`${rollout.phase} ${rollout.wave ?? 0}/${rollout.waves ?? 0}`}</ToneBadge>
        ),
    },
  ];
  return (
    <>
      <div className="filters">
        <TextInput
          aria-label={t('ui.filter')}
          placeholder={t('ui.filter')}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      </div>
      <ListState list={inNamespaces} />
      {inNamespaces.complete && rows.length === 0 && <Empty>{t('object.none')}</Empty>}
      {rows.length > 0 && <Table label={t('fleet.objects')} columns={columns} rows={rows} keyOf={({ uid }) => uid} />}
    </>
  );
}

const most = 6;

function Clusters({ row: { clusters = [] } }: { row: BindingRow }) {
  return (
    <>
      {clusters.slice(0, most).map((cluster) => (
        <ToneBadge key={cluster.name} tone={clusterTone(cluster)} title={cluster.health}>
          {cluster.name}
          {cluster.replicas !== undefined && ` × ${cluster.replicas}`}
        </ToneBadge>
      ))}
      {clusters.length > most && ` ${t('object.more', { count: clusters.length - most })}`}
    </>
  );
}
