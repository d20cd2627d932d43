import { NumberInput, NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';

import { resources, type Cluster } from '../api/paths';
import { t } from '../i18n';
import { number } from '../i18n/time';
import { useLiveList } from '../live';
import type { LiveState } from '../live/list';
import { Action, Offer } from '../ui/Action';
import { holds } from '../ui/Conditions';
import { Dialog } from '../ui/Dialog';
import { ListTable } from '../ui/ListTable';
import { Empty } from '../ui/Loading';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { setWorker } from './actions';
import { memoryText, useFigures, type Figures } from './figures';
import { imageVersions } from './profile';
import { mayLookInside } from './status';
import type { ProfileSpec, Shoot, Worker } from './types';

interface NodeRow {
  uid: string;
  name: string;
  created?: string;
  ready?: string;
  version?: string;
  pool?: string;
  zone?: string;
  machineType?: string;
  unschedulable?: boolean;
}

interface PoolsProps {
  shoot: Shoot;
  profile: ProfileSpec | undefined;
  rights: { change: boolean; admin: boolean; viewer: boolean };
}

/** Pools are the shoot's machines, by pool. */
export function Pools({ shoot, profile, rights }: PoolsProps) {
  const workers = shoot.spec.provider.workers ?? [];
  const { namespace = '', name } = shoot.metadata;
  const cluster: Cluster = `shoot/${namespace}/${name}`;
  const mayLook = mayLookInside(shoot, rights);
  const nodes = useLiveList<NodeRow>(mayLook ? { cluster, resource: resources.nodes } : null);
  const ready = (pool: string) => nodes.items.filter((node) => node.pool === pool && holds(node.ready)).length;
  const columns: Column<Worker>[] = [
    { id: 'name', title: t('pools.name'), cell: ({ name }) => name },
    { id: 'type', title: t('pools.type'), cell: ({ machine }) => machine.type },
    {
      id: 'image',
      title: t('pools.image'),
      cell: ({ machine: { image } }) => image && `${image.name} ${image.version ?? ''}`,
    },
    {
      id: 'version',
      title: t('shoots.version'),
      cell: ({ kubernetes }) => kubernetes?.version ?? shoot.spec.kubernetes.version,
    },
    { id: 'zones', title: t('pools.zones'), cell: ({ zones = [] }) => zones.join(', ') },
    { id: 'size', title: t('pools.size'), cell: ({ minimum, maximum }) => `${minimum}–${maximum}` },
    { id: 'ready', title: t('pools.ready'), cell: ({ name }) => (nodes.complete ? ready(name) : '–') },
    {
      id: 'actions',
      title: t('ui.actions'),
      cell: (worker) =>
        rights.change && (
          <Action
            label={t('pools.change')}
            dialog={(close) => <EditPool shoot={shoot} worker={worker} profile={profile} onClose={close} />}
          />
        ),
    },
  ];
  return (
    <Section title={t('pools.title')}>
      {workers.length === 0 ? (
        <Empty>{t('pools.none')}</Empty>
      ) : (
        <Table label={t('pools.title')} columns={columns} rows={workers} keyOf={({ name }) => name} />
      )}
      {workers.length > 0 && (
        <Offer may={rights.admin || rights.viewer} who="projectAdmin">
          {mayLook ? <Nodes cluster={cluster} nodes={nodes} /> : <Empty>{t('pools.asleep')}</Empty>}
        </Offer>
      )}
    </Section>
  );
}

function Nodes({ cluster, nodes }: { cluster: Cluster; nodes: LiveState<NodeRow> }) {
  const figures = useFigures(cluster);
  const figure = (title: string, text: (of: Figures) => string): Column<NodeRow> => ({
    id: title,
    title,
    cell: ({ name }) => {
      const of = figures?.get(name);
      return of ? text(of) : '–';
    },
  });
  const columns: Column<NodeRow>[] = [
    { id: 'name', title: t('nodes.name'), width: '2fr', sort: ({ name }) => name, cell: ({ name }) => name },
    {
      id: 'ready',
      title: t('nodes.ready'),
      sort: ({ ready }) => Number(holds(ready)),
      cell: ({ ready, unschedulable }) => (
        <>
          <ToneBadge tone={holds(ready) ? 'good' : 'bad'}>
            {t(holds(ready) ? 'nodes.isReady' : 'nodes.isNotReady')}
          </ToneBadge>
          {unschedulable && <ToneBadge tone="warning">{t('nodes.unschedulable')}</ToneBadge>}
        </>
      ),
    },
    { id: 'pool', title: t('pools.name'), sort: ({ pool }) => pool ?? '', cell: ({ pool }) => pool },
    { id: 'zone', title: t('pools.zones'), sort: ({ zone }) => zone ?? '', cell: ({ zone }) => zone },
    { id: 'version', title: t('shoots.version'), cell: ({ version }) => version },
    ...(figures ? [figure(t('nodes.cpu'), ({ cpu }) => number(cpu)), figure(t('nodes.memory'), memoryText)] : []),
    { id: 'created', title: t('projects.created'), cell: ({ created }) => <When time={created} /> },
  ];
  return <ListTable label={t('nodes.title')} list={nodes} columns={columns} />;
}

interface EditPoolProps {
  shoot: Shoot;
  worker: Worker;
  profile: ProfileSpec | undefined;
  onClose: () => void;
}

function EditPool({ shoot, worker, profile, onClose }: EditPoolProps) {
  const [minimum, setMinimum] = useState<number | string>(worker.minimum);
  const [maximum, setMaximum] = useState<number | string>(worker.maximum);
  const image = worker.machine.image;
  const [version, setVersion] = useState(image?.version ?? '');
  const offered =
    profile && image
      ? imageVersions(profile, image.name, worker.machine.type, new Date()).map((each) => each.version)
      : [];
  const changed: Worker = {
    ...worker,
    minimum: Number(minimum),
    maximum: Number(maximum),
    machine: { ...worker.machine, image: image && { ...image, version: version || undefined } },
  };
  const submit = () => setWorker(shoot, changed);
  const isGood = minimum !== '' && maximum !== '' && Number(minimum) <= Number(maximum);
  return (
    <Dialog
      title={t('pools.changeOf', { name: worker.name })}
      submit={t('ui.save')}
      onSubmit={submit}
      onClose={onClose}
      disabled={!isGood}
    >
      <Stack>
        <NumberInput label={t('pools.minimum')} min={0} value={minimum} onChange={setMinimum} data-autofocus />
        <NumberInput
          label={t('pools.maximum')}
          min={0}
          value={maximum}
          onChange={setMaximum}
          error={!isGood && t('pools.order')}
        />
        {offered.length > 0 && (
          <NativeSelect
            label={t('pools.image')}
            value={version}
            onChange={(event) => setVersion(event.currentTarget.value)}
            data={[...new Set([version, ...offered])]}
          />
        )}
        {version !== (image?.version ?? '') && <Text>{t('pools.replaced')}</Text>}
      </Stack>
    </Dialog>
  );
}
