import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { get } from '../api/objects';
import { resources, type Cluster } from '../api/paths';
import type { KubernetesObject } from '../api/types';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Offer } from '../ui/Action';
import { Failure } from '../ui/Failure';
import { useAddress } from '../ui/Filters';
import { Empty, ListState, Loading } from '../ui/Loading';
import { Section } from '../ui/Page';
import { Preview } from '../ui/Preview';
import { useLog } from './log';
import { mayLookInside } from './status';
import type { Shoot } from './types';

/** namespace of what Trellis runs in a shoot. */
const namespace = 'kube-system';

interface PodRow {
  uid: string;
  name: string;
  phase?: string;
  ready?: string;
  restarts?: number;
}

interface Pod extends KubernetesObject {
  spec: { containers: { name: string }[] };
}

interface LogsProps {
  shoot: Shoot;
  rights: { admin: boolean; viewer: boolean };
}

/** Logs are the last lines of what Trellis runs in the cluster. The address says of which pod. */
export function Logs({ shoot, rights }: LogsProps) {
  const cluster: Cluster = `shoot/${shoot.metadata.namespace ?? ''}/${shoot.metadata.name}`;
  const mayLook = mayLookInside(shoot, rights);
  const pods = useLiveList<PodRow>(mayLook ? { cluster, resource: resources.pods, namespace } : null);
  const [search, set] = useAddress();
  const pod = search.get('pod') ?? '';
  const names = pods.items.map(({ name }) => name).sort();
  const row = pods.items.find(({ name }) => name === pod);
  return (
    <Section title={t('logs.title')}>
      <Offer may={rights.admin || rights.viewer} who="projectAdmin">
        {!mayLook && <Empty>{t('pools.asleep')}</Empty>}
        {mayLook && <ListState list={pods} />}
        {pods.complete && names.length === 0 && <Empty>{t('logs.none')}</Empty>}
        {names.length > 0 && (
          <NativeSelect
            label={t('logs.pod')}
            value={pod}
            onChange={(event) => set('pod', event.currentTarget.value)}
            data={[{ value: '', label: '–' }, ...names]}
          />
        )}
        {row && <PodLog key={pod} cluster={cluster} row={row} />}
      </Offer>
    </Section>
  );
}

interface PodLogProps {
  cluster: Cluster;
  row: PodRow;
}

function PodLog({ cluster, row }: PodLogProps) {
  const { name } = row;
  const [chosen, setChosen] = useState<string>();
  const { data: pod, error } = useQuery({
    queryKey: ['pod', cluster, name],
    queryFn: () => get<Pod>(cluster, resources.pods, { namespace, name }),
  });
  const containers = pod?.spec.containers.map((container) => container.name) ?? [];
  const container = chosen ?? containers[0];
  return (
    <>
      {containers.length > 1 && (
        <NativeSelect
          label={t('logs.container')}
          value={container}
          onChange={(event) => setChosen(event.currentTarget.value)}
          data={containers}
        />
      )}
      <Failure error={error} />
      {!pod && !error && <Loading />}
      {container !== undefined && <Lines key={container} cluster={cluster} row={row} container={container} />}
    </>
  );
}

function Lines({ cluster, row, container }: PodLogProps & { container: string }) {
  const { name, phase, ready, restarts } = row;
  const log = useLog(cluster, { namespace, name }, container, [phase, ready, restarts].join(' '));
  return (
    <>
      <Failure error={log.error} />
      {log.text === undefined && !log.error && <Loading />}
      {log.text !== undefined && <Preview label={t('logs.of', { name })}>{log.text || t('logs.empty')}</Preview>}
    </>
  );
}
