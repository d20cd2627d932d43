import { Progress } from '@mantine/core';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { holds } from '../ui/Conditions';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { clusterOf, type Fleet } from './api';
import { shareOf } from './quantity';
import type { MemberRow, Room } from './types';

function RoomBar({ room, what }: { room: Room | undefined; what: string }) {
  const share = shareOf(room);
  if (share === undefined) return '–';
  return (
    <>
      {room?.allocated ?? 0} / {room?.allocatable}
      <Progress value={share} size="sm" color={share > 90 ? 'red' : undefined} aria-label={`${what} ${share}%`} />
    </>
  );
}

/** Members are the clusters of a fleet, with the room that they have. */
export function Members({ fleet }: { fleet: Fleet }) {
  const list = useLiveList<MemberRow>({ cluster: clusterOf(fleet), resource: resources.clusters });
  const columns: Column<MemberRow>[] = [
    { id: 'name', title: t('member.name'), width: '1.4fr', sort: ({ name }) => name, cell: ({ name }) => name },
    {
      id: 'ready',
      title: t('member.ready'),
      sort: ({ ready }) => Number(holds(ready)),
      cell: ({ ready }) => (
        <ToneBadge tone={holds(ready) ? 'good' : 'bad'}>
          {t(holds(ready) ? 'nodes.isReady' : 'nodes.isNotReady')}
        </ToneBadge>
      ),
    },
    { id: 'version', title: t('shoots.version'), sort: ({ version }) => version ?? '', cell: ({ version }) => version },
    { id: 'mode', title: t('member.mode'), sort: ({ mode }) => mode ?? '', cell: ({ mode }) => mode },
    {
      id: 'region',
      title: t('create.region'),
      sort: ({ region }) => region ?? '',
      cell: ({ region, zones }) => [region, ...(zones ?? [])].filter(Boolean).join(' '),
    },
    {
      id: 'nodes',
      title: t('shoots.nodes'),
      sort: ({ nodes }) => nodes?.total ?? 0,
      cell: ({ nodes }) => `${nodes?.ready ?? 0}/${nodes?.total ?? 0}`,
    },
    {
      id: 'cpu',
      title: t('member.cpu'),
      sort: ({ cpu }) => shareOf(cpu) ?? -1,
      cell: ({ cpu }) => <RoomBar room={cpu} what={t('member.cpu')} />,
    },
    {
      id: 'memory',
      title: t('member.memory'),
      width: '1.3fr',
      sort: ({ memory }) => shareOf(memory) ?? -1,
      cell: ({ memory }) => <RoomBar room={memory} what={t('member.memory')} />,
    },
    {
      id: 'pods',
      title: t('member.pods'),
      sort: ({ pods }) => shareOf(pods) ?? -1,
      cell: ({ pods }) => <RoomBar room={pods} what={t('member.pods')} />,
    },
    { id: 'taints', title: t('member.taints'), cell: ({ taints = [] }) => taints.join(', ') },
  ];
  return (
    <>
      <ListTable label={t('fleet.members')} list={list} columns={columns} none={t('member.none')} />
    </>
  );
}
