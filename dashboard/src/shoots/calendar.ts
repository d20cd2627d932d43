// When a shoot sleeps, wakes and is maintained.
import { isZone, occurrences, parseCron } from './cron';
import type { HibernationSchedule, ShootSpec } from './types';

export interface CalendarEntry {
  kind: 'sleep' | 'wake' | 'maintenance';
  begin: Date;
  end?: Date;
}

/** Window is a maintenance window: minutes since midnight of a zone that is some minutes ahead of UTC. */
export interface Window {
  begin: number;
  end: number;
  offset: number;
}

/** parseWindow reads HHMMSS+hhmm. */
export function parseWindow(window: { begin: string; end: string } | undefined): Window | undefined {
  const [begin, end] = [parseTime(window?.begin), parseTime(window?.end)];
  if (!begin || !end) return undefined;
  return { begin: begin.minutes, end: mod(end.minutes - end.offset + begin.offset, 1440), offset: begin.offset };
}

function parseTime(text = '') {
  const match = /^(\d\d)(\d\d)\d\d([+-])(\d\d)(\d\d)$/.exec(text);
  if (!match) return undefined;
  const [, hour, minute, sign, offsetHours, offsetMinutes] = match;
  const offset = Number(offsetHours) * 60 + Number(offsetMinutes);
  return { minutes: Number(hour) * 60 + Number(minute), offset: sign === '-' ? -offset : offset };
}

const mod = (value: number, by: number) => ((value % by) + by) % by;
const two = (value: number) => String(value).padStart(2, '0');

/** formatWindow writes a window as a Shoot has it. */
export function formatWindow({ begin, end, offset }: Window): { begin: string; end: string } {
  const zone = `${offset < 0 ? '-' : '+'}${two(Math.floor(Math.abs(offset) / 60))}${two(Math.abs(offset) % 60)}`;
  const time = (minutes: number) => `${two(Math.floor(minutes / 60))}${two(minutes % 60)}00${zone}`;
  return { begin: time(begin), end: time(end) };
}

/** clock and minutesOf go between minutes since midnight and HH:MM. */
export const clock = (minutes: number) => `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;

export function minutesOf(text: string): number | undefined {
  const match = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(text);
  return match ? Number(match[1]) * 60 + Number(match[2]) : undefined;
}

/** windowLength is how many minutes a window lasts. */
export const windowLength = ({ begin, end }: Window) => mod(end - begin, 1440) || 1440;

/** hasGoodLength: a window lasts from half an hour to six hours. */
export const hasGoodLength = (window: Window) => windowLength(window) >= 30 && windowLength(window) <= 360;

function windowsOf(window: Window, after: Date, days: number): CalendarEntry[] {
  const length = windowLength(window) * 60_000;
  const midnight = Date.UTC(after.getUTCFullYear(), after.getUTCMonth(), after.getUTCDate());
  return Array.from({ length: days + 3 }, (_, i) => midnight + (i - 1) * 86_400_000)
    .map((day) => day + (window.begin - window.offset) * 60_000)
    .filter((begin) => begin + length > after.getTime() && begin <= after.getTime() + days * 86_400_000)
    .map((begin) => ({ kind: 'maintenance', begin: new Date(begin), end: new Date(begin + length) }));
}

function times(
  kind: 'sleep' | 'wake',
  text: string | undefined,
  zone: string,
  after: Date,
  days: number,
): CalendarEntry[] {
  const cron = text ? parseCron(text) : undefined;
  if (!cron || !isZone(zone)) return [];
  return occurrences(cron, zone, after, days).map((begin) => ({ kind, begin }));
}

/** calendarOf is what is to happen in the next days, in its order. */
export function calendarOf(spec: ShootSpec, after: Date, days: number): CalendarEntry[] {
  const window = parseWindow(spec.maintenance?.timeWindow);
  return [
    ...(window ? windowsOf(window, after, days) : []),
    ...(spec.hibernation?.schedules ?? []).flatMap(({ start, end, location }) => [
      ...times('sleep', start, location ?? 'UTC', after, days),
      ...times('wake', end, location ?? 'UTC', after, days),
    ]),
  ].sort((a, b) => a.begin.getTime() - b.begin.getTime());
}

/** scheduleFault is the field of a schedule that the garden would refuse; undefined if it is good. */
export function scheduleFault({
  start,
  end,
  location,
}: HibernationSchedule): 'start' | 'end' | 'location' | 'empty' | undefined {
  if (!start && !end) return 'empty';
  if (start && !parseCron(start)) return 'start';
  if (end && !parseCron(end)) return 'end';
  return location && !isZone(location) ? 'location' : undefined;
}
