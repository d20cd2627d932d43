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
  signal?: AbortSignal;
}

let csrfToken = '';
let onUnauthorized: () => void = () => undefined;
let renewToken: () => Promise<void> = async () => undefined;

/** setCsrfToken is called with each session that is read. */
export function setCsrfToken(token: string) {
  csrfToken = token;
}

/** onSessionEnd tells what to do when the server knows no session any more, and how to get a token of a new one. */
export function onSessionEnd(ended: () => void, renew: () => Promise<void>) {
  onUnauthorized = ended;
  renewToken = renew;
}

/** request sends one request and reads the answer. It is tried once more if only the CSRF token was too old. */
export async function request<T>(path: string, options: Options = {}): Promise<T> {
  try {
    return await send<T>(path, options);
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'CSRF') throw error;
    await renewToken();
    return send<T>(path, options);
  }
}

async function send<T>(path: string, options: Options): Promise<T> {
  const response = await reach(path, options);
  const text = await response.text();
  if (response.ok) return (text === '' ? undefined : JSON.parse(text)) as T;
  const error = new ApiError(statusOf(response.status, text));
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
