// Cron expressions of five fields, with the meaning that the garden gives them (pkg/apis/cron).

interface Field {
  values: Set<number>;
  any: boolean;
}

export interface Cron {
  minute: Field;
  hour: Field;
  day: Field;
  month: Field;
  weekday: Field;
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** parseCron reads an expression; undefined if it is none. A Sunday may be a 7 as well. */
export function parseCron(text: string): Cron | undefined {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== 5) return undefined;
  const [minute, hour, day, month, weekday] = [
    parseField(parts[0], 0, 59),
    parseField(parts[1], 0, 23),
    parseField(parts[2], 1, 31),
    parseField(parts[3], 1, 12, months, 1),
    parseField(parts[4], 0, 7, weekdays),
  ];
  if (!minute || !hour || !day || !month || !weekday) return undefined;
  if (weekday.values.has(7)) weekday.values.add(0);
  return { minute, hour, day, month, weekday };
}

function parseField(text = '', least: number, most: number, names: string[] = [], first = 0): Field | undefined {
  const values = new Set<number>();
  let any = false;
  for (const item of text.toLowerCase().split(',')) {
    const match = /^(\*|\?|\w+)(?:-(\w+))?(?:\/(\d+))?$/.exec(item);
    if (!match) return undefined;
    const [, from = '', to, step] = match;
    const everything = from === '*' || from === '?';
    any ||= everything;
    const begin = everything ? least : valueOf(from, names, first);
    const end = everything || (step && !to) ? most : valueOf(to ?? from, names, first);
    const by = Number(step ?? 1);
    if (begin < least || end > most || begin > end || by < 1 || Number.isNaN(begin + end)) return undefined;
    for (let value = begin; value <= end; value += by) values.add(value);
  }
  return { values, any };
}

function valueOf(text: string, names: string[], first: number): number {
  const named = names.indexOf(text);
  if (named >= 0) return named + first;
  return /^\d+$/.test(text) ? Number(text) : Number.NaN;
}

/** Wall is a time on a clock on the wall. */
interface Wall {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
}

function falls(cron: Cron, { month, day }: Wall, weekday: number): boolean {
  if (!cron.month.values.has(month)) return false;
  const [byDay, byWeekday] = [cron.day.values.has(day), cron.weekday.values.has(weekday)];
  // Days of the month and of the week are alternatives where both are told.
  return cron.day.any || cron.weekday.any ? byDay && byWeekday : byDay || byWeekday;
}

function wallAt(time: Date, zone: string): Wall {
  const parts = new Intl.DateTimeFormat('en-GB', {
    timeZone: zone,
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    hourCycle: 'h23',
  }).formatToParts(time);
  const of = (type: string) => Number(parts.find((part) => part.type === type)?.value);
  return { year: of('year'), month: of('month'), day: of('day'), hour: of('hour'), minute: of('minute') };
}

const asUTC = ({ year, month, day, hour, minute }: Wall) => Date.UTC(year, month - 1, day, hour, minute);

/** timeOf is when a clock in a zone shows a time. One that is left out in spring is an hour later. */
export function timeOf(wall: Wall, zone: string): Date {
  const wanted = asUTC(wall);
  let time = wanted;
  for (let i = 0; i < 2; i++) time += wanted - asUTC(wallAt(new Date(time), zone));
  return new Date(time);
}

/** occurrences are the times of an expression in a zone, after a time and for some days. */
export function occurrences(cron: Cron, zone: string, after: Date, days: number): Date[] {
  const until = after.getTime() + days * 86_400_000;
  const today = wallAt(after, zone);
  const times: Date[] = [];
  for (let ahead = 0; ahead <= days + 1; ahead++) {
    const date = new Date(Date.UTC(today.year, today.month - 1, today.day + ahead));
    const wall = { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1, day: date.getUTCDate() };
    if (!falls(cron, { ...wall, hour: 0, minute: 0 }, date.getUTCDay())) continue;
    for (const hour of cron.hour.values) {
      for (const minute of cron.minute.values) times.push(timeOf({ ...wall, hour, minute }, zone));
    }
  }
  return times.filter((time) => time > after && time.getTime() <= until).sort((a, b) => a.getTime() - b.getTime());
}

/** isZone tells whether a time zone is known. */
export function isZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
    return true;
  } catch {
    return false;
  }
}
