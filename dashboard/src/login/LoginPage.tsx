import { Alert, Button, PasswordInput, Stack, Tabs, Text, Textarea, Title } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { Navigate, useSearchParams } from 'react-router';

import { logIn, oidcAddress, safeNext, useConfig, useSession, type Config } from '../api/session';
import { known, t, useLanguage } from '../i18n';
import { Preferences } from '../app/Preferences';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';

/** LoginPage offers the ways that the server knows. */
export function LoginPage() {
  useLanguage();
  const [search] = useSearchParams();
  const { data: session } = useSession();
  const { data: config, error } = useConfig();
  const next = safeNext(search.get('next'));
  if (session) return <Navigate to={next} replace />;
  return (
    <main className="alone">
      <Stack>
        <Title order={1} size="h2">
          {t('login.title', { garden: config?.garden ?? 'Trellis' })}
        </Title>
        <OidcFailure code={search.get('error')} message={search.get('message')} />
        <Failure error={error} />
        {config ? <Ways config={config} next={next} /> : !error && <Loading />}
        <div className="preferences">
          <Preferences />
        </div>
      </Stack>
    </main>
  );
}

/** LoggedInPage is where one comes to who logged in beside a page whose session had ended. */
export function LoggedInPage() {
  // To read the session tells the other tabs of it.
  useSession();
  return (
    <main className="alone">
      <Title order={1} size="h2">
        {t('login.done')}
      </Title>
      <Text>{t('login.doneDo')}</Text>
    </main>
  );
}

function OidcFailure({ code, message }: { code: string | null; message: string | null }) {
  if (!code) return null;
  return (
    <Alert color="red" role="alert" title={known('login.failed', code) ?? t('login.failed.other')}>
      {message}
    </Alert>
  );
}

function Ways({ config: { login }, next }: { config: Config; next: string }) {
  const first = login.token ? 'token' : 'kubeconfig';
  return (
    <>
      {login.oidc?.map(({ name, title }) => (
        <Button key={name} component="a" href={oidcAddress(name, next)} size="md">
          {t('login.by', { title })}
        </Button>
      ))}
      {(login.token || login.kubeconfig) && (
        <Tabs defaultValue={first}>
          <Tabs.List aria-label={t('login.others')}>
            {login.token && <Tabs.Tab value="token">{t('login.token')}</Tabs.Tab>}
            {login.kubeconfig && <Tabs.Tab value="kubeconfig">{t('login.kubeconfig')}</Tabs.Tab>}
          </Tabs.List>
          <Tabs.Panel value="token" pt="md">
            <TokenForm />
          </Tabs.Panel>
          <Tabs.Panel value="kubeconfig" pt="md">
            <KubeconfigForm />
          </Tabs.Panel>
        </Tabs>
      )}
    </>
  );
}

function useLogIn() {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (credential: { token: string } | { kubeconfig: string }) => logIn(queries, credential),
  });
}

function TokenForm() {
  const [token, setToken] = useState('');
  const { mutate, isPending, error } = useLogIn();
  const send = (event: FormEvent) => {
    event.preventDefault();
    mutate({ token: token.trim() });
  };
  return (
    <form onSubmit={send}>
      <Stack>
        <PasswordInput
          label={t('login.tokenLabel')}
          description={t('login.tokenHelp')}
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
          autoComplete="off"
          required
        />
        <Failure error={error} />
        <Button type="submit" loading={isPending} disabled={token.trim() === ''}>
          {t('login.submit')}
        </Button>
      </Stack>
    </form>
  );
}

function KubeconfigForm() {
  const [kubeconfig, setKubeconfig] = useState('');
  const { mutate, isPending, error } = useLogIn();
  const send = (event: FormEvent) => {
    event.preventDefault();
    mutate({ kubeconfig });
  };
  const read = async (file: File | undefined) => {
    if (file) setKubeconfig(await file.text());
  };
  return (
    <form onSubmit={send}>
      <Stack>
        <label>
          {t('login.kubeconfigFile')}{' '}
          <input type="file" onChange={(event) => void read(event.currentTarget.files?.[0])} />
        </label>
        <Textarea
          label={t('login.kubeconfigLabel')}
          description={t('login.kubeconfigHelp')}
          value={kubeconfig}
          onChange={(event) => setKubeconfig(event.currentTarget.value)}
          rows={10}
          spellCheck={false}
          required
        />
        <Failure error={error} />
        <Button type="submit" loading={isPending} disabled={kubeconfig.trim() === ''}>
          {t('login.submit')}
        </Button>
      </Stack>
    </form>
  );
}
