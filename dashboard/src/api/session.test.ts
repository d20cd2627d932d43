import { QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { currentUser, request } from './http';
import { logIn, sessionKey, watchSession } from './session';

const session = (user: string) => ({ user, csrfToken: `token of ${user}`, expires: '', login: 'token' });

/** A server that has one session, as the browser has one cookie. */
function server() {
  const state = { user: 'alice', asked: [] as string[] };
  vi.stubGlobal('fetch', (path: string, { method = 'GET', headers }: RequestInit) => {
    const token = (headers as Record<string, string>)['X-CSRF-Token'];
    const isStale = token !== undefined && token !== `token of ${state.user}` && !path.startsWith('/api/login/');
    state.asked.push(`${method} ${path}${isStale ? ' refused' : ''}`);
    const body = isStale ? { kind: 'Status', reason: 'CSRF' } : path === '/api/data' ? {} : session(state.user);
    return Promise.resolve(
      new Response(JSON.stringify(body), {
        status: isStale ? 403 : 200,
        headers: { 'X-Trellis-User': encodeURIComponent(state.user) },
      }),
    );
  });
  return state;
}

describe('a tab in which another user is logged in by another tab', () => {
  let client: QueryClient;
  const forgotten = vi.fn();

  beforeEach(async () => {
    server();
    client = new QueryClient();
    watchSession(client, forgotten);
    await logIn(client, { token: 'of alice' });
    client.setQueryData(['projects'], ['of alice']);
    client.setQueryData(['config'], { version: '1' });
    forgotten.mockClear();
  });
  afterEach(() => vi.unstubAllGlobals());

  const becomesMallory = () =>
    vi.waitFor(() => expect(client.getQueryData(sessionKey)).toMatchObject({ user: 'mallory' }));
  const hasNothingOfAlice = () => {
    expect(client.getQueryData(['projects'])).toBeUndefined();
    expect(client.getQueryData(['config'])).toEqual({ version: '1' });
    expect(forgotten).toHaveBeenCalledOnce();
    expect(currentUser()).toBe('mallory');
  };

  it('takes no answer that is not its user’s, and becomes that of the other', async () => {
    server().user = 'mallory';
    await expect(request('/api/data')).rejects.toMatchObject({ code: 401, reason: 'OtherUser' });
    await becomesMallory();
    hasNothingOfAlice();
  });

  // What one user typed is not to be done in the name, and with the rights, of another.
  it('writes nothing in the name of the other', async () => {
    const state = server();
    state.user = 'mallory';
    await expect(request('/api/data', { method: 'POST', body: {} })).rejects.toMatchObject({ reason: 'OtherUser' });
    await becomesMallory();
    expect(state.asked.filter((each) => each.startsWith('POST'))).toEqual(['POST /api/data refused']);
    hasNothingOfAlice();
  });

  it('hears of it from the other tab at once', async () => {
    server().user = 'mallory';
    const other = new BroadcastChannel('trellis-session');
    other.postMessage('mallory');
    await becomesMallory();
    hasNothingOfAlice();
    other.close();
  });

  it('keeps what it has when the same user logs in again', async () => {
    client.setQueryData(sessionKey, null);
    await logIn(client, { token: 'of alice' });
    expect(client.getQueryData(['projects'])).toEqual(['of alice']);
    expect(forgotten).not.toHaveBeenCalled();
  });
});
