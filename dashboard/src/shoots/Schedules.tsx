import { Button, Checkbox, Group, Stack, TextInput } from '@mantine/core';
import { useState } from 'react';

import { t } from '../i18n';
import { dayAndTime } from '../i18n/time';
import { Action, Offer } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Empty } from '../ui/Loading';
import { Facts, Section } from '../ui/Page';
import { ToneBadge } from '../ui/Tone';
import { useNow, When } from '../ui/When';
import { setMaintenance, setSchedules } from './actions';
import {
  calendarOf,
  clock,
  formatWindow,
  hasGoodLength,
  minutesOf,
  parseWindow,
  scheduleFault,
  type CalendarEntry,
} from './calendar';
import type { HibernationSchedule, Shoot } from './types';

const days = 7;

/** Schedules are when the shoot sleeps and is maintained, with what comes in the next days, in the viewer's zone. */
export function Schedules({ shoot, mayChange }: { shoot: Shoot; mayChange: boolean }) {
  const { spec, status } = shoot;
  const now = useNow();
  return (
    <Section
      title={t('schedules.title')}
      actions={
        <Offer may={mayChange} who="projectAdmin">
          <Action
            label={t('schedules.hibernation')}
            dialog={(close) => <EditSchedules shoot={shoot} onClose={close} />}
          />
          <Action
            label={t('schedules.maintenance')}
            dialog={(close) => <EditMaintenance shoot={shoot} onClose={close} />}
          />
        </Offer>
      }
    >
      <Facts
        facts={[
          [t('schedules.autoVersion'), t(spec.maintenance?.autoUpdate?.kubernetesVersion ? 'ui.yes' : 'ui.no')],
          [t('schedules.autoImage'), t(spec.maintenance?.autoUpdate?.machineImageVersion ? 'ui.yes' : 'ui.no')],
          [t('schedules.last'), status?.lastMaintenance && <LastMaintenance last={status.lastMaintenance} />],
        ]}
      />
      <Calendar entries={calendarOf(spec, now, days)} />
    </Section>
  );
}

function LastMaintenance({ last }: { last: NonNullable<NonNullable<Shoot['status']>['lastMaintenance']> }) {
  return (
    <>
      <ToneBadge tone={last.state === 'Succeeded' ? 'good' : last.state === 'Failed' ? 'bad' : 'busy'}>
        {last.state}
      </ToneBadge>{' '}
      <When time={last.triggeredTime} />: {last.description} {last.failureReason}
    </>
  );
}

/** Calendar lists what is to happen, day by day. */
export function Calendar({ entries }: { entries: CalendarEntry[] }) {
  if (entries.length === 0) return <Empty>{t('schedules.nothing', { days })}</Empty>;
  return (
    <ul className="calendar" aria-label={t('schedules.calendar', { days })}>
      {entries.map(({ kind, begin, end }) => (
        <li key={`${kind} ${begin.toISOString()}`}>
          <time dateTime={begin.toISOString()}>{dayAndTime(begin)}</time>
          <span>
            {t(`calendar.${kind}`)}
            {end && ` – ${dayAndTime(end)}`}
          </span>
        </li>
      ))}
    </ul>
  );
}

const ownZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

function EditSchedules({ shoot, onClose }: { shoot: Shoot; onClose: () => void }) {
  const [schedules, setAll] = useState<HibernationSchedule[]>(shoot.spec.hibernation?.schedules ?? []);
  const set = (i: number, change: HibernationSchedule) =>
    setAll(schedules.map((each, j) => (i === j ? { ...each, ...change } : each)));
  const isGood = schedules.every((schedule) => scheduleFault(schedule) === undefined);
  return (
    <Dialog
      title={t('schedules.hibernation')}
      submit={t('ui.save')}
      onSubmit={() => setSchedules(shoot, schedules)}
      onClose={onClose}
      disabled={!isGood}
      size="lg"
    >
      <p>{t('schedules.cronHelp')}</p>
      {schedules.map((schedule, i) => (
        // Schedules have no names: their place is what they are known by.
        <ScheduleFields
          key={i}
          schedule={schedule}
          onChange={(change) => set(i, change)}
          onRemove={() => setAll(schedules.filter((_, j) => i !== j))}
        />
      ))}
      <Button
        variant="default"
        onClick={() => setAll([...schedules, { start: '0 19 * * 1-5', end: '0 7 * * 1-5', location: ownZone() }])}
      >
        {t('schedules.add')}
      </Button>
      <Calendar
        entries={calendarOf({ ...shoot.spec, maintenance: undefined, hibernation: { schedules } }, new Date(), days)}
      />
    </Dialog>
  );
}

