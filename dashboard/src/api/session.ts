// Who is logged in.
import { useQuery, type QueryClient } from '@tanstack/react-query';

import { ApiError, onSessionEnd, request, setCsrfToken } from './http';

export interface Session {
  user: string;
  groups?: string[];
  expires: string;
  csrfToken: string;
  login: 'oidc' | 'token' | 'kubeconfig';
}

export interface Config {
  version: string;
  garden: string;
  login: { token: boolean; kubeconfig: boolean; oidc?: { name: string; title: string }[] };
  terminal: boolean;
}

export const sessionKey = ['session'];

/** readSession is null for who is not logged in. */
async function readSession(): Promise<Session | null> {
  try {
    return accept(await request<Session>('/api/session'));
  } catch (error) {
    if (error instanceof ApiError && error.code === 401) return null;
    throw error;
  }
}

function accept(session: Session): Session {
  setCsrfToken(session.csrfToken);
  return session;
}

export function useSession() {
  return useQuery({ queryKey: sessionKey, queryFn: readSession, staleTime: Infinity, refetchOnWindowFocus: true });
}

export function useConfig() {
  return useQuery({ queryKey: ['config'], queryFn: () => request<Config>('/api/config'), staleTime: Infinity });
}

/** watchSession has an answer of 401 end the session that the pages know. */
export function watchSession(client: QueryClient) {
  onSessionEnd(
    () => client.setQueryData(sessionKey, null),
    async () => {
      client.setQueryData(sessionKey, await readSession());
    },
  );
}

export async function logIn(client: QueryClient, credential: { token: string } | { kubeconfig: string }) {
  const way = 'token' in credential ? 'token' : 'kubeconfig';
  const session = await request<Session>(`/api/login/${way}`, { method: 'POST', body: credential });
  client.setQueryData(sessionKey, accept(session));
}

/** logOut forgets all that was read, as somebody else may log in here next. */
export async function logOut(client: QueryClient) {
  await request('/api/logout', { method: 'POST', body: {} });
  client.clear();
  client.setQueryData(sessionKey, null);
}

/** loggedInPath tells who logged in beside a page whose session had ended to go back to it. */
export const loggedInPath = '/login/done';

/** safeNext is where to go after the log-in: a path of this site, and nothing else. */
export function safeNext(next: string | null): string {
  if (next === loggedInPath) return next;
  if (!next || !/^\/(?![/\\])/.test(next) || next.startsWith('/login')) return '/';
  return next;
}

/** oidcAddress begins a log-in by an issuer. */
export function oidcAddress(name: string, next: string): string {
  return `/api/login/oidc?${new URLSearchParams({ name, next })}`;
}
