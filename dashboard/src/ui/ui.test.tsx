import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import axe from 'axe-core';
import type { ReactNode } from 'react';
import { MemoryRouter } from 'react-router';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';

import { ApiError } from '../api/http';
import { Calendar } from '../shoots/Schedules';
import { Offer } from './Action';
import { conditionTone, Conditions, worstFirst } from './Conditions';
import { Dialog, NamedDialog } from './Dialog';
import { Failure, headline } from './Failure';
import { Facts, Page, Section } from './Page';
import { nextSorting, sortRows, Table, type Column } from './Table';
import { When } from './When';

beforeAll(() => {
  // Nothing is laid out here: each element is as high as a row.
  vi.spyOn(HTMLElement.prototype, 'offsetHeight', 'get').mockReturnValue(44);
  vi.spyOn(HTMLElement.prototype, 'getBoundingClientRect').mockReturnValue({
    x: 0,
    y: 0,
    width: 800,
    height: 44,
    top: 0,
    left: 0,
    right: 800,
    bottom: 44,
  } as DOMRect);
  vi.stubGlobal('matchMedia', () => ({
    matches: false,
    addEventListener: () => undefined,
    removeEventListener: () => undefined,
  }));
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {
        /* no layout here */
      }
      unobserve() {
        /* no layout here */
      }
      disconnect() {
        /* no layout here */
      }
    },
  );
});
afterEach(cleanup);

const show = (children: ReactNode) =>
  render(
    <MantineProvider theme={createTheme({})} withCssVariables={false} withGlobalClasses={false} env="test">
      <QueryClientProvider client={new QueryClient()}>
        <MemoryRouter>{children}</MemoryRouter>
      </QueryClientProvider>
    </MantineProvider>,
  );

interface Row {
  name: string;
  size: number;
}

const columns: Column<Row>[] = [
  { id: 'name', title: 'Name', sort: ({ name }) => name, cell: ({ name }) => name },
  { id: 'size', title: 'Size', sort: ({ size }) => size, cell: ({ size }) => size },
];
const rows: Row[] = [
  { name: 'b10', size: 1 },
  { name: 'b9', size: 10 },
  { name: 'a', size: 2 },
];

describe('tables', () => {
  it('sort numbers as numbers, also in names', () => {
    const names = (column: string, descending = false) =>
      sortRows(rows, columns, { column, descending }).map(({ name }) => name);
    expect([names('name'), names('size'), names('size', true), names('none')]).toEqual([
      ['a', 'b9', 'b10'],
      ['b10', 'a', 'b9'],
      ['b9', 'a', 'b10'],
      ['b10', 'b9', 'a'],
    ]);
  });

  it('are sorted upwards, downwards, and as they came', () => {
    const once = nextSorting(undefined, 'name');
    const twice = nextSorting(once, 'name');
    expect([once, twice, nextSorting(twice, 'name'), nextSorting(twice, 'size')]).toEqual([
      { column: 'name', descending: false },
      { column: 'name', descending: true },
      undefined,
      { column: 'size', descending: false },
    ]);
  });

  it('are sorted by a click on a heading', () => {
    show(<Table label="Things" columns={columns} rows={rows} keyOf={({ name }) => name} />);
    fireEvent.click(screen.getByRole('button', { name: /Name/ }));
    expect(
      screen
        .getAllByRole('row')
        .slice(1)
        .map((row) => row.firstElementChild?.textContent),
    ).toEqual(['a', 'b9', 'b10']);
    expect(screen.getByRole('columnheader', { name: /Name/ }).getAttribute('aria-sort')).toBe('ascending');
  });

  it('have few rows in the page, of however many', () => {
    const many = Array.from({ length: 5_000 }, (_, i) => ({ name: `n${i}`, size: i }));
    show(<Table label="Many" columns={columns} rows={many} keyOf={({ name }) => name} />);
    expect(screen.getByRole('table').getAttribute('aria-rowcount')).toBe('5001');
    expect(screen.getAllByRole('row').length).toBeLessThan(61);
  });
});