interface ScheduleFieldsProps {
  schedule: HibernationSchedule;
  onChange: (change: HibernationSchedule) => void;
  onRemove: () => void;
}

/** ScheduleFields are those of one schedule; also in the form for new shoots. */
export function ScheduleFields({ schedule, onChange, onRemove }: ScheduleFieldsProps) {
  const fault = scheduleFault(schedule);
  return (
    <Group align="start" role="group" aria-label={t('schedules.one')}>
      <TextInput
        label={t('schedules.sleep')}
        value={schedule.start ?? ''}
        error={fault === 'start' || fault === 'empty' ? t('schedules.cronForm') : undefined}
        onChange={(event) => onChange({ start: event.currentTarget.value || undefined })}
      />
      <TextInput
        label={t('schedules.wake')}
        value={schedule.end ?? ''}
        error={fault === 'end' && t('schedules.cronForm')}
        onChange={(event) => onChange({ end: event.currentTarget.value || undefined })}
      />
      <TextInput
        label={t('schedules.zone')}
        value={schedule.location ?? ''}
        error={fault === 'location' && t('schedules.zoneForm')}
        onChange={(event) => onChange({ location: event.currentTarget.value || undefined })}
      />
      <Button variant="default" mt="xl" onClick={onRemove}>
        {t('ui.remove')}
      </Button>
    </Group>
  );
}

function EditMaintenance({ shoot, onClose }: { shoot: Shoot; onClose: () => void }) {
  const { maintenance } = shoot.spec;
  const present = parseWindow(maintenance?.timeWindow) ?? {
    begin: 22 * 60,
    end: 23 * 60,
    offset: -new Date().getTimezoneOffset(),
  };
  const [begin, setBegin] = useState(clock(present.begin));
  const [end, setEnd] = useState(clock(present.end));
  const [kubernetesVersion, setVersion] = useState(maintenance?.autoUpdate?.kubernetesVersion ?? true);
  const [machineImageVersion, setImage] = useState(maintenance?.autoUpdate?.machineImageVersion ?? true);
  const window = { begin: minutesOf(begin) ?? -1, end: minutesOf(end) ?? -1, offset: present.offset };
  const isGood = window.begin >= 0 && window.end >= 0 && hasGoodLength(window);
  const zone = formatWindow({ ...window, begin: 0, end: 0 }).begin.slice(6);
  const submit = () =>
    setMaintenance(shoot, { timeWindow: formatWindow(window), autoUpdate: { kubernetesVersion, machineImageVersion } });
  return (
    <Dialog
      title={t('schedules.maintenance')}
      submit={t('ui.save')}
      onSubmit={submit}
      onClose={onClose}
      disabled={!isGood}
    >
      <Stack>
        <Group align="start">
          <TextInput
            type="time"
            label={t('schedules.begin', { zone })}
            value={begin}
            onChange={(event) => setBegin(event.currentTarget.value)}
          />
          <TextInput
            type="time"
            label={t('schedules.end', { zone })}
            value={end}
            onChange={(event) => setEnd(event.currentTarget.value)}
            error={!isGood && t('schedules.length')}
          />
        </Group>
        <Checkbox
          label={t('schedules.autoVersion')}
          checked={kubernetesVersion}
          onChange={(event) => setVersion(event.currentTarget.checked)}
        />
        <Checkbox
          label={t('schedules.autoImage')}
          checked={machineImageVersion}
          onChange={(event) => setImage(event.currentTarget.checked)}
        />
      </Stack>
    </Dialog>
  );
}
