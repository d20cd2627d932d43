import { Anchor, Progress } from '@mantine/core';
import { Link } from 'react-router';

import { t } from '../i18n';
import type { ShootRow } from '../shoots/types';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { roomOf, toneOf } from './glance';
import { useAllShoots, useSeeds } from './lists';
import type { Seed } from './types';

/** Room is how full a seed is. */
export function Room({ seed, shoots }: { seed: Seed; shoots: ShootRow[] }) {
  const { used, allocatable } = roomOf(seed, shoots);
  if (!allocatable) return String(used);
  return (
    <>
      {used} / {allocatable}
      <Progress
        value={Math.min(100, (100 * used) / allocatable)}
        size="sm"
        color={used > 0.9 * allocatable ? 'red' : undefined}
        aria-label={t('seed.room')}
      />
    </>
  );
}

export function Seeds() {
  const seeds = useSeeds();
  const shoots = useAllShoots();
  const columns: Column<Seed>[] = [
    {
      id: 'name',
      title: t('shoots.seed'),
      sort: ({ metadata }) => metadata.name,
      cell: ({ metadata: { name } }) => (
        <Anchor component={Link} to={`/operations/seeds/${name}`}>
          {name}
        </Anchor>
      ),
    },
    {
      id: 'health',
      title: t('shoot.health'),
      cell: ({ status }) => {
        const tone = toneOf(status?.conditions);
        return <ToneBadge tone={tone}>{t(`tone.${tone}`)}</ToneBadge>;
      },
    },
    {
      id: 'room',
      title: t('seed.room'),
      sort: (seed) => roomOf(seed, shoots.items).used,
      cell: (seed) => <Room seed={seed} shoots={shoots.items} />,
    },
    {
      id: 'provider',
      title: t('credentials.provider'),
      cell: ({ spec: { provider } }) => `${provider.type} ${provider.region}`,
    },
    { id: 'zones', title: t('pools.zones'), cell: ({ spec }) => (spec.provider.zones ?? []).join(', ') },
    {
      id: 'version',
      title: t('shoots.version'),
      sort: ({ status }) => status?.kubernetesVersion ?? '',
      cell: ({ status }) => status?.kubernetesVersion,
    },
    {
      id: 'gardenlet',
      title: t('shoot.gardenlet'),
      sort: ({ status }) => status?.gardener?.version ?? '',
      cell: ({ status }) => status?.gardener?.version,
    },
    {
      id: 'visible',
      title: t('seed.visible'),
      cell: ({ spec }) => t(spec.settings?.scheduling?.visible === false ? 'ui.no' : 'ui.yes'),
    },
  ];
  return (
    <>
      <ListTable label={t('garden.seeds')} list={seeds} columns={columns} none={t('seed.none')} />
    </>
  );
}
