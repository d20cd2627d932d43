import { Checkbox, NativeSelect, Stack, Text, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { ApiError } from '../api/http';
import { create, list, patch, remove } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import type { KubernetesObject } from '../api/types';
import { t } from '../i18n';
import { useLiveList } from '../live';
import type { CloudProfile } from '../shoots/types';
import { Action, Offer } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { ListTable } from '../ui/ListTable';
import { Section } from '../ui/Page';
import type { Column } from '../ui/Table';
import { bindingOf, parseData, type CredentialsBinding } from './credentials';
import type { Quota } from './quotas';

/** Credentials are those with which shoots use an infrastructure. Their values never come back from the garden. */
export function Credentials({ namespace }: { namespace: string }) {
  const resource = resources.credentialsbindings;
  const rights = useRights('garden', {
    list: { verb: 'list', resource, namespace },
    create: { verb: 'create', resource, namespace },
    delete: { verb: 'delete', resource, namespace },
    secrets: { verb: 'create', resource: resources.secrets, namespace },
    change: { verb: 'patch', resource: resources.secrets, namespace },
  });
  const bindings = useLiveList<CredentialsBinding>(
    rights.list ? { cluster: 'garden', resource, namespace, view: 'object' } : null,
  );
  const columns: Column<CredentialsBinding>[] = [
    {
      id: 'name',
      title: t('credentials.name'),
      sort: ({ metadata }) => metadata.name,
      cell: ({ metadata }) => metadata.name,
    },
    { id: 'provider', title: t('credentials.provider'), cell: ({ provider }) => provider.type },
    {
      id: 'ref',
      title: t('credentials.ref'),
      width: '2fr',
      cell: ({ credentialsRef: { kind, namespace, name } }) => `${kind} ${namespace}/${name}`,
    },
    { id: 'quotas', title: t('quotas.title'), cell: ({ quotas = [] }) => quotas.map(({ name }) => name).join(', ') },
    {
      id: 'actions',
      title: t('ui.actions'),
      cell: (binding) => (
        <>
          {rights.change &&
            binding.credentialsRef.kind === 'Secret' &&
            binding.credentialsRef.namespace === namespace && (
              <Action
                label={t('credentials.change')}
                dialog={(close) => <ChangeCredential binding={binding} onClose={close} />}
              />
            )}{' '}
          {rights.create &&
            binding.credentialsRef.kind === 'Secret' &&
            binding.credentialsRef.namespace === namespace && (
              <Action
                label={t('credentials.again')}
                dialog={(close) => <BindAgain binding={binding} onClose={close} />}
              />
            )}{' '}
          {rights.delete && (
            <Action label={t('ui.delete')} dialog={(close) => <DeleteCredential binding={binding} onClose={close} />} />
          )}
        </>
      ),
    },
  ];
  return (
    <Section
      title={t('credentials.title')}
      actions={
        <Offer may={rights.create && rights.secrets} who="projectAdmin">
          <Action
            label={t('credentials.create')}
            dialog={(close) => <CreateCredential namespace={namespace} onClose={close} />}
          />
        </Offer>
      }
    >
      <Offer may={rights.list} who="projectAdmin">
        <ListTable label={t('credentials.title')} list={bindings} columns={columns} none={t('credentials.none')} />
      </Offer>
    </Section>
  );
}

function CreateCredential({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const [name, setName] = useState('');
  const [provider, setProvider] = useState('');
  const [text, setText] = useState('');
  const [quotas, setQuotas] = useState<string[]>([]);
  const { data: profiles } = useQuery({
    queryKey: ['cloudprofiles'],
    queryFn: () => list<CloudProfile>('garden', resources.cloudprofiles),
  });
  const providers = [...new Set((profiles?.items ?? []).map(({ spec }) => spec.type))];
  const data = parseData(text);
  const type = provider || (providers[0] ?? '');
  const submit = async () => {
    const secret = { metadata: { namespace, name }, type: 'Opaque', stringData: data };
    try {
      await create<KubernetesObject>('garden', resources.secrets, secret);
    } catch (error) {
      // The Secret is there already when only the binding failed before.
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') throw error;
    }
    await create('garden', resources.credentialsbindings, bindingOf(namespace, name, type, { quotas }));
  };
  return (
    <Dialog
      title={t('credentials.create')}
      submit={t('credentials.create')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name === '' || !data || type === ''}
    >
      <Stack>
        <TextInput
          label={t('credentials.name')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          required
          data-autofocus
        />
        <NativeSelect
          label={t('credentials.provider')}
          value={type}
          onChange={(event) => setProvider(event.currentTarget.value)}
          data={providers}
        />
        <DataField text={text} onChange={setText} />
        <ChooseQuotas namespace={namespace} chosen={quotas} onChange={setQuotas} />
      </Stack>
    </Dialog>
  );
}

/** useQuotas are the quotas of a project, for who may name them. */
function useQuotas(namespace: string): string[] {
  const list = useLiveList<Quota>({ cluster: 'garden', resource: resources.quotas, namespace, view: 'object' });
  return list.items.map(({ metadata }) => metadata.name).sort();
}

interface ChooseQuotasProps {
  namespace: string;
  chosen: string[];
  onChange: (chosen: string[]) => void;
}

/** ChooseQuotas is which quotas shoots count against that use the credentials. A binding keeps those it begins with. */
function ChooseQuotas({ namespace, chosen, onChange }: ChooseQuotasProps) {
  const quotas = useQuotas(namespace);
  return (
    <Checkbox.Group
      label={t('quotas.title')}
      description={t(quotas.length > 0 ? 'credentials.quotasHelp' : 'credentials.quotasNone')}
      value={chosen}
      onChange={onChange}
    >
      <Stack gap="xs" mt="xs">
        {quotas.map((name) => (
          <Checkbox key={name} value={name} label={name} />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}

/** BindAgain is how credentials that are there get other quotas: by another binding, which new shoots use. */
function BindAgain({ binding, onClose }: { binding: CredentialsBinding; onClose: () => void }) {
  const { namespace = '' } = binding.metadata;
  const [name, setName] = useState('');
  const [quotas, setQuotas] = useState<string[]>([]);
  const secret = binding.credentialsRef.name;
  const submit = () =>
    create(
      'garden',
      resources.credentialsbindings,
      bindingOf(namespace, name, binding.provider.type, { quotas, secret }),
    );
  return (
    <Dialog
      title={t('credentials.againOf', { name: secret ?? '' })}
      submit={t('credentials.again')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name === ''}
    >
      <Stack>
        <Text size="sm">{t('credentials.againHelp')}</Text>
        <TextInput
          label={t('credentials.name')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          required
          data-autofocus
        />
        <ChooseQuotas namespace={namespace} chosen={quotas} onChange={setQuotas} />
      </Stack>
    </Dialog>
  );
}

function DataField({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  return (
    <Textarea
      label={t('credentials.data')}
      description={t('credentials.dataHelp')}
      value={text}
      onChange={(event) => onChange(event.currentTarget.value)}
      error={parseData(text) ? undefined : t('credentials.dataForm')}
      rows={5}
      autoComplete="off"
      spellCheck={false}
    />
  );
}

function ChangeCredential({ binding, onClose }: { binding: CredentialsBinding; onClose: () => void }) {
  const [text, setText] = useState('');
  const { namespace, name = '' } = binding.credentialsRef;
  const submit = () => patch('garden', resources.secrets, { namespace, name }, { stringData: parseData(text) });
  return (
    <Dialog
      title={t('credentials.changeOf', { name })}
      submit={t('ui.save')}
      onSubmit={submit}
      onClose={onClose}
      disabled={!parseData(text) || text.trim() === ''}
    >
      <Text size="sm">{t('credentials.changeHelp')}</Text>
      <DataField text={text} onChange={setText} />
    </Dialog>
  );
}

function DeleteCredential({ binding: { metadata }, onClose }: { binding: CredentialsBinding; onClose: () => void }) {
  const { namespace, name } = metadata;
  const submit = () => remove('garden', resources.credentialsbindings, { namespace, name });
  return (
    <NamedDialog
      name={name}
      title={t('credentials.delete')}
      submit={t('ui.delete')}
      onSubmit={submit}
      onClose={onClose}
    >
      <Text>{t('credentials.deleteLoses')}</Text>
    </NamedDialog>
  );
}
