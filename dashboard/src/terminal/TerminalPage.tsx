import { Button, Group, Stack, Text } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { useParams } from 'react-router';

import { resources } from '../api/paths';
import { useConfig } from '../api/session';
import { t } from '../i18n';
import { useLiveObject } from '../live';
import { useSeedRight, useShootRights } from '../shoots/rights';
import type { ShootRow } from '../shoots/types';
import { Offer } from '../ui/Action';
import { Empty, Loading } from '../ui/Loading';
import { ObjectState } from '../ui/Missing';
import { Page } from '../ui/Page';
import { path, type Target } from './protocol';

const Screen = lazy(() => import('./Screen'));

/** TerminalPage is a shell in a shoot, with the rights of whoever is logged in. */
export function TerminalPage() {
  const { namespace = '', name = '' } = useParams();
  const { data: config } = useConfig();
  const way = { title: name, to: `/shoots/${namespace}/${name}` };
  const resource = resources.shoots;
  const shoot = useLiveObject<ShootRow>({ cluster: 'garden', resource, namespace, name, view: 'row' });
  return (
    <Page title={t('terminal.title', { name })} path={[way]}>
      {config && !config.terminal && <Empty>{t('terminal.none')}</Empty>}
      {config?.terminal && <ObjectState of={shoot} gone={t('shoot.gone', { name })} way={way} />}
      {config?.terminal && shoot.object && <Session namespace={namespace} shoot={shoot.object} />}
    </Page>
  );
}

function Session({ namespace, shoot }: { namespace: string; shoot: ShootRow }) {
  const [target, setTarget] = useState<Target>();
  if (target) {
    return (
      <Stack>
        <Suspense fallback={<Loading />}>
          <Screen path={path(namespace, shoot.name, target)} onClose={() => setTarget(undefined)} />
        </Suspense>
      </Stack>
    );
  }
  return <Choice namespace={namespace} shoot={shoot} onChoice={setTarget} />;
}

interface ChoiceProps {
  namespace: string;
  shoot: ShootRow;
  onChoice: (target: Target) => void;
}

/** Choice is in which cluster the terminal is to be: in the shoot if it has nodes, or where its control plane is. */
function Choice({ namespace, shoot, onChoice }: ChoiceProps) {
  const rights = useShootRights(namespace);
  const maySeed = useSeedRight(shoot.seed);
  return (
    <Stack align="start">
      <Text>{t(shoot.workerless ? 'terminal.workerless' : 'terminal.help')}</Text>
      <Group>
        {!shoot.workerless && (
          <Offer may={rights.admin} who="projectAdmin">
            <Button onClick={() => onChoice('shoot')}>{t('terminal.start')}</Button>
          </Offer>
        )}
        {maySeed && (
          <Button variant="default" onClick={() => onChoice('controlplane')}>
            {t('terminal.startControlPlane')}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
