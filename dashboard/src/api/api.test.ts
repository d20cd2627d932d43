import { afterEach, describe, expect, it, vi } from 'vitest';

import { ApiError, follow, onSessionEnd, request, setSession, statusOf } from './http';
import { amend } from './objects';
import { pathOf, resources, withQuery } from './paths';
import { batches, wireCheck } from './rights';
import { oidcAddress, safeNext } from './session';

describe('pathOf', () => {
  it.each([
    ['/api/garden/apis/core.gardener.cloud/v1beta1/shoots', pathOf('garden', resources.shoots)],
    [
      '/api/garden/apis/core.gardener.cloud/v1beta1/namespaces/garden-a/shoots/one',
      pathOf('garden', resources.shoots, { namespace: 'garden-a', name: 'one' }),
    ],
    [
      '/api/garden/api/v1/namespaces/a/serviceaccounts/b/token',
      pathOf('garden', resources.serviceaccounts, { namespace: 'a', name: 'b', subresource: 'token' }),
    ],
    ['/api/shoot/garden-a/one/api/v1/nodes', pathOf('shoot/garden-a/one', resources.nodes)],
    [
      '/api/garden/api/v1/namespaces/..%2F..%2Fadmin/secrets/%3Fa%23',
      pathOf('garden', resources.secrets, { namespace: '../../admin', name: '?a#' }),
    ],
  ])('%s', (want, got) => expect(got).toBe(want));
});

describe('withQuery', () => {
  it('leaves out what is empty', () => {
    expect(withQuery('/a', { one: 1, none: undefined, empty: '', text: 'a&b' })).toBe('/a?one=1&text=a%26b');
    expect(withQuery('/a', {})).toBe('/a');
  });
});

describe('safeNext leads to this site only', () => {
  it.each([
    ['/projects?q=a', '/projects?q=a'],
    ['/login/done', '/login/done'],
    [null, '/'],
    ['', '/'],
    ['https://evil.example', '/'],
    ['//evil.example', '/'],
    ['/\\evil.example', '/'],
    ['javascript:alert(1)', '/'],
    ['/login?next=/login', '/'],
  ])('%s', (next, want) => expect(safeNext(next)).toBe(want));

  it('is part of an address', () =>
    expect(oidcAddress('a b', '/x?y=1')).toBe('/api/login/oidc?name=a+b&next=%2Fx%3Fy%3D1'));
});

describe('rights', () => {
  it('are asked for in batches', () => {
    expect(batches([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3, 4], [5]]);
    expect(batches([], 2)).toEqual([]);
  });

  it('name what is absent by empty text', () => {
    expect(wireCheck({ verb: 'list', resource: resources.seeds })).toEqual({
      verb: 'list',
      group: 'core.gardener.cloud',
      resource: 'seeds',
      subresource: '',
      namespace: '',
      name: '',
    });
  });
});

describe('statusOf', () => {
  it.each([
    ['{"kind":"Status","code":409,"reason":"Conflict"}', { kind: 'Status', code: 409, reason: 'Conflict' }],
    ['{"kind":"Status","reason":"Conflict"}', { kind: 'Status', code: 502, reason: 'Conflict' }],
    ['<html>Bad Gateway</html>', { kind: 'Status', code: 502, reason: 'Unknown', message: '<html>Bad Gateway</html>' }],
    ['null', { kind: 'Status', code: 502, reason: 'Unknown', message: 'null' }],
  ])('%s', (text, want) => expect(statusOf(502, text)).toEqual(want));
});

