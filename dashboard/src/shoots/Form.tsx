import { Autocomplete, Button, Checkbox, Group, NativeSelect, NumberInput, Stack, TextInput } from '@mantine/core';

import { known, t } from '../i18n';
import { date } from '../i18n/time';
import { Section } from '../ui/Page';
import { fit, newPool, type Answers, type Faults, type Pool } from './order';
import {
  classificationAt,
  expirationOf,
  imagesFor,
  imageVersions,
  machineTypes,
  usable,
  volumeTypes,
  zoneNames,
} from './profile';
import { ScheduleFields } from './Schedules';
import type { ProfileSpec, Version } from './types';

interface FormProps {
  answers: Answers;
  onChange: (answers: Answers) => void;
  profile: ProfileSpec;
  credentials: string[];
  networks: string[];
  faults: Faults;
}

/** versionLabel tells what one should know of a version before one chooses it. */
function versionLabel(version: Version, now: Date): string {
  const classification = classificationAt(version, now);
  const expires = expirationOf(version);
  const remarks = [
    classification === 'supported' ? '' : (known('classification', classification) ?? classification),
    expires ? t('create.until', { date: date(expires) }) : '',
  ].filter(Boolean);
  return remarks.length > 0 ? `${version.version} (${remarks.join(', ')})` : version.version;
}

const versionOptions = (versions: Version[], now: Date) =>
  usable(versions, now).map((version) => ({ value: version.version, label: versionLabel(version, now) }));

export function Form(props: FormProps) {
  const { answers, onChange, profile, faults } = props;
  const now = new Date();
  const set = (change: Partial<Answers>) => onChange({ ...answers, ...change });
  const chooseRegion = (region: string) =>
    set({ region, pools: answers.pools.map((pool) => fit({ ...pool, zones: [] }, profile, region, now)) });
  return (
    <Stack gap="md">
      <TextInput
        label={t('shoots.name')}
        description={t('create.nameHelp')}
        value={answers.name}
        onChange={(event) => set({ name: event.currentTarget.value })}
        error={faults.name === 'form' && t('create.nameForm')}
        required
      />
      <NativeSelect
        label={t('create.region')}
        value={answers.region}
        onChange={(event) => chooseRegion(event.currentTarget.value)}
        data={(profile.regions ?? []).map(({ name }) => name)}
      />
      <NativeSelect
        label={t('shoots.version')}
        value={answers.version}
        onChange={(event) => set({ version: event.currentTarget.value })}
        data={versionOptions(profile.kubernetes.versions ?? [], now)}
      />
      <NativeSelect
        label={t('shoots.purpose')}
        value={answers.purpose}
        onChange={(event) => set({ purpose: event.currentTarget.value })}
        data={['evaluation', 'testing', 'development', 'production'].map((value) => ({
          value,
          label: known('purpose', value) ?? value,
        }))}
      />
      <NativeSelect
        label={t('create.ha')}
        description={t('create.haHelp')}
        value={answers.ha}
        onChange={(event) => set({ ha: event.currentTarget.value as Answers['ha'] })}
        data={[
          { value: '', label: t('create.haNone') },
          { value: 'node', label: t('create.haNode') },
          { value: 'zone', label: t('create.haZone') },
        ]}
      />
      <Checkbox
        label={t('create.workerless')}
        description={t('create.workerlessHelp')}
        checked={answers.workerless}
        onChange={(event) => set({ workerless: event.currentTarget.checked })}
      />
      {!answers.workerless && <WithWorkers {...props} set={set} />}
      <Schedules answers={answers} set={set} />
    </Stack>
  );
}

type Set = (change: Partial<Answers>) => void;

function WithWorkers({ answers, profile, credentials, networks, faults, set }: FormProps & { set: Set }) {
  const now = new Date();
  const setPool = (i: number, pool: Pool) =>
    set({ pools: answers.pools.map((each, j) => (i === j ? fit(pool, profile, answers.region, now) : each)) });
  return (
    <>
      <NativeSelect
        label={t('create.credentials')}
        description={credentials.length === 0 ? t('create.noCredentials') : undefined}
        value={answers.credentials}
        onChange={(event) => set({ credentials: event.currentTarget.value })}
        data={['', ...credentials]}
      />
      <Autocomplete
        label={t('create.networking')}
        value={answers.networking}
        onChange={(networking) => set({ networking })}
        data={networks}
        error={faults.networking && t('create.networkingRequired')}
        required
      />
      {answers.pools.map((pool, i) => (
        // A pool's name is typed here: its place is what it is known by.
        <PoolFields
          key={i}
          pool={pool}
          onChange={(changed) => setPool(i, changed)}
          profile={profile}
          region={answers.region}
          onRemove={() => set({ pools: answers.pools.filter((_, j) => i !== j) })}
        />
      ))}
      {faults.pools && <p role="alert">{t(`create.pools.${faults.pools}`)}</p>}
      <Button
        variant="default"
        onClick={() =>
          set({ pools: [...answers.pools, newPool(profile, answers.region, `pool-${answers.pools.length + 1}`, now)] })
        }
      >
        {t('create.addPool')}
      </Button>
    </>
  );
}

