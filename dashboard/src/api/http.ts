// Requests to the dashboard's server. Errors come as Status of Kubernetes, whoever made them.
import type { Status } from './types';

/** ApiError is an answer of 4xx or 5xx, or no answer at all (code 0). */
export class ApiError extends Error {
  readonly status: Status;

  constructor(status: Status) {
    super(status.message ?? status.reason ?? `HTTP ${status.code ?? 0}`);
    this.name = 'ApiError';
    this.status = status;
  }

  get code(): number {
    return this.status.code ?? 0;
  }

  get reason(): string {
    return this.status.reason ?? '';
  }
}

export interface Options {
  method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  body?: unknown;
  /** text is sent as it is, with its type; body is sent as JSON. */
  text?: string;
  contentType?: string;
  /** Whether the answer is text, and not JSON. */
  isText?: boolean;
  signal?: AbortSignal;
}

let csrfToken = '';
let user = '';
let onUnauthorized: () => void = () => undefined;
let renewToken: () => Promise<void> = async () => undefined;

/** setSession is called with each session that is read. */
export function setSession(session: { user: string; csrfToken: string }) {
  ({ user, csrfToken } = session);
}

/** currentUser is whose session was read last; empty before there was one. */
export const currentUser = () => user;

/** onSessionEnd tells what to do when the server knows no session any more, and how to get a token of a new one. */
export function onSessionEnd(ended: () => void, renew: () => Promise<void>) {
  onUnauthorized = ended;
  renewToken = renew;
}

/**
 * request sends one request and reads the answer. It is tried once more if only the CSRF token was too old; never in
 * the name of somebody who logged in in another tab meanwhile.
 */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  const before = user;
  try {
    return await send<T>(path, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'CSRF') throw error;
    await renewToken();
    if (user !== before) throw new ApiError({ code: 401, reason: otherUser });
    return send<T>(path, options);
  }
}

/** userHeader is in each answer of a session: its user, percent-encoded. */
const userHeader = 'X-Trellis-User';
/** otherUser is the reason why an answer to somebody else is not taken. */
const otherUser = 'OtherUser';

/** isOfOther tells whether an answer is to somebody else than whose session was read. */
function isOfOther(path: string, headers: Headers): boolean {
  const of = headers.get(userHeader);
  // What tells of a session is how one learns of a change.
  if (of === null || user === '' || path === '/api/session' || path.startsWith('/api/login/')) return false;
  return decodeURIComponent(of) !== user;
}

async function send<T>(path: string, options: Options): Promise<T> {
  const response = await answered(path, options);
  const text = await response.text();
  if (options.isText) return text as T;
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

/** follow gives what is answered piece by piece, as it comes, until the server ends it. */
export async function follow(path: string, take: (text: string) => void, signal: AbortSignal) {
  const { body } = await answered(path, { signal });
  const decoder = new TextDecoder();
  const reader = body?.getReader();
  try {
    for (let piece = await reader?.read(); piece && !piece.done; piece = await reader?.read()) {
      take(decoder.decode(piece.value, { stream: true }));
    }
  } catch (cause) {
    if (signal.aborted) throw cause;
    throw new ApiError({ code: 0, reason: 'Unreachable' });
  }
}

/** answered is an answer that is good, and meant for whose session was read. */
async function answered(path: string, options: Options): Promise<Response> {
  const response = await reach(path, options);
  if (isOfOther(path, response.headers)) {
    void response.body?.cancel();
    renewToken().catch(() => undefined);
    throw new ApiError({ code: 401, reason: otherUser });
  }
  if (response.ok) return response;
  const error = new ApiError(statusOf(response.status, await response.text()));
  if (response.status === 401 && !path.startsWith('/api/login/')) onUnauthorized();
  throw error;
}

async function reach(path: string, options: Options): Promise<Response> {
  const method = options.method ?? 'GET';
  const headers: Record<string, string> = { Accept: 'application/json' };
  if (method !== 'GET') {
    headers['Content-Type'] = options.contentType ?? 'application/json';
    headers['X-CSRF-Token'] = csrfToken;
  }
  const body = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  try {
    return await fetch(path, { method, headers, body, signal: options.signal, credentials: 'same-origin' });
  } catch (cause) {
    if (options.signal?.aborted) throw cause;
    throw new ApiError({ code: 0, reason: 'Unreachable' });
  }
}

/** statusOf reads the Status in an answer; what is none, such as a proxy's page, becomes one. */
export function statusOf(code: number, text: string): Status {
  try {
    const status = JSON.parse(text) as Status;
    if (status.kind === 'Status') return { ...status, code: status.code ?? code };
  } catch {
    // Not JSON: whoever answered is not the server.
  }
  return { kind: 'Status', code, reason: 'Unknown', message: text.slice(0, 300) };
}