describe('request', () => {
  afterEach(() => vi.unstubAllGlobals());

  const answer = (code: number, body: unknown) => new Response(JSON.stringify(body), { status: code });
  const answers = (...list: Response[]) => {
    const fetched = vi.fn<typeof fetch>();
    list.forEach((response) => fetched.mockResolvedValueOnce(response));
    vi.stubGlobal('fetch', fetched);
    return fetched;
  };
  const headersOf = (fetched: ReturnType<typeof answers>, call: number) =>
    fetched.mock.calls[call]?.[1]?.headers as Record<string, string>;

  it('carries the token in writes only', async () => {
    setSession({ user: 'alice', csrfToken: 'one' });
    const fetched = answers(answer(200, {}), answer(200, {}));
    await request('/api/a');
    await request('/api/a', { method: 'POST', body: {} });
    expect(headersOf(fetched, 0)['X-CSRF-Token']).toBeUndefined();
    expect(headersOf(fetched, 1)['X-CSRF-Token']).toBe('one');
  });

  it('is tried once more with a new token', async () => {
    setSession({ user: 'alice', csrfToken: 'old' });
    onSessionEnd(
      () => undefined,
      () => Promise.resolve(setSession({ user: 'alice', csrfToken: 'new' })),
    );
    const fetched = answers(answer(403, { kind: 'Status', reason: 'CSRF' }), answer(200, { ok: true }));
    await expect(request('/api/a', { method: 'POST' })).resolves.toEqual({ ok: true });
    expect(headersOf(fetched, 1)['X-CSRF-Token']).toBe('new');
  });

  it('tells the end of the session, but not of a log-in that failed', async () => {
    const ended = vi.fn();
    onSessionEnd(ended, () => Promise.resolve());
    answers(
      answer(401, { kind: 'Status', reason: 'Unauthorized' }),
      answer(401, { kind: 'Status', reason: 'Unauthorized' }),
    );
    await expect(request('/api/login/token', { method: 'POST' })).rejects.toThrow(ApiError);
    expect(ended).not.toHaveBeenCalled();
    await expect(request('/api/projects')).rejects.toThrow(ApiError);
    expect(ended).toHaveBeenCalledOnce();
  });

  it('is followed piece by piece, until it is broken off', async () => {
    setSession({ user: 'alice', csrfToken: 'one' });
    const pieces = ['one ', 'é'].map((text) => new TextEncoder().encode(text));
    const last = pieces.pop() ?? new Uint8Array();
    // A character may come in two pieces.
    const all = [...pieces, last.slice(0, 1), last.slice(1)];
    const stream = (isGood: boolean) => {
      const left = [...all];
      return new ReadableStream<Uint8Array>({
        pull: (controller) => {
          const next = left.shift();
          if (next) controller.enqueue(next);
          else if (isGood) controller.close();
          else controller.error(new TypeError('network'));
        },
      });
    };
    const taken: string[] = [];
    answers(new Response(stream(true)), new Response(stream(false)), answer(403, { kind: 'Status', message: 'no' }));
    const ask = () => follow('/api/log', (text) => taken.push(text), new AbortController().signal);
    await ask();
    expect(taken.join('')).toBe('one é');
    await expect(ask()).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
    await expect(ask()).rejects.toMatchObject({ code: 403 });
  });

  it('says that the server cannot be reached', async () => {
    vi.stubGlobal('fetch', vi.fn().mockRejectedValue(new TypeError('network')));
    await expect(request('/api/a')).rejects.toMatchObject({ code: 0, reason: 'Unreachable' });
  });
});

describe('amend', () => {
  afterEach(() => vi.unstubAllGlobals());

  const version = { metadata: { name: 'a', resourceVersion: '0' }, items: ['theirs'] };
  /** changing has others change an object so often, just before it is written. */
  const changing = (times: number) => {
    const object = structuredClone(version);
    let left = times;
    vi.stubGlobal('fetch', (_path: string, { method = 'GET', body }: RequestInit) => {
      const answer = (code: number, content: object) =>
        Promise.resolve(new Response(JSON.stringify(content), { status: code }));
      if (method === 'GET') return answer(200, object);
      if (left-- > 0) {
        object.metadata.resourceVersion = String(left);
        object.items.push('more');
      }
      const written = JSON.parse(String(body)) as typeof version;
      if (written.metadata.resourceVersion !== object.metadata.resourceVersion) {
        return answer(409, { kind: 'Status', code: 409, reason: 'Conflict' });
      }
      object.items = written.items;
      return answer(200, object);
    });
    return object;
  };
  const add = () =>
    amend<typeof version>('garden', resources.projects, { name: 'a' }, ({ items }) => ({ items: [...items, 'mine'] }));

  it('keeps what others have written meanwhile', async () => {
    const object = changing(2);
    await add();
    expect(object.items).toEqual(['theirs', 'more', 'more', 'mine']);
  });

  it('ends where others never do', async () => {
    changing(100);
    await expect(add()).rejects.toMatchObject({ code: 409 });
  });
});