interface PoolFieldsProps {
  pool: Pool;
  onChange: (pool: Pool) => void;
  onRemove: () => void;
  profile: ProfileSpec;
  region: string;
}

function PoolFields({ pool, onChange, onRemove, profile, region }: PoolFieldsProps) {
  const now = new Date();
  const set = (change: Partial<Pool>) => onChange({ ...pool, ...change });
  const types = machineTypes(profile, region, pool.zones);
  const zones = zoneNames(profile, region);
  return (
    <Section
      title={t('create.pool', { name: pool.name })}
      actions={
        <Button variant="default" size="xs" onClick={onRemove}>
          {t('ui.remove')}
        </Button>
      }
    >
      <Stack gap="sm">
        <TextInput
          label={t('pools.name')}
          value={pool.name}
          onChange={(event) => set({ name: event.currentTarget.value })}
        />
        {zones.length > 0 && (
          <Checkbox.Group label={t('pools.zones')} value={pool.zones} onChange={(zones) => set({ zones })}>
            <Group mt="xs">
              {zones.map((zone) => (
                <Checkbox key={zone} value={zone} label={zone} />
              ))}
            </Group>
          </Checkbox.Group>
        )}
        <NativeSelect
          label={t('pools.type')}
          value={pool.type}
          onChange={(event) => set({ type: event.currentTarget.value })}
          data={types.map(({ name, cpu, memory, gpu }) => ({
            value: name,
            label: t('create.machine', { name, cpu, memory, gpu: gpu && gpu !== '0' ? `, ${gpu} GPU` : '' }),
          }))}
        />
        <Group grow>
          <NativeSelect
            label={t('pools.image')}
            value={pool.image}
            onChange={(event) => set({ image: event.currentTarget.value })}
            data={imagesFor(profile, pool.type, now)}
          />
          <NativeSelect
            label={t('pools.imageVersion')}
            value={pool.imageVersion}
            onChange={(event) => set({ imageVersion: event.currentTarget.value })}
            data={versionOptions(imageVersions(profile, pool.image, pool.type, now), now)}
          />
        </Group>
        <Group grow>
          <NumberInput
            label={t('pools.minimum')}
            min={0}
            value={pool.minimum}
            onChange={(value) => set({ minimum: Number(value) })}
          />
          <NumberInput
            label={t('pools.maximum')}
            min={0}
            value={pool.maximum}
            onChange={(value) => set({ maximum: Number(value) })}
          />
        </Group>
        {pool.volumeType && (
          <Group grow>
            <NativeSelect
              label={t('pools.volumeType')}
              value={pool.volumeType}
              onChange={(event) => set({ volumeType: event.currentTarget.value })}
              data={volumeTypes(profile, region, pool.zones).map(({ name }) => name)}
            />
            <TextInput
              label={t('pools.volumeSize')}
              value={pool.volumeSize}
              onChange={(event) => set({ volumeSize: event.currentTarget.value })}
            />
          </Group>
        )}
      </Stack>
    </Section>
  );
}

function Schedules({ answers, set }: { answers: Answers; set: Set }) {
  const { schedules } = answers;
  const add = () =>
    set({
      schedules: [
        ...schedules,
        { start: '0 19 * * 1-5', end: '0 7 * * 1-5', location: Intl.DateTimeFormat().resolvedOptions().timeZone },
      ],
    });
  return (
    <Section title={t('schedules.hibernation')}>
      {schedules.map((schedule, i) => (
        // Schedules have no names: their place is what they are known by.
        <ScheduleFields
          key={i}
          schedule={schedule}
          onChange={(change) =>
            set({ schedules: schedules.map((each, j) => (i === j ? { ...each, ...change } : each)) })
          }
          onRemove={() => set({ schedules: schedules.filter((_, j) => i !== j) })}
        />
      ))}
      <Button variant="default" onClick={add}>
        {t('schedules.add')}
      </Button>
    </Section>
  );
}
