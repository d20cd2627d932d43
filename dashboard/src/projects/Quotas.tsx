import { NumberInput, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';

import { create, remove } from '../api/objects';
import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { inUnitOf, parseQuantity } from '../fleets/quantity';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { useProfiles } from '../shoots/profiles';
import type { Shoot } from '../shoots/types';
import { Action, Offer } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { ListTable } from '../ui/ListTable';
import { Section } from '../ui/Page';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import type { CredentialsBinding } from './credentials';
import { metrics, usedOf, type Quota } from './quotas';

/** Quotas limit what the shoots of a project, or of a credential, may have together. */
export function Quotas({ namespace }: { namespace: string }) {
  const resource = resources.quotas;
  const rights = useRights('garden', {
    list: { verb: 'list', resource, namespace },
    create: { verb: 'create', resource, namespace },
    delete: { verb: 'delete', resource, namespace },
  });
  const list = useLiveList<Quota>(rights.list ? { cluster: 'garden', resource, namespace, view: 'object' } : null);
  const used = useUsed(namespace, list.items.length > 0);
  const columns: Column<Quota>[] = [
    {
      id: 'name',
      title: t('quotas.name'),
      sort: ({ metadata }) => metadata.name,
      cell: ({ metadata }) => metadata.name,
    },
    { id: 'scope', title: t('quotas.scope'), cell: ({ spec }) => spec.scope.kind },
    {
      id: 'limits',
      title: t('quotas.limits'),
      width: '2fr',
      cell: (quota) => <Used quota={quota} used={used(quota)} />,
    },
    { id: 'days', title: t('quotas.days'), cell: ({ spec }) => spec.clusterLifetimeDays },
    {
      id: 'actions',
      title: t('ui.actions'),
      cell: ({ metadata: { name } }) =>
        rights.delete && (
          <Action
            label={t('ui.delete')}
            dialog={(close) => (
              <NamedDialog
                name={name}
                title={t('quotas.delete')}
                submit={t('ui.delete')}
                onSubmit={() => remove('garden', resource, { namespace, name })}
                onClose={close}
              >
                <Text>{t('quotas.deleteLoses')}</Text>
              </NamedDialog>
            )}
          />
        ),
    },
  ];
  return (
    <Section
      title={t('quotas.title')}
      actions={
        <Offer may={rights.create} who="projectAdmin">
          <Action
            label={t('quotas.create')}
            dialog={(close) => <CreateQuota namespace={namespace} onClose={close} />}
          />
        </Offer>
      }
    >
      <Offer may={rights.list} who="projectAdmin">
        <ListTable label={t('quotas.title')} list={list} columns={columns} none={t('quotas.none')} />
      </Offer>
    </Section>
  );
}

/** useUsed is what the project's shoots take of a quota; undefined until that is known. */
function useUsed(namespace: string, isNeeded: boolean): (quota: Quota) => Record<string, number> | undefined {
  const query = { cluster: 'garden', namespace, view: 'object' } as const;
  const shoots = useLiveList<Shoot>(isNeeded ? { ...query, resource: resources.shoots } : null);
  const bindings = useLiveList<CredentialsBinding>(
    isNeeded ? { ...query, resource: resources.credentialsbindings } : null,
  );
  const { data: profiles } = useProfiles(namespace);
  if (!shoots.complete || !bindings.complete || !profiles) return () => undefined;
  return (quota) => usedOf(quota, bindings.items, shoots.items, profiles);
}

/** Used is what is taken of each limit. */
function Used({ quota: { spec }, used }: { quota: Quota; used: Record<string, number> | undefined }) {
  return (
    <ul className="parts">
      {Object.entries(spec.metrics).map(([name, limit]) => {
        const amount = used?.[name] ?? 0;
        const isFull = amount >= (parseQuantity(limit) ?? Infinity);
        return (
          <li key={name}>
            {name}: {used ? t('quotas.used', { used: inUnitOf(amount, limit), limit }) : limit}{' '}
            {used && isFull && <ToneBadge tone="warning">{t('quotas.full')}</ToneBadge>}
          </li>
        );
      })}
    </ul>
  );
}

function CreateQuota({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const [name, setName] = useState('');
  const [days, setDays] = useState<string | number>('');
  const [limits, setLimits] = useState<Record<string, string>>({});
  const submit = () =>
    create<Quota>('garden', resources.quotas, {
      metadata: { namespace, name },
      spec: {
        scope: { apiVersion: 'core.gardener.cloud/v1beta1', kind: 'Project' },
        metrics: Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== '')),
        clusterLifetimeDays: days === '' ? undefined : Number(days),
      },
    });
  return (
    <Dialog
      title={t('quotas.create')}
      submit={t('quotas.create')}
      onSubmit={submit}
      onClose={onClose}
      disabled={name === ''}
    >
      <Stack>
        <Text size="sm">{t('quotas.help')}</Text>
        <TextInput
          label={t('quotas.name')}
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          required
          data-autofocus
        />
        {metrics.map((metric) => (
          <TextInput
            key={metric}
            label={metric}
            value={limits[metric] ?? ''}
            onChange={(event) => setLimits({ ...limits, [metric]: event.currentTarget.value.trim() })}
          />
        ))}
        <NumberInput label={t('quotas.days')} min={1} value={days} onChange={setDays} />
      </Stack>
    </Dialog>
  );
}
