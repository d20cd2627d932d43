import type { Condition } from '../api/types';
import { known, t } from '../i18n';
import { Empty } from './Loading';
import { ToneBadge, type Tone } from './Tone';
import { When } from './When';

/** Conditions that tell of trouble by being True. */
const troubleIfTrue = new Set(['EmergencyStopShootReconciliations', 'DeletionHeld']);

/** Conditions whose message is of use also where they hold: when the backups were last restored on trial. */
const toldIfGood = new Set(['EtcdBackupReady']);

/** holds tells whether a condition is True; rows have its status as text. */
export const holds = (status: string | boolean | undefined) => status === true || status === 'True';

/** conditionTone is how good a status of a condition is. */
export function conditionTone(type: string, status: string): Tone {
  if (status === 'Progressing') return 'busy';
  if (status === 'Unknown') return 'warning';
  return (status === 'True') !== troubleIfTrue.has(type) ? 'good' : 'bad';
}

const order: Record<Tone, number> = { bad: 0, warning: 1, busy: 2, neutral: 3, good: 4 };

/** worstFirst sorts conditions by what needs somebody most. */
export function worstFirst(conditions: Condition[]): Condition[] {
  const rank = ({ type, status }: Condition) => order[conditionTone(type, status)];
  return [...conditions].sort((a, b) => rank(a) - rank(b) || a.type.localeCompare(b.type));
}

/** Conditions tells each condition with what it means where it holds, and of codes what to do. */
export function Conditions({ conditions }: { conditions: Condition[] }) {
  if (conditions.length === 0) return <Empty>{t('conditions.none')}</Empty>;
  return (
    <ul className="conditions" aria-live="polite">
      {worstFirst(conditions).map((condition) => (
        <ConditionItem key={condition.type} condition={condition} />
      ))}
    </ul>
  );
}

function ConditionItem({
  condition: { type, status, reason, message, lastTransitionTime, codes },
}: {
  condition: Condition;
}) {
  const tone = conditionTone(type, status);
  return (
    <li>
      <ToneBadge tone={tone}>{type}</ToneBadge> <span className="dimmed">{known('condition', type)}</span>{' '}
      <When time={lastTransitionTime} />
      {(tone !== 'good' || toldIfGood.has(type)) && (
        <p className="message">
          {reason && <strong>{reason}: </strong>}
          {message}
        </p>
      )}
      <Codes codes={codes ?? []} />
    </li>
  );
}

/** Codes says what error codes mean, and what to do. */
export function Codes({ codes }: { codes: string[] }) {
  return codes.map((code) => (
    <p key={code} className="message">
      <code>{code}</code> {known('code', code) ?? t('code.unknown')}
    </p>
  ));
}
