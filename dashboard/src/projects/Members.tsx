import { Checkbox, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';

import { amend } from '../api/objects';
import { resources } from '../api/paths';
import type { Subject } from '../api/types';
import { known, t } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { roles, rolesOf, subjectName, subjectOf, withMember, withoutMember } from './members';
import type { Member, Project } from './projects';

interface MembersProps {
  project: Project;
  mayManage: boolean;
  mayUpdate: boolean;
}

/** Members are who has a role in the project. Admins may change service accounts only; access managers everybody. */
export function Members({ project, mayManage, mayUpdate }: MembersProps) {
  const mayChange = ({ kind, namespace }: Subject) =>
    mayManage || (mayUpdate && kind === 'ServiceAccount' && namespace === project.spec.namespace);
  const kinds = mayManage ? ['User', 'Group', 'ServiceAccount'] : ['ServiceAccount'];
  const save = saveMembers(project);
  const columns: Column<Member>[] = [
    { id: 'name', title: t('members.name'), width: '2fr', sort: subjectName, cell: subjectName },
    {
      id: 'kind',
      title: t('members.kind'),
      sort: ({ kind }) => kind,
      cell: ({ kind }) => known('members.kind', kind) ?? kind,
    },
    {
      id: 'roles',
      title: t('members.roles'),
      width: '2fr',
      cell: (member) => rolesOf(member).map(roleName).join(', '),
    },
    {
      id: 'actions',
      title: t('ui.actions'),
      cell: (member) =>
        mayChange(member) && (
          <>
            <Action
              label={t('members.change')}
              dialog={(close) => <ChangeMember member={member} save={save} onClose={close} />}
            />{' '}
            <Action
              label={t('members.remove')}
              dialog={(close) => <RemoveMember member={member} save={save} onClose={close} />}
            />
          </>
        ),
    },
  ];
  return (
    <Section
      title={t('members.title')}
      actions={
        <Offer may={mayManage || mayUpdate} who="accessManager">
          <Action
            label={t('members.add')}
            dialog={(close) => (
              <AddMember kinds={kinds} namespace={project.spec.namespace ?? ''} save={save} onClose={close} />
            )}
          />
        </Offer>
      }
    >
      <Table
        label={t('members.title')}
        columns={columns}
        rows={project.spec.members ?? []}
        keyOf={(member) => `${member.kind} ${subjectName(member)}`}
      />
    </Section>
  );
}

const roleName = (role: string) => known('role', role) ?? role;

type Save = (change: (members: Member[]) => Member[]) => Promise<void>;

function saveMembers({ metadata: { name } }: Project): Save {
  return async (change) => {
    await amend<Project>('garden', resources.projects, { name }, ({ spec }) => ({
      spec: { members: change(spec.members ?? []) },
    }));
  };
}

interface ChangeProps {
  save: Save;
  onClose: () => void;
}

function AddMember({ namespace, save, onClose, kinds }: ChangeProps & { kinds: string[]; namespace: string }) {
  const [kind, setKind] = useState(kinds[0] ?? 'User');
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState<string[]>(['viewer']);
  const submit = () => save((members) => withMember(members, subjectOf(kind, name, namespace), chosen));
  return (
    <Dialog
      title={t('members.add')}
      submit={t('members.add')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name.trim() === '' || chosen.length === 0}
    >
      <Stack>
        <NativeSelect
          label={t('members.kind')}
          value={kind}
          onChange={(event) => setKind(event.currentTarget.value)}
          data={kinds.map((value) => ({ value, label: known('members.kind', value) ?? value }))}
        />
        <TextInput
          label={t('members.name')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          required
          data-autofocus
        />
        <Roles chosen={chosen} onChange={setChosen} />
      </Stack>
    </Dialog>
  );
}

function ChangeMember({ save, onClose, member }: ChangeProps & { member: Member }) {
  const [chosen, setChosen] = useState(rolesOf(member));
  const { kind, name, namespace, apiGroup } = member;
  const submit = () => save((members) => withMember(members, { kind, name, namespace, apiGroup }, chosen));
  return (
    <Dialog
      title={t('members.changeOf', { name: subjectName(member) })}
      submit={t('ui.save')}
      onSubmit={submit}
      onClose={onClose}
      disabled={chosen.length === 0}
    >
      <Roles chosen={chosen} onChange={setChosen} />
    </Dialog>
  );
}

function RemoveMember({ save, onClose, member }: ChangeProps & { member: Member }) {
  const submit = () => save((members) => withoutMember(members, member));
  return (
    <Dialog title={t('members.remove')} submit={t('members.remove')} onSubmit={submit} onClose={onClose} danger>
      <Text>{t('members.removeOf', { name: subjectName(member) })}</Text>
    </Dialog>
  );
}

function Roles({ chosen, onChange }: { chosen: string[]; onChange: (roles: string[]) => void }) {
  const offered = [...new Set([...roles, ...chosen.filter((role) => role !== 'owner')])];
  return (
    <Checkbox.Group label={t('members.roles')} value={chosen} onChange={onChange}>
      <Stack gap="xs" mt="xs">
        {offered.map((role) => (
          <Checkbox key={role} value={role} label={roleName(role)} description={known('roleHelp', role)} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
