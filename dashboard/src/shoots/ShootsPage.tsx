import { Button } from '@mantine/core';
import { Link, useParams } from 'react-router';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { InProject } from '../projects/InProject';
import { useProjects } from '../projects/projects';
import { Offer } from '../ui/Action';
import { Filters, useAddress } from '../ui/Filters';
import { ListTable } from '../ui/ListTable';
import { Page } from '../ui/Page';
import type { Sorting } from '../ui/Table';
import { shootColumns } from './columns';
import { useProfiles } from './profiles';
import { useShootRights } from './rights';
import type { ShootRow } from './types';

/** Filter is what the server is asked for, of what stands in the address. */
const filterOf = (words: string, unhealthy: boolean) => (unhealthy ? `${words} status:unhealthy` : words).trim();

/** ShootsPage lists the shoots of a project, or of all for who may. The filter works on the server. */
export function ShootsPage() {
  const { project } = useParams();
  if (project === undefined) {
    return (
      <Page title={t('shoots.title')}>
        <Shoots />
      </Page>
    );
  }
  return (
    <Page
      title={t('shoots.ofProject', { project })}
      path={[
        { title: t('projects.title'), to: '/projects' },
        { title: project, to: `/projects/${project}` },
      ]}
      actions={<CreateShoot project={project} />}
    >
      <InProject name={project}>{(namespace) => <Shoots namespace={namespace} />}</InProject>
    </Page>
  );
}

function CreateShoot({ project }: { project: string }) {
  const { data: projects } = useProjects();
  const namespace = projects?.find(({ name }) => name === project)?.projectNamespace;
  const rights = useShootRights(namespace ?? '');
  if (!namespace) return null;
  return (
    <Offer may={rights.create} who="projectAdmin">
      <Button component={Link} to={`/projects/${project}/create`} size="xs">
        {t('shoots.create')}
      </Button>
    </Offer>
  );
}

function Shoots({ namespace }: { namespace?: string }) {
  const [search, set] = useAddress();
  const filter = filterOf(search.get('q') ?? '', search.get('unhealthy') === '1');
  const list = useLiveList<ShootRow>({ cluster: 'garden', resource: resources.shoots, namespace, filter });
  const { data: profiles } = useProfiles();
  return (
    <>
      <Filters help={t('shoots.filterHelp')} only={{ name: 'unhealthy', label: t('shoots.onlyUnhealthy') }} />
      <p role="status" aria-live="polite" className="dimmed">
        {list.complete && t(filter ? 'shoots.countFiltered' : 'shoots.count', { count: list.items.length })}
      </p>
      <ListTable
        label={t('shoots.title')}
        list={list}
        columns={shootColumns(profiles, namespace === undefined)}
        none={t(filter ? 'shoots.noneFiltered' : 'shoots.none')}
        sorting={sortingIn(search.get('sort'))}
        onSort={(sorting) => set('sort', sorting ? `${sorting.descending ? '-' : ''}${sorting.column}` : '')}
      />
    </>
  );
}

function sortingIn(text: string | null): Sorting {
  if (!text) return { column: 'name', descending: false };
  return { column: text.replace(/^-/, ''), descending: text.startsWith('-') };
}
