import { Anchor, Checkbox, Stack, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useNavigate, useSearchParams } from 'react-router';

import { create } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Page } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { phaseTone, projectNameFault, useProjects, type Project, type ProjectRow } from './projects';

const columns = (): Column<ProjectRow>[] => [
  {
    id: 'name',
    title: t('projects.name'),
    sort: ({ name }) => name,
    cell: ({ name }) => (
      <Anchor component={Link} to={`/projects/${name}/shoots`}>
        {name}
      </Anchor>
    ),
  },
  {
    id: 'phase',
    title: t('projects.phase'),
    sort: ({ phase }) => phase ?? '',
    cell: ({ phase, stale }) => (
      <>
        <ToneBadge tone={phaseTone(phase)}>{phase ?? '–'}</ToneBadge>
        {stale && <ToneBadge tone="warning">{t('projects.stale')}</ToneBadge>}
      </>
    ),
  },
  { id: 'owner', title: t('projects.owner'), sort: ({ owner }) => owner ?? '', cell: ({ owner }) => owner },
  {
    id: 'members',
    title: t('projects.members'),
    width: '0.6fr',
    sort: ({ members }) => members ?? 0,
    cell: ({ members }) => members,
  },
  { id: 'description', title: t('projects.description'), width: '2fr', cell: ({ description }) => description },
  {
    id: 'created',
    title: t('projects.created'),
    sort: ({ created }) => created ?? '',
    cell: ({ created }) => <When time={created} />,
  },
  {
    id: 'settings',
    title: t('projects.settings'),
    width: '0.8fr',
    cell: ({ name }) => (
      <Anchor component={Link} to={`/projects/${name}`}>
        {t('projects.open')}
      </Anchor>
    ),
  },
];

/** ProjectsPage lists the projects that one may open. */
export function ProjectsPage() {
  const { data: projects, error } = useProjects();
  const [search, setSearch] = useSearchParams();
  const rights = useRights('garden', { create: { verb: 'create', resource: resources.projects } });
  const filter = (search.get('q') ?? '').toLowerCase();
  const mine = search.get('stale') === '1';
  const shown = (projects ?? []).filter(
    ({ name, owner, description, stale }) =>
      `${name} ${owner ?? ''} ${description ?? ''}`.toLowerCase().includes(filter) && (!mine || stale),
  );
  const set = (name: string, value: string) =>
    setSearch(
      (before) => {
        if (value) before.set(name, value);
        else before.delete(name);
        return before;
      },
      { replace: true },
    );
  return (
    <Page
      title={t('projects.title')}
      actions={
        <Offer may={rights.create} who="operator">
          <Action label={t('projects.create')} variant="filled" dialog={(close) => <CreateProject onClose={close} />} />
        </Offer>
      }
    >
      <div className="filters">
        <TextInput
          aria-label={t('ui.filter')}
          placeholder={t('ui.filter')}
          value={search.get('q') ?? ''}
          onChange={(event) => set('q', event.currentTarget.value)}
        />
        <Checkbox
          label={t('projects.onlyStale')}
          checked={mine}
          onChange={(event) => set('stale', event.currentTarget.checked ? '1' : '')}
        />
      </div>
      <Failure error={error} />
      {!projects && !error && <Loading />}
      {projects?.length === 0 && <Empty>{t('projects.none')}</Empty>}
      {projects && shown.length < projects.length && (
        <p role="status">{t('ui.filtered', { shown: shown.length, total: projects.length })}</p>
      )}
      {shown.length > 0 && (
        <Table label={t('projects.title')} columns={columns()} rows={shown} keyOf={({ uid }) => uid} />
      )}
    </Page>
  );
}

function CreateProject({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [purpose, setPurpose] = useState('');
  const queries = useQueryClient();
  const navigate = useNavigate();
  const fault = name === '' ? undefined : projectNameFault(name);
  const submit = async () => {
    const project: Project = {
      metadata: { name },
      spec: { namespace: `garden-${name}`, description: description || undefined, purpose: purpose || undefined },
    };
    await create('garden', resources.projects, project);
    await queries.invalidateQueries({ queryKey: ['projects'] });
    await navigate(`/projects/${name}`);
  };
  return (
    <Dialog
      title={t('projects.create')}
      submit={t('projects.create')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name === '' || fault !== undefined}
    >
      <Stack>
        <TextInput
          label={t('projects.name')}
          description={t('projects.nameHelp')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={fault && t(fault === 'length' ? 'projects.nameLength' : 'projects.nameForm')}
          required
          data-autofocus
        />
        <Textarea
          label={t('projects.description')}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <TextInput
          label={t('projects.purpose')}
          value={purpose}
          onChange={(event) => setPurpose(event.currentTarget.value)}
        />
      </Stack>
    </Dialog>
  );
}
