import { Button, Checkbox, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useEffect, useState } from 'react';
import { Link, useParams, useSearchParams } from 'react-router';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { useProjects } from '../projects/projects';
import { Offer } from '../ui/Action';
import { Empty, ListState } from '../ui/Loading';
import { Page } from '../ui/Page';
import { Table, type Sorting } from '../ui/Table';
import { shootColumns } from './columns';
import { useProfiles } from './profiles';
import { useShootRights } from './rights';
import type { ShootRow } from './types';

/** Filter is what the server is asked for, of what stands in the address. */
const filterOf = (words: string, unhealthy: boolean) => (unhealthy ? `${words} status:unhealthy` : words).trim();

/** ShootsPage lists the shoots of a project, or of all for who may. The filter works on the server. */
export function ShootsPage() {
  const { project } = useParams();
  const { data: projects } = useProjects();
  const namespace = projects?.find(({ name }) => name === project)?.projectNamespace;
  const [search, set] = useAddress();
  const words = useWords(search.get('q') ?? '', (value) => set('q', value));
  const unhealthy = search.get('unhealthy') === '1';
  const rights = useShootRights(namespace ?? '');
  const filter = filterOf(search.get('q') ?? '', unhealthy);
  const known = project === undefined || namespace !== undefined;
  const list = useLiveList<ShootRow>(
    known ? { cluster: 'garden', resource: resources.shoots, namespace, filter } : null,
  );
  const { data: profiles } = useProfiles();
  return (
    <Page
      title={project ? t('shoots.ofProject', { project }) : t('shoots.title')}
      path={
        project
          ? [
              { title: t('projects.title'), to: '/projects' },
              { title: project, to: `/projects/${project}` },
            ]
          : []
      }
      actions={
        project && (
          <Offer may={rights.create} who="projectAdmin">
            <Button component={Link} to={`/projects/${project}/create`} size="xs">
              {t('shoots.create')}
            </Button>
          </Offer>
        )
      }
    >
      <div className="filters">
        <TextInput
          className="filter-words"
          aria-label={t('ui.filter')}
          placeholder={t('ui.filter')}
          description={t('shoots.filterHelp')}
          value={words.typed}
          onChange={(event) => words.type(event.currentTarget.value)}
        />
        <Checkbox
          label={t('shoots.onlyUnhealthy')}
          checked={unhealthy}
          onChange={(event) => set('unhealthy', event.currentTarget.checked ? '1' : '')}
        />
      </div>
      <ListState list={list} />
      <p role="status" aria-live="polite" className="dimmed">
        {list.complete && t(filter ? 'shoots.countFiltered' : 'shoots.count', { count: list.items.length })}
      </p>
      {list.complete && list.items.length === 0 && <Empty>{t(filter ? 'shoots.noneFiltered' : 'shoots.none')}</Empty>}
      {list.items.length > 0 && (
        <Table
          label={t('shoots.title')}
          columns={shootColumns(profiles, project === undefined)}
          rows={list.items}
          keyOf={({ uid }) => uid}
          sorting={sortingIn(search.get('sort'))}
          onSort={(sorting) => set('sort', sorting ? `${sorting.descending ? '-' : ''}${sorting.column}` : '')}
        />
      )}
    </Page>
  );
}

function sortingIn(text: string | null): Sorting {
  if (!text) return { column: 'name', descending: false };
  return { column: text.replace(/^-/, ''), descending: text.startsWith('-') };
}

function useAddress(): [URLSearchParams, (name: string, value: string) => void] {
  const [search, setSearch] = useSearchParams();
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  return [search, set];
}

/** useWords asks the server when somebody pauses to type. An address that changes otherwise changes what is typed. */
function useWords(present: string, change: (value: string) => void) {
  const [typed, setTyped] = useState(present);
  const [seen, setSeen] = useState(present);
  const [settled] = useDebouncedValue(typed, 200);
  if (seen !== present) {
    setSeen(present);
    setTyped(present);
  }
  useEffect(() => {
    if (settled !== present && settled === typed) change(settled);
    // Only what was typed leads to a change.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [settled]);
  return { typed, type: setTyped };
}
