import { t } from '../i18n';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { useMoves, type Fleet } from './api';
import { objectName } from './placement';
import type { Move, ObjectKey } from './types';

/** Moves are where things went in the last days, and why. */
export function Moves({ fleet }: { fleet: Fleet }) {
  return <MovesTable fleet={fleet} />;
}

export function MovesTable({ fleet, object }: { fleet: Fleet; object?: ObjectKey }) {
  const { data, error, isPending } = useMoves(fleet, object);
  const columns: Column<Move>[] = [
    { id: 'time', title: t('events.last'), cell: ({ time }) => <When time={time} /> },
    { id: 'object', title: t('object.object'), width: '1.5fr', cell: ({ object }) => object && objectName(object) },
    {
      id: 'type',
      title: t('moves.type'),
      cell: ({ type, reason }) => (
        <ToneBadge tone={type === 'Warning' ? 'warning' : 'neutral'}>{reason ?? type}</ToneBadge>
      ),
    },
    { id: 'clusters', title: t('object.clusters'), cell: ({ clusters = [] }) => clusters.join(', ') },
    { id: 'message', title: t('events.message'), width: '3fr', cell: ({ message }) => message },
  ];
  return (
    <>
      <Failure error={error} />
      {isPending && !error && <Loading />}
      {data?.since && (
        <p className="dimmed">
          {t('moves.since')} <When time={data.since} />
        </p>
      )}
      {data?.items.length === 0 && <Empty>{t('moves.none')}</Empty>}
      {data && data.items.length > 0 && (
        <Table
          label={t('fleet.moves')}
          columns={columns}
          rows={data.items}
          keyOf={({ time, object, message, type }) => [time, object && objectName(object), type, message].join('|')}
        />
      )}
    </>
  );
}
