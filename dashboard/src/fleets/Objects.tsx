import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Filters, useAddress } from '../ui/Filters';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { clusterOf, type Fleet } from './api';
import { bindingTone, clusterTone, objectName, objectQuery, rolloutTone } from './placement';
import type { BindingRow } from './types';

/** Objects are what policies have spread over the members. */
export function Objects({ fleet }: { fleet: Fleet }) {
  const [search] = useAddress();
  const filter = search.get('q') ?? '';
  const cluster = clusterOf(fleet);
  const inNamespaces = useLiveList<BindingRow>({ cluster, resource: resources.resourcebindings, filter });
  const ofAll = useLiveList<BindingRow>({ cluster, resource: resources.clusterresourcebindings, filter });
  const list = {
    items: [...inNamespaces.items, ...ofAll.items],
    complete: inNamespaces.complete && ofAll.complete,
    error: inNamespaces.error ?? ofAll.error,
  };
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
      <Filters />
      <ListTable label={t('fleet.objects')} list={list} columns={columns} none={t('object.none')} />
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
