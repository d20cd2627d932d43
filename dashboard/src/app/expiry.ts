/** expiresSoon tells whether a session ends within five minutes. */
export function expiresSoon(expires: string, now: Date): boolean {
  return new Date(expires).getTime() - now.getTime() <= 5 * 60_000;
}
