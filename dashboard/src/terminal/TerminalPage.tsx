import { Button, Group, Stack, Text } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { useParams } from 'react-router';

import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { useConfig } from '../api/session';
import { t } from '../i18n';
import { useShootRights } from '../shoots/rights';
import { Offer } from '../ui/Action';
import { Empty, Loading } from '../ui/Loading';
import { Page } from '../ui/Page';
import { path, type Target } from './protocol';

const Screen = lazy(() => import('./Screen'));

/** TerminalPage is a shell in a shoot, with the rights of whoever is logged in. */
export function TerminalPage() {
  const { namespace = '', name = '' } = useParams();
  const { data: config } = useConfig();
  const rights = useShootRights(namespace);
  return (
    <Page title={t('terminal.title', { name })} path={[{ title: name, to: `/shoots/${namespace}/${name}` }]}>
      {config && !config.terminal && <Empty>{t('terminal.none')}</Empty>}
      {config?.terminal && (
        <Offer may={rights.admin} who="projectAdmin">
          <Session namespace={namespace} shoot={name} />
        </Offer>
      )}
    </Page>
  );
}

function Session({ namespace, shoot }: { namespace: string; shoot: string }) {
  const [target, setTarget] = useState<Target>();
  // Who may be an administrator of seeds that are shoots of the garden.
  const { seeds } = useRights('garden', {
    seeds: { verb: 'create', resource: resources.shoots, subresource: 'adminkubeconfig', namespace: 'garden' },
  });
  if (target) {
    return (
      <Stack>
        <Suspense fallback={<Loading />}>
          <Screen path={path(namespace, shoot, target)} onClose={() => setTarget(undefined)} />
        </Suspense>
      </Stack>
    );
  }
  return (
    <Stack align="start">
      <Text>{t('terminal.help')}</Text>
      <Group>
        <Button onClick={() => setTarget('shoot')}>{t('terminal.start')}</Button>
        {seeds && (
          <Button variant="default" onClick={() => setTarget('controlplane')}>
            {t('terminal.startControlPlane')}
          </Button>
        )}
      </Group>
    </Stack>
  );
}
