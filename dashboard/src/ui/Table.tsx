import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { useLayoutEffect, useRef, useState, type ReactNode } from 'react';

export interface Column<Row> {
  id: string;
  title: string;
  cell: (row: Row) => ReactNode;
  /** Width in the grid, such as 2fr; 1fr if absent. */
  width?: string;
  /** What the column sorts by; absent if it does not. */
  sort?: (row: Row) => string | number;
}

export interface Sorting {
  column: string;
  descending: boolean;
}

/** sortRows sorts by a column; equal rows stay in their order. */
export function sortRows<Row>(rows: Row[], columns: Column<Row>[], sorting: Sorting | undefined): Row[] {
  const by = columns.find(({ id }) => id === sorting?.column)?.sort;
  if (!by || !sorting) return rows;
  const factor = sorting.descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: by(row) }));
  return keyed.sort((a, b) => factor * compare(a.key, b.key)).map(({ row }) => row);
}

const collator = new Intl.Collator('en', { numeric: true });

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return collator.compare(String(a), String(b));
}

/** nextSorting is that after a click on a heading: upwards, downwards, none. */
export function nextSorting(sorting: Sorting | undefined, column: string): Sorting | undefined {
  if (sorting?.column !== column) return { column, descending: false };
  return sorting.descending ? undefined : { column, descending: true };
}

interface TableProps<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  keyOf: (row: Row) => string;
  sorting?: Sorting;
  onSort?: (sorting: Sorting | undefined) => void;
}

const rowHeight = 44;
/** From this many rows on, only those near the window are in the page. */
const virtualFrom = 100;

/** Table shows rows in a grid, and one below the other where there is no room. */
export function Table<Row>({ label, columns, rows, keyOf, sorting, onSort }: TableProps<Row>) {
  const [own, setOwn] = useState<Sorting>();
  const present = onSort ? sorting : own;
  const change = onSort ?? setOwn;
  const sorted = sortRows(rows, columns, present);
  const template = { gridTemplateColumns: columns.map(({ width }) => `minmax(0, ${width ?? '1fr'})`).join(' ') };
  return (
    <div role="table" aria-label={label} aria-rowcount={rows.length + 1} className="table">
      <div role="row" aria-rowindex={1} className="table-row table-head" style={template}>
        {columns.map((column) => (
          <Heading key={column.id} column={column} sorting={present} onSort={change} />
        ))}
      </div>
      <Rows rows={sorted} columns={columns} keyOf={keyOf} template={template} />
    </div>
  );
}

interface HeadingProps<Row> {
  column: Column<Row>;
  sorting: Sorting | undefined;
  onSort: (sorting: Sorting | undefined) => void;
}

function Heading<Row>({ column, sorting, onSort }: HeadingProps<Row>) {
  const active = sorting?.column === column.id;
  const direction = sorting?.descending ? 'descending' : 'ascending';
  if (!column.sort) return <div role="columnheader">{column.title}</div>;
  return (
    <div role="columnheader" aria-sort={active ? direction : 'none'}>
      <button type="button" onClick={() => onSort(nextSorting(sorting, column.id))}>
        {column.title} <span aria-hidden="true">{active ? (sorting.descending ? '↓' : '↑') : ''}</span>
      </button>
    </div>
  );
}

interface RowsProps<Row> {
  rows: Row[];
  columns: Column<Row>[];
  keyOf: (row: Row) => string;
  template: { gridTemplateColumns: string };
}

function Rows<Row>(props: RowsProps<Row>) {
  return props.rows.length >= virtualFrom ? <VirtualRows {...props} /> : <AllRows {...props} />;
}

function AllRows<Row>({ rows, columns, keyOf, template }: RowsProps<Row>) {
  return (
    <div role="rowgroup">
      {rows.map((row, i) => (
        <div key={keyOf(row)} role="row" aria-rowindex={i + 2} className="table-row" style={template}>
          <Cells row={row} columns={columns} />
        </div>
      ))}
    </div>
  );
}

function VirtualRows<Row>({ rows, columns, keyOf, template }: RowsProps<Row>) {
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useLayoutEffect(() => setTop(body.current?.offsetTop ?? 0), []);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => rowHeight,
    overscan: 8,
    scrollMargin: top,
    getItemKey: (i) => keyOf(rows[i] as Row),
  });
  return (
    <div role="rowgroup" ref={body} className="table-body" style={{ height: virtualizer.getTotalSize() }}>
      {virtualizer.getVirtualItems().map(({ index, key, start }) => (
        <div
          key={key}
          role="row"
          aria-rowindex={index + 2}
          data-index={index}
          ref={virtualizer.measureElement}
          className="table-row table-virtual"
          style={{ ...template, transform: `translateY(${start - top}px)` }}
        >
          <Cells row={rows[index] as Row} columns={columns} />
        </div>
      ))}
    </div>
  );
}

function Cells<Row>({ row, columns }: { row: Row; columns: Column<Row>[] }) {
  return columns.map((column) => (
    <div key={column.id} role="cell" data-label={column.title}>
      {column.cell(row)}
    </div>
  ));
}
