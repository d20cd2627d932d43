import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { t } from '../i18n';
import { ListState, Empty } from '../ui/Loading';
import { Section } from '../ui/Page';
import { ToneBadge } from '../ui/Tone';
import { Bars } from './Bars';
import { countBy, failuresOf, machinesBy, statesOf, toneOf } from './glance';
import { useAllShoots, useSeeds } from './lists';

const most = 10;

/** Glance is how the garden is: its shoots by state, what fails most, who uses most. */
export function Glance() {
  const shoots = useAllShoots();
  const seeds = useSeeds();
  const ill = seeds.items.filter(({ status }) => toneOf(status?.conditions) !== 'good');
  const failures = failuresOf(shoots.items).slice(0, most);
  return (
    <>
      <ListState list={shoots} />
      <Section title={t('glance.states')}>
        <ul className="states" aria-live="polite">
          {statesOf(shoots.items).map(({ key, tone, count }) => (
            <li key={key}>
              <ToneBadge tone={tone}>{t(key)}</ToneBadge> <strong>{count}</strong>
            </li>
          ))}
        </ul>
        <Anchor component={Link} to="/shoots?unhealthy=1">
          {t('glance.unhealthy')}
        </Anchor>
      </Section>
      <Section title={t('glance.seeds')}>
        {ill.length === 0 && <Empty>{t('glance.seedsGood', { count: seeds.items.length })}</Empty>}
        <ul>
          {ill.map(({ metadata: { name }, status }) => (
            <li key={name}>
              <Anchor component={Link} to={`/operations/seeds/${name}`}>
                <ToneBadge tone={toneOf(status?.conditions)}>{name}</ToneBadge>
              </Anchor>
            </li>
          ))}
        </ul>
      </Section>
      <div className="columns">
        <Section title={t('glance.failures')}>
          {failures.length === 0 ? (
            <Empty>{t('glance.noFailures')}</Empty>
          ) : (
            <Bars counts={failures} label={t('glance.failures')} />
          )}
        </Section>
        <Section title={t('glance.versions')}>
          <Bars counts={countBy(shoots.items, ({ version }) => version).slice(0, most)} label={t('glance.versions')} />
        </Section>
        <Section title={t('glance.projects')}>
          <Bars
            counts={countBy(shoots.items, ({ project, namespace }) => project ?? namespace).slice(0, most)}
            label={t('glance.projects')}
          />
        </Section>
        <Section title={t('glance.machines')}>
          <Bars
            counts={machinesBy(shoots.items, ({ project, namespace }) => project ?? namespace).slice(0, most)}
            label={t('glance.machines')}
          />
        </Section>
      </div>
    </>
  );
}
