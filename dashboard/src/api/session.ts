// Who is logged in.
import { useQuery, type QueryClient } from '@tanstack/react-query';

import { ApiError, onSessionEnd, request, setSession } from './http';

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

/** ownUser is whose data the pages have; it stays when the session ends, as their pages do. */
let ownUser: string | undefined;
let onOtherUser: () => void = () => undefined;
let tabs: BroadcastChannel | undefined;

function accept(session: Session): Session {
  const isOther = ownUser !== undefined && ownUser !== session.user;
  const isNew = ownUser !== session.user;
  ownUser = session.user;
  setSession(session);
  if (isOther) onOtherUser();
  if (isNew) tabs?.postMessage(session.user);
  return session;
}

export function useSession() {
  return useQuery({ queryKey: sessionKey, queryFn: readSession, staleTime: Infinity, refetchOnWindowFocus: true });
}

export function useConfig() {
  return useQuery({ queryKey: ['config'], queryFn: () => request<Config>('/api/config'), staleTime: Infinity });
}

/** Queries of no user. */
const ofAll = new Set(['session', 'config']);

/**
 * watchSession has an answer of 401 end the session that the pages know. The session is the browser's and not the tab's:
 * when somebody else logs in in another one, all that was read for who was here before is forgotten, here too.
 */
export function watchSession(client: QueryClient, forget: () => void) {
  const readAgain = async () => {
    const session = await readSession();
    client.setQueryData(sessionKey, session);
  };
  onSessionEnd(() => client.setQueryData(sessionKey, null), readAgain);
  onOtherUser = () => {
    client.removeQueries({ predicate: ({ queryKey: [name] }) => !ofAll.has(String(name)) });
    client.getMutationCache().clear();
    forget();
  };
  if (typeof BroadcastChannel === 'undefined') return;
  tabs?.close();
  tabs = new BroadcastChannel('trellis-session');
  tabs.onmessage = ({ data: user }) => {
    const session = client.getQueryData<Session | null>(sessionKey);
    // Who has no page open yet, or shows this user already, has nothing to do.
    if (session !== undefined && session?.user !== user) void readAgain().catch(() => undefined);
  };
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
