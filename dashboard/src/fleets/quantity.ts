// Quantities of Kubernetes, such as 250m or 16Gi.

const suffixes: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** parseQuantity is the number that a quantity stands for; undefined if it is none. */
export function parseQuantity(text: string | number | undefined): number | undefined {
  const match = /^([+-]?\d*\.?\d+)(?:[eE]([+-]?\d+)|([numkMGTPE]|[KMGTPE]i)?)$/.exec(String(text ?? ''));
  if (!match) return undefined;
  const [, digits, exponent, suffix = ''] = match;
  return exponent === undefined ? Number(digits) * (suffixes[suffix] ?? 1) : Number(digits) * 10 ** Number(exponent);
}

/** inUnitOf writes a number in the unit of a quantity: half of a Gi as 0.5Gi beside 4Gi. */
export function inUnitOf(amount: number, quantity: string): string {
  const unit = /[A-Za-z]*$/.exec(quantity)?.[0] ?? '';
  return `${Math.round((100 * amount) / (suffixes[unit] ?? 1)) / 100}${unit}`;
}

/** shareOf is how much of what can be given away is given, from 0 to 100; undefined if that is not known. */
export function shareOf(room: { allocatable?: string; allocated?: string } | undefined): number | undefined {
  const [all, used] = [parseQuantity(room?.allocatable), parseQuantity(room?.allocated ?? '0')];
  if (!all || used === undefined) return undefined;
  return Math.min(100, Math.round((100 * used) / all));
}
