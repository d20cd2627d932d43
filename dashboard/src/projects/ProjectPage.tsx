import { Anchor, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useState } from 'react';
import { Link, useNavigate, useParams } from 'react-router';

import { patch, remove } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { ObjectState } from '../ui/Missing';
import { Facts, Page, Section } from '../ui/Page';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { Credentials } from './Credentials';
import { Members } from './Members';
import { subjectName } from './members';
import { phaseTone, useProject, type Project } from './projects';
import { Quotas } from './Quotas';
import { ServiceAccounts } from './ServiceAccounts';

/** ProjectPage is a project with all that belongs to it but its shoots. */
export function ProjectPage() {
  const { project: name = '' } = useParams();
  const state = useProject(name);
  const { object: project } = state;
  return (
    <Page
      title={t('project.title', { name })}
      path={[{ title: t('projects.title'), to: '/projects' }]}
      actions={
        <Anchor component={Link} to={`/projects/${name}/shoots`}>
          {t('project.shoots')}
        </Anchor>
      }
    >
      <ObjectState
        of={state}
        gone={t('project.unknown', { name })}
        way={{ title: t('projects.title'), to: '/projects' }}
      />
      {project && <Sections project={project} />}
    </Page>
  );
}

function Sections({ project }: { project: Project }) {
  const { name } = project.metadata;
  const namespace = project.spec.namespace ?? '';
  const rights = useRights('garden', {
    update: { verb: 'patch', resource: resources.projects, name },
    members: { verb: 'manage-members', resource: resources.projects, name },
    delete: { verb: 'delete', resource: resources.projects, name },
  });
  return (
    <>
      <Section
        title={t('project.facts')}
        actions={
          <Offer may={rights.update} who="projectAdmin">
            <Action label={t('project.edit')} dialog={(close) => <EditProject project={project} onClose={close} />} />
          </Offer>
        }
      >
        <ProjectFacts project={project} />
      </Section>
      <Members project={project} mayManage={rights.members} mayUpdate={rights.update} />
      {namespace && (
        <>
          <ServiceAccounts namespace={namespace} />
          <Credentials namespace={namespace} />
          <Quotas namespace={namespace} />
        </>
      )}
      <Section title={t('project.delete')}>
        <Offer may={rights.delete} who="projectAdmin">
          <Action
            label={t('project.delete')}
            color="red"
            dialog={(close) => <DeleteProject name={name} onClose={close} />}
          />
        </Offer>
      </Section>
    </>
  );
}

function ProjectFacts({ project: { metadata, spec, status } }: { project: Project }) {
  return (
    <Facts
      facts={[
        [
          t('projects.phase'),
          <ToneBadge key="phase" tone={phaseTone(status?.phase)}>
            {status?.phase ?? '–'}
          </ToneBadge>,
        ],
        [t('projects.description'), spec.description],
        [t('projects.purpose'), spec.purpose],
        [t('projects.owner'), spec.owner && subjectName(spec.owner)],
        [t('project.createdBy'), spec.createdBy && subjectName(spec.createdBy)],
        [t('project.namespace'), spec.namespace && <code>{spec.namespace}</code>],
        [t('projects.created'), <When key="created" time={metadata.creationTimestamp} />],
        [t('project.lastActivity'), status?.lastActivityTimestamp && <When time={status.lastActivityTimestamp} />],
        [t('project.staleSince'), status?.staleSinceTimestamp && <When time={status.staleSinceTimestamp} />],
        [t('project.staleDelete'), status?.staleAutoDeleteTimestamp && <When time={status.staleAutoDeleteTimestamp} />],
      ]}
    />
  );
}

function EditProject({ project, onClose }: { project: Project; onClose: () => void }) {
  const { name } = project.metadata;
  const [description, setDescription] = useState(project.spec.description ?? '');
  const [purpose, setPurpose] = useState(project.spec.purpose ?? '');
  const submit = () =>
    patch(
      'garden',
      resources.projects,
      { name },
      { spec: { description: description || null, purpose: purpose || null } },
    );
  return (
    <Dialog title={t('project.edit')} submit={t('ui.save')} onSubmit={submit} onClose={onClose}>
      <Stack>
        <Textarea
          label={t('projects.description')}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
          data-autofocus
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

function DeleteProject({ name, onClose }: { name: string; onClose: () => void }) {
  const navigate = useNavigate();
  const submit = async () => {
    await patch(
      'garden',
      resources.projects,
      { name },
      { metadata: { annotations: { 'confirmation.gardener.cloud/deletion': 'true' } } },
    );
    await remove('garden', resources.projects, { name });
    await navigate('/projects');
  };
  return (
    <NamedDialog
      name={name}
      title={t('project.delete')}
      submit={t('project.delete')}
      onSubmit={submit}
      onClose={onClose}
    >
      <Text>{t('project.deleteLoses')}</Text>
    </NamedDialog>
  );
}
