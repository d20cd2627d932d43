import { t } from '../i18n';
import { Failure } from '../ui/Failure';
import { ListTable } from '../ui/ListTable';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { useMoves, type Fleet } from './api';
import { markedMoves, type MarkedMove, type MovePart } from './moves';
import { objectName } from './placement';
import type { ObjectKey } from './types';

const signs = { left: '−', came: '+' };

/** Parts are the clusters of a move: where the object came to, what it left, and where it stays. */
function Parts({ parts }: { parts: MovePart[] }) {
  return (
    <ul className="parts">
      {parts.map(({ name, change }) => (
        <li key={name}>
          {change === 'stays' ? (
            name
          ) : (
            <span
              className={change === 'left' ? 'removed' : 'added'}
              aria-label={t(`moves.${change}`, { name })}
              title={t(`moves.${change}`, { name })}
              role="img"
            >
              {signs[change]} {name}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

/** MovesTable are where things went in the last days, and why: of the fleet, or of an object. */
export function MovesTable({ fleet, object }: { fleet: Fleet; object?: ObjectKey }) {
  const { data, error, isPending } = useMoves(fleet, object);
  const columns: Column<MarkedMove>[] = [
    { id: 'time', title: t('events.last'), cell: ({ time }) => <When time={time} /> },
    { id: 'object', title: t('object.object'), width: '1.5fr', cell: ({ object }) => object && objectName(object) },
    {
      id: 'type',
      title: t('moves.type'),
      cell: ({ type, reason }) => (
        <ToneBadge tone={type === 'Warning' ? 'warning' : 'neutral'}>{reason ?? type}</ToneBadge>
      ),
    },
    { id: 'clusters', title: t('object.clusters'), width: '1.5fr', cell: ({ parts }) => <Parts parts={parts} /> },
    { id: 'message', title: t('events.message'), width: '3fr', cell: ({ message }) => message },
  ];
  return (
    <>
      <Failure error={error} />
      {data?.since && (
        <p className="dimmed">
          {t('moves.since')} <When time={data.since} />
        </p>
      )}
      {(data || isPending) && (
        <ListTable
          label={t('fleet.moves')}
          list={{ items: markedMoves(data?.items ?? []), complete: data !== undefined }}
          columns={columns}
          none={t('moves.none')}
        />
      )}
    </>
  );
}
