// Times in the viewer's zone and language.
import { currentLanguage } from '.';

const units: [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

const locale = () => (currentLanguage() === 'zh' ? 'zh-CN' : 'en-GB');

/** relative is how long ago, or ahead, a time is, in its largest unit. */
export function relative(time: Date, now: Date): string {
  const seconds = (time.getTime() - now.getTime()) / 1000;
  const format = new Intl.RelativeTimeFormat(locale(), { numeric: 'auto' });
  const unit = units.find(([, length]) => Math.abs(seconds) >= length);
  if (!unit) return format.format(Math.trunc(seconds), 'second');
  return format.format(Math.trunc(seconds / unit[1]), unit[0]);
}

/** absolute is a time with date, time and zone. */
export function absolute(time: Date, zone?: string): string {
  return new Intl.DateTimeFormat(locale(), {
    dateStyle: 'medium',
    timeStyle: 'long',
    timeZone: zone,
  }).format(time);
}

export function date(time: Date): string {
  return new Intl.DateTimeFormat(locale(), { dateStyle: 'medium' }).format(time);
}

/** dayAndTime is short, for calendars. */
export function dayAndTime(time: Date): string {
  return new Intl.DateTimeFormat(locale(), {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
  }).format(time);
}

/** lasting is how long something takes, in its largest unit. */
export function lasting(seconds: number): string {
  const whole = Math.max(0, Math.trunc(seconds));
  const [unit, length] = units.find(([, length]) => whole >= length) ?? ['second', 1];
  const format = new Intl.NumberFormat(locale(), { style: 'unit', unit, unitDisplay: 'long' });
  return format.format(Math.trunc(whole / length));
}

export function number(value: number): string {
  return new Intl.NumberFormat(locale(), { maximumFractionDigits: 1 }).format(value);
}
