import { Anchor, Stack, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link, useNavigate } from 'react-router';

import { create } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Failure } from '../ui/Failure';
import { Filters, useAddress } from '../ui/Filters';
import { ListTable } from '../ui/ListTable';
import { Page } from '../ui/Page';
import type { Column } from '../ui/Table';
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
  const [search] = useAddress();
  const rights = useRights('garden', { create: { verb: 'create', resource: resources.projects } });
  const filter = (search.get('q') ?? '').toLowerCase();
  const onlyStale = search.get('stale') === '1';
  const shown = (projects ?? []).filter(
    ({ name, owner, description, stale }) =>
      `${name} ${owner ?? ''} ${description ?? ''}`.toLowerCase().includes(filter) && (!onlyStale || stale),
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
      <Filters only={{ name: 'stale', label: t('projects.onlyStale') }} />
      <Failure error={error} />
      {projects && shown.length < projects.length && (
        <p role="status">{t('ui.filtered', { shown: shown.length, total: projects.length })}</p>
      )}
      {(projects || !error) && (
        <ListTable
          label={t('projects.title')}
          list={{ items: projects ?? [], complete: projects !== undefined }}
          columns={columns()}
          none={projects?.length === 0 ? t('projects.none') : undefined}
          rows={shown}
        />
      )}
    </Page>
  );
}

function CreateProject({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState('');
  const [description, setDescription] = useState('');
  const [purpose, setPurpose] = useState('');
  const navigate = useNavigate();
  const fault = name === '' ? undefined : projectNameFault(name);
  const submit = async () => {
    const project: Project = {
      metadata: { name },
      spec: { namespace: `garden-${name}`, description: description || undefined, purpose: purpose || undefined },
    };
    await create('garden', resources.projects, project);
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
