import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { useShootsOfProjects } from '../app/shootsOfProjects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { useProjects } from '../projects/projects';
import { ShootStatus } from '../shoots/columns';
import { isFleet, rowOf } from '../shoots/status';
import type { ShootRow } from '../shoots/types';
import { Empty, ListState } from '../ui/Loading';
import { Page } from '../ui/Page';
import { Table, type Column } from '../ui/Table';

/** FleetsPage lists the fleets that one may see. */
export function FleetsPage() {
  const { data: projects = [] } = useProjects();
  const rights = useRights('garden', { list: { verb: 'list', resource: resources.shoots } });
  const all = useLiveList<ShootRow>(
    rights.list ? { cluster: 'garden', resource: resources.shoots, filter: 'fleet:true' } : null,
  );
  const own = useShootsOfProjects(rights.list ? [] : projects);
  const rows = rights.list ? all.items : own.filter(isFleet).map(rowOf);
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
      {rights.list && <ListState list={all} />}
      {rows.length === 0 && <Empty>{t('fleets.none')}</Empty>}
      {rows.length > 0 && <Table label={t('nav.fleets')} columns={columns} rows={rows} keyOf={({ uid }) => uid} />}
    </Page>
  );
}
