import { uidOf, type LiveState } from '../live/list';
import { Empty, ListState } from './Loading';
import { Table, type Column, type Sorting } from './Table';

interface ListTableProps<Row> {
  label: string;
  list: LiveState<Row>;
  columns: Column<Row>[];
  /** What is said of a list that is empty; nothing if absent. */
  none?: string;
  /** What is shown of the list; all of it if absent. */
  rows?: Row[];
  sorting?: Sorting;
  onSort?: (sorting: Sorting | undefined) => void;
}

/** ListTable is a list that is kept up to date: what is wrong with it, that it is empty, or what is in it. */
export function ListTable<Row>({ label, list, columns, none, rows = list.items, ...table }: ListTableProps<Row>) {
  return (
    <>
      <ListState list={list} />
      {list.complete && rows.length === 0 && none && <Empty>{none}</Empty>}
      {rows.length > 0 && <Table label={label} columns={columns} rows={rows} keyOf={uidOf} {...table} />}
    </>
  );
}
