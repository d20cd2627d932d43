import { Button, Group, NativeSelect, Tabs } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { useNavigate, useParams } from 'react-router';

import { create, createText, list } from '../api/objects';
import { resources } from '../api/paths';
import type { KubernetesObject } from '../api/types';
import { ObjectEditor } from '../editor/ObjectEditor';
import { toYAML } from '../editor/document';
import { t } from '../i18n';
import type { CredentialsBinding } from '../projects/credentials';
import { InProject } from '../projects/InProject';
import { Offer } from '../ui/Action';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Page } from '../ui/Page';
import { Preview } from '../ui/Preview';
import { Form } from './Form';
import { faultsOf, firstAnswers, shootOf, type Answers } from './order';
import { useProfiles, type OfferedProfile } from './profiles';
import { useShootRights } from './rights';
import type { Shoot } from './types';

/** CreatePage offers what the cloud profiles allow, with the YAML beside. */
export function CreatePage() {
  const { project = '' } = useParams();
  return (
    <Page
      title={t('create.title', { project })}
      path={[
        { title: t('projects.title'), to: '/projects' },
        { title: project, to: `/projects/${project}/shoots` },
      ]}
    >
      <InProject name={project}>{(namespace) => <Create namespace={namespace} />}</InProject>
    </Page>
  );
}

function Create({ namespace }: { namespace: string }) {
  const rights = useShootRights(namespace);
  const { data: profiles, error } = useProfiles(namespace);
  const { data: bindings, error: bindingsError } = useQuery({
    queryKey: ['credentialsbindings', namespace],
    queryFn: () => list<CredentialsBinding>('garden', resources.credentialsbindings, namespace),
  });
  const networks = useNetworks(namespace);
  const [chosen, setChosen] = useState(0);
  const profile = profiles?.[chosen];
  if (error ?? bindingsError) return <Failure error={error ?? bindingsError} />;
  if (!profiles || !bindings || !networks) return <Loading />;
  if (!profile) return <Empty>{t('create.noProfile')}</Empty>;
  const credentials = bindings.items
    .filter(({ provider }) => provider.type === profile.spec.type)
    .map(({ metadata }) => metadata.name);
  return (
    <Offer may={rights.create} who="projectAdmin">
      <NativeSelect
        label={t('create.profile')}
        value={String(chosen)}
        onChange={(event) => setChosen(Number(event.currentTarget.value))}
        data={profiles.map(({ kind, name }, i) => ({
          value: String(i),
          label: kind === 'CloudProfile' ? name : `${name} (${kind})`,
        }))}
        mb="md"
      />
      <Wizard key={chosen} namespace={namespace} profile={profile} credentials={credentials} networks={networks} />
    </Offer>
  );
}

interface WizardProps {
  namespace: string;
  profile: OfferedProfile;
  credentials: string[];
  networks: string[];
}

function Wizard({ namespace, profile, credentials, networks }: WizardProps) {
  const [answers, setAnswers] = useState<Answers>(() => firstAnswers(profile.spec, credentials, networks, new Date()));
  const [typed, setTyped] = useState({ text: '', of: '' });
  const navigate = useNavigate();
  const shoot = useMemo(() => shootOf(answers, namespace, profile), [answers, namespace, profile]);
  const yaml = useMemo(() => toYAML(shoot), [shoot]);
  const faults = faultsOf(answers);
  const done = ({ metadata: { name } }: KubernetesObject) => void navigate(`/shoots/${namespace}/${name}`);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => create<Shoot>('garden', resources.shoots, shoot),
    onSuccess: done,
  });
  return (
    <Tabs defaultValue="form" keepMounted={false}>
      <Tabs.List>
        <Tabs.Tab value="form">{t('create.form')}</Tabs.Tab>
        <Tabs.Tab value="yaml">{t('create.yaml')}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="form" pt="md">
        <div className="beside">
          <div>
            <Form
              answers={answers}
              onChange={setAnswers}
              profile={profile.spec}
              credentials={credentials}
              networks={networks}
              faults={faults}
            />
            <Failure error={error} />
            <Group justify="flex-end">
              <Button onClick={() => mutate()} loading={isPending} disabled={Object.keys(faults).length > 0}>
                {t('shoots.create')}
              </Button>
            </Group>
          </div>
          <Preview label={t('create.preview')}>{yaml}</Preview>
        </div>
      </Tabs.Panel>
      <Tabs.Panel value="yaml" pt="md">
        <ObjectEditor
          resource={resources.shoots}
          before=""
          // What was typed is there again when one comes back, unless the form was changed meanwhile.
          initial={typed.of === yaml ? typed.text : yaml}
          onChange={(text) => setTyped({ text, of: yaml })}
          write={(text, dryRun) => createText<Shoot>('garden', resources.shoots, namespace, text, { dryRun })}
          onDone={done}
        />
      </Tabs.Panel>
    </Tabs>
  );
}

interface Registration {
  spec: { resources?: { kind: string; type: string }[] };
}

/** useNetworks are the network plugins that are known: of the garden's extensions, which operators read, or of shoots. */
function useNetworks(namespace: string): string[] | undefined {
  const { data } = useQuery({
    queryKey: ['networks', namespace],
    retry: false,
    queryFn: async () => {
      const found = await registeredNetworks().catch(() => usedNetworks(namespace));
      return [...new Set(found)].sort();
    },
  });
  return data;
}

async function registeredNetworks(): Promise<string[]> {
  const { items } = await list<Registration>('garden', resources.controllerregistrations);
  return items.flatMap(({ spec }) =>
    (spec.resources ?? []).filter(({ kind }) => kind === 'Network').map(({ type }) => type),
  );
}

async function usedNetworks(namespace: string): Promise<string[]> {
  const { items } = await list<Shoot>('garden', resources.shoots, namespace).catch(() => ({ items: [] }));
  return items.flatMap(({ spec }) => spec.networking?.type ?? []);
}
