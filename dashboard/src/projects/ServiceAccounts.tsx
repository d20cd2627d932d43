import { Anchor, NativeSelect, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';

import { withQuery } from '../api/paths';
import { create, remove } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Action, Offer } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { ListTable } from '../ui/ListTable';
import { Section } from '../ui/Page';
import type { Column } from '../ui/Table';
import { When } from '../ui/When';
import { lifetimes } from './lifetimes';

interface Account {
  uid: string;
  name: string;
  namespace: string;
  created?: string;
}

/** ServiceAccounts are for automation: each has kubeconfigs of a limited life. */
export function ServiceAccounts({ namespace }: { namespace: string }) {
  const resource = resources.serviceaccounts;
  const rights = useRights('garden', {
    list: { verb: 'list', resource, namespace },
    create: { verb: 'create', resource, namespace },
    delete: { verb: 'delete', resource, namespace },
    token: { verb: 'create', resource, subresource: 'token', namespace },
  });
  const list = useLiveList<Account>(rights.list ? { cluster: 'garden', resource, namespace } : null);
  const columns: Column<Account>[] = [
    { id: 'name', title: t('accounts.name'), sort: ({ name }) => name, cell: ({ name }) => name },
    {
      id: 'created',
      title: t('projects.created'),
      sort: ({ created }) => created ?? '',
      cell: ({ created }) => <When time={created} />,
    },
    {
      id: 'actions',
      title: t('ui.actions'),
      cell: ({ name }) => (
        <>
          {rights.token && (
            <Action
              label={t('accounts.kubeconfig')}
              dialog={(close) => <Kubeconfig namespace={namespace} name={name} onClose={close} />}
            />
          )}{' '}
          {rights.delete && (
            <Action
              label={t('ui.delete')}
              dialog={(close) => (
                <NamedDialog
                  name={name}
                  title={t('accounts.delete')}
                  submit={t('ui.delete')}
                  onSubmit={() => remove('garden', resource, { namespace, name })}
                  onClose={close}
                >
                  <Text>{t('accounts.deleteLoses')}</Text>
                </NamedDialog>
              )}
            />
          )}
        </>
      ),
    },
  ];
  return (
    <Section
      title={t('accounts.title')}
      actions={
        <Offer may={rights.create} who="accountManager">
          <Action
            label={t('accounts.create')}
            dialog={(close) => <CreateAccount namespace={namespace} onClose={close} />}
          />
        </Offer>
      }
    >
      <Offer may={rights.list} who="accountManager">
        <ListTable label={t('accounts.title')} list={list} columns={columns} none={t('accounts.none')} />
      </Offer>
    </Section>
  );
}

function CreateAccount({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const [name, setName] = useState('');
  const submit = () => create('garden', resources.serviceaccounts, { metadata: { namespace, name } });
  return (
    <Dialog
      title={t('accounts.create')}
      submit={t('accounts.create')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name === ''}
    >
      <TextInput
        label={t('accounts.name')}
        description={t('accounts.createHelp')}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        required
        data-autofocus
      />
    </Dialog>
  );
}

function Kubeconfig({ namespace, name, onClose }: { namespace: string; name: string; onClose: () => void }) {
  const [seconds, setSeconds] = useState('3600');
  const href = withQuery(`/api/kubeconfig/serviceaccount/${namespace}/${name}`, { expirationSeconds: seconds });
  return (
    <Dialog
      title={t('accounts.kubeconfigOf', { name })}
      submit={t('ui.done')}
      onSubmit={() => Promise.resolve()}
      onClose={onClose}
    >
      <Stack>
        <Text>{t('accounts.kubeconfigHelp')}</Text>
        <NativeSelect
          label={t('kubeconfig.life')}
          value={seconds}
          onChange={(event) => setSeconds(event.currentTarget.value)}
          data={lifetimes()}
        />
        <Anchor href={href} download>
          {t('kubeconfig.download')}
        </Anchor>
      </Stack>
    </Dialog>
  );
}
