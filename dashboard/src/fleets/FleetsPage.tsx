import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { useShootsOfProjects } from '../app/shootsOfProjects';
import { resources } from '../api/paths';
import { useKnownRights } from '../api/rights';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { useProjects } from '../projects/projects';
import { ShootStatus } from '../shoots/columns';
import type { ShootRow } from '../shoots/types';
import { ListTable } from '../ui/ListTable';
import { Unreadable } from '../ui/Missing';
import { Page } from '../ui/Page';
import type { Column } from '../ui/Table';

/** FleetsPage lists the fleets that one may see. */
export function FleetsPage() {
  const { data: projects, error } = useProjects();
  const rights = useKnownRights('garden', { list: { verb: 'list', resource: resources.shoots } });
  const all = useLiveList<ShootRow>(
    rights?.list ? { cluster: 'garden', resource: resources.shoots, filter: 'fleet:true' } : null,
  );
  const own = useShootsOfProjects(!rights || rights.list ? undefined : projects, 'fleet:true');
  const list = rights?.list ? all : own;
  const columns: Column<ShootRow>[] = [
    {
      id: 'name',
      title: t('shoots.name'),
      sort: ({ name }) => name,
      cell: ({ namespace, name }) => (
        <Anchor component={Link} to={`/fleets/${namespace}/${name}`}>
          {name}
        </Anchor>
      ),
    },
    {
      id: 'namespace',
      title: t('shoots.project'),
      sort: ({ namespace }) => namespace,
      cell: ({ namespace }) => namespace,
    },
    { id: 'status', title: t('shoots.status'), cell: (row) => <ShootStatus row={row} /> },
    { id: 'version', title: t('shoots.version'), sort: ({ version }) => version ?? '', cell: ({ version }) => version },
  ];
  return (
    <Page title={t('nav.fleets')}>
      {error && !projects && !rights?.list ? (
        <Unreadable error={error} way={{ title: t('projects.title'), to: '/projects' }} />
      ) : (
        <ListTable label={t('nav.fleets')} list={list} columns={columns} none={t('fleets.none')} />
      )}
    </Page>
  );
}