describe('conditions', () => {
  it.each([
    ['A', 'True', 'good'],
    ['A', 'False', 'bad'],
    ['A', 'Unknown', 'warning'],
    ['A', 'Progressing', 'busy'],
    ['EmergencyStopShootReconciliations', 'False', 'good'],
  ])('%s %s is %s', (type, status, want) => expect(conditionTone(type, status)).toBe(want));

  it('tell when the backups were last restored on trial, and of others nothing where they hold', () => {
    const good = (type: string, message: string) => ({ type, status: 'True', message });
    show(<Conditions conditions={[good('EtcdBackupReady', 'restored on trial at noon'), good('Other', 'all well')]} />);
    expect(screen.getByText('restored on trial at noon')).toBeTruthy();
    expect(screen.queryByText('all well')).toBeNull();
  });

  it('begin with the worst', () => {
    const of = (type: string, status: string) => ({ type, status });
    expect(worstFirst([of('A', 'True'), of('B', 'Unknown'), of('C', 'False')]).map(({ type }) => type)).toEqual([
      'C',
      'B',
      'A',
    ]);
  });
});

describe('failures', () => {
  it.each([
    [{ code: 409, reason: 'Conflict' }, 'Somebody else changed it meanwhile'],
    [{ code: 404, reason: 'Strange' }, 'It does not exist, or not any more'],
    [{ code: 418 }, 'That did not work'],
    [{ code: 0, reason: 'Unreachable' }, 'The server cannot be reached'],
  ])('%j', (status, want) => expect(headline(status)).toBe(want));

  it('are text, whatever they say', () => {
    show(<Failure error={new ApiError({ code: 422, message: '<img src=x onerror=alert(1)>' })} />);
    expect(screen.getByRole('alert').textContent).toContain('<img src=x');
    expect(document.querySelector('img')).toBeNull();
  });
});

describe('dialogs', () => {
  it('keep what was typed when they fail', async () => {
    const submit = () => Promise.reject(new ApiError({ code: 409, reason: 'Conflict', message: 'changed' }));
    show(
      <Dialog title="Change" submit="Save" onSubmit={submit} onClose={() => undefined}>
        <input aria-label="Text" defaultValue="" />
      </Dialog>,
    );
    fireEvent.change(screen.getByLabelText('Text'), { target: { value: 'typed' } });
    fireEvent.click(screen.getByRole('button', { name: 'Save' }));
    expect((await screen.findByRole('alert')).textContent).toContain('changed');
    expect(screen.getByLabelText<HTMLInputElement>('Text').value).toBe('typed');
  });

  it('ask for the name of what is lost', () => {
    show(
      <NamedDialog
        name="prod"
        title="Delete"
        submit="Delete it"
        onSubmit={() => Promise.resolve()}
        onClose={() => undefined}
      >
        Lost
      </NamedDialog>,
    );
    const button = () => screen.getByRole<HTMLButtonElement>('button', { name: 'Delete it' });
    expect(button().disabled).toBe(true);
    fireEvent.change(screen.getByRole('textbox'), { target: { value: 'prod2' } });
    expect(button().disabled).toBe(true);
    fireEvent.change(screen.getByRole('textbox'), { target: { value: 'prod' } });
    expect(button().disabled).toBe(false);
  });
});

describe('offers', () => {
  it('say who may what one may not', () => {
    show(
      <Offer may={false} who="operator">
        <button type="button">Do</button>
      </Offer>,
    );
    expect(screen.queryByRole('button')).toBeNull();
    expect(screen.getByText('Operators of the garden may do this.')).toBeTruthy();
  });
});

describe('accessibility', () => {
  it('has nothing that axe finds', async () => {
    const { container } = show(
      <main>
        <Page title="Shoots" path={[{ title: 'Projects', to: '/projects' }]}>
          <Section title="Health">
            <Conditions
              conditions={[
                {
                  type: 'EveryNodeReady',
                  status: 'False',
                  reason: 'R',
                  message: 'M',
                  codes: ['ERR_INFRA_UNAUTHORIZED'],
                },
              ]}
            />
            <Facts
              facts={[
                ['Version', '1.36'],
                ['None', undefined],
              ]}
            />
            <When time="2026-01-01T00:00:00Z" />
          </Section>
          <Table label="Things" columns={columns} rows={rows} keyOf={({ name }) => name} />
          <Calendar entries={[{ kind: 'sleep', begin: new Date('2026-11-27T12:00:00Z') }]} />
          <Failure error={new Error('no')} />
        </Page>
      </main>,
    );
    const { violations } = await axe.run(container, { rules: { 'color-contrast': { enabled: false } } });
    expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([]);
  });
});

describe('styles', () => {
  it('are not put into the page by script, as the content security policy forbids it', () => {
    show(
      <Dialog title="Change" submit="Save" onSubmit={() => Promise.resolve()} onClose={() => undefined}>
        <Table label="Things" columns={columns} rows={rows} keyOf={({ name }) => name} />
      </Dialog>,
    );
    expect(document.querySelectorAll('style')).toHaveLength(0);
  });
});
