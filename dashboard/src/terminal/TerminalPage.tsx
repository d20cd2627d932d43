import { Button, Stack, Text } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { useParams } from 'react-router';

import { request } from '../api/http';
import { useConfig } from '../api/session';
import { t } from '../i18n';
import { useShootRights } from '../shoots/rights';
import { Offer } from '../ui/Action';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Page } from '../ui/Page';
import { When } from '../ui/When';

const Screen = lazy(() => import('./Screen'));

interface Terminal {
  id: string;
  expires: string;
}

/** TerminalPage is a shell in a shoot, with the rights of whoever is logged in. */
export function TerminalPage() {
  const { namespace = '', name = '' } = useParams();
  const { data: config } = useConfig();
  const rights = useShootRights(namespace);
  return (
    <Page title={t('terminal.title', { name })} path={[{ title: name, to: `/shoots/${namespace}/${name}` }]}>
      {config && !config.terminal && <Empty>{t('terminal.none')}</Empty>}
      {config?.terminal && (
        <Offer may={rights.admin || rights.viewer} who="projectAdmin">
          <Session namespace={namespace} shoot={name} />
        </Offer>
      )}
    </Page>
  );
}

function Session({ namespace, shoot }: { namespace: string; shoot: string }) {
  const {
    mutate,
    data: terminal,
    error,
    isPending,
    reset,
  } = useMutation({
    mutationFn: () =>
      request<Terminal>('/api/terminal', { method: 'POST', body: { namespace, shoot, template: 'shell' } }),
  });
  if (terminal) {
    return (
      <Stack>
        <Text size="sm">
          {t('terminal.expires')} <When time={terminal.expires} />
        </Text>
        <Suspense fallback={<Loading />}>
          <Screen id={terminal.id} onClose={reset} />
        </Suspense>
      </Stack>
    );
  }
  return (
    <Stack align="start">
      <Text>{t('terminal.help')}</Text>
      <Failure error={error} />
      <Button onClick={() => mutate()} loading={isPending}>
        {t('terminal.start')}
      </Button>
    </Stack>
  );
}
