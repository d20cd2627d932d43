import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { t } from '../i18n';
import { Conditions } from '../ui/Conditions';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { useManagedSeeds } from './lists';
import type { ManagedSeed } from './types';

/** ManagedSeeds are shoots that are seeds. */
export function ManagedSeeds() {
  const list = useManagedSeeds();
  const columns: Column<ManagedSeed>[] = [
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
      id: 'shoot',
      title: t('search.shoot'),
      cell: ({ metadata: { namespace = '' }, spec: { shoot } }) =>
        shoot && (
          <Anchor component={Link} to={`/shoots/${namespace}/${shoot.name}`}>
            {shoot.name}
          </Anchor>
        ),
    },
    {
      id: 'conditions',
      title: t('shoot.health'),
      width: '3fr',
      cell: ({ status }) => <Conditions conditions={status?.conditions ?? []} />,
    },
  ];
  return (
    <>
      <ListTable label={t('garden.managedSeeds')} list={list} columns={columns} none={t('seed.noManaged')} />
    </>
  );
}
