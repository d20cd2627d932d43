import { Anchor, CopyButton, Button, Group, NativeSelect } from '@mantine/core';
import { useState } from 'react';

import { withQuery } from '../api/paths';
import { t } from '../i18n';
import { lifetimes } from '../projects/lifetimes';
import { useProjectOf } from '../projects/projects';
import { Offer } from '../ui/Action';
import { Facts, Section } from '../ui/Page';
import type { Shoot } from './types';

interface AccessProps {
  shoot: Shoot;
  rights: { admin: boolean; viewer: boolean };
}

/** Access is how one comes into the cluster: addresses, kubeconfigs, commands. */
export function Access({ shoot, rights }: AccessProps) {
  const { namespace = '', name } = shoot.metadata;
  const [seconds, setSeconds] = useState('3600');
  const levels = [rights.admin && ('admin' as const), rights.viewer && ('viewer' as const)].filter(
    (level) => level !== false,
  );
  const project = useProjectOf(namespace)?.name ?? namespace;
  const flags = `--project ${project} --shoot ${name}`;
  const hasMachines = (shoot.spec.provider.workers?.length ?? 0) > 0 && !shoot.status?.hibernated;
  return (
    <Section title={t('access.title')}>
      <Facts
        facts={(shoot.status?.advertisedAddresses ?? []).map(({ name, url }) => [name, <code key={name}>{url}</code>])}
      />
      <Offer may={levels.length > 0} who="projectAdmin">
        <Group align="end" my="sm">
          <NativeSelect
            label={t('kubeconfig.life')}
            value={seconds}
            onChange={(event) => setSeconds(event.currentTarget.value)}
            data={lifetimes()}
          />
          {levels.map((level) => (
            <Anchor
              key={level}
              download
              href={withQuery(`/api/kubeconfig/shoot/${namespace}/${name}`, { level, expirationSeconds: seconds })}
            >
              {t(level === 'admin' ? 'access.admin' : 'access.viewer')}
            </Anchor>
          ))}
        </Group>
        <Command text={`trellisctl kubeconfig ${flags} > ${name}.yaml`} />
      </Offer>
      {hasMachines && (
        <Offer may={rights.admin} who="projectAdmin">
          <p className="dimmed">{t('access.ssh')}</p>
          <Command text={`trellisctl ssh ${flags}`} />
        </Offer>
      )}
    </Section>
  );
}

/** Command is one to be run in a terminal of one's own. */
function Command({ text }: { text: string }) {
  return (
    <Group gap="xs">
      <code>{text}</code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="compact-xs" variant="default" onClick={copy}>
            {t(copied ? 'ui.copied' : 'ui.copy')}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
