package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// mostText bounds a text, in bytes: what etcd tells goes into conditions and events. mostReason bounds one of four
// parts of what is told about a recovery, which has to fit into the 1024 bytes of an event.
const (
	mostText   = 512
	mostReason = 160
)

// Text makes of any text one line of no more than 512 bytes that shows nothing else than it has: control characters,
// and those that change the direction of writing, become spaces.
func Text(text string) string { return line(text, mostText) }

// line shortens a text before it looks at each character, and again, as some become longer.
func line(text string, most int) string {
	const ellipsis = "…"
	shorten := func(text string) string {
		if len(text) <= most {
			return text
		}
		return strings.ToValidUTF8(text[:most-len(ellipsis)], "") + ellipsis
	}
	shown := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(shorten(text), " "))
	return shorten(strings.TrimSpace(shown))
}

// found says in words what a recovery was about.
var found = map[Cause]string{
	DataLost:    "found no data, although there are backups",
	DataDamaged: "found its data damaged",
	LogDamaged:  "found its write-ahead log damaged, but not its database",
	DataStale:   "found its data older than the backups",
	DataDiffers: "found its data different from that of a quorum of the other members",
}

// Describe says in one sentence each what was found, what was restored, what is missing and where the data lies; of a
// recovery that has not ended, what was found. The subject of the first one, an etcd, is left to the caller.
func (r *Recovery) Describe() string {
	parts := []string{r.describeFinding() + "."}
	if r.Finished.IsZero() {
		return parts[0]
	}
	parts = append(parts, r.describeRestored()+".")
	if r.Missing != "" {
		parts = append(parts, "Missing: "+line(r.Missing, mostReason)+".")
	}
	if r.Aside != "" {
		parts = append(parts, "What was found is kept in "+line(r.Aside, mostReason)+".")
	}
	return strings.Join(parts, " ")
}

func (r *Recovery) describeFinding() string {
	what := cmp.Or(found[r.Cause], "found its data unusable")
	if r.Reason == "" {
		return what
	}
	return what + " (" + line(r.Reason, mostReason) + ")"
}

func (r *Recovery) describeRestored() string {
	from := ", it is not told from what"
	switch restored := r.Restored; {
	case restored == nil:
	case restored.From == Nothing:
		return fmt.Sprintf("At %s, after %s, it began empty", stamp(r.Finished), duration(r.Took()))
	case restored.From == Members:
		from = " from the other members"
	case restored.From == Database:
		from = fmt.Sprintf(" from its database, revision %d", restored.Revision)
	default:
		from = fmt.Sprintf(" from %s of %s, revision %d, taken at %s", line(restored.Backup, mostReason),
			place(restored.From), restored.Revision, stamp(restored.Taken))
	}
	return fmt.Sprintf("At %s, after %s, it served again: restored%s", stamp(r.Finished), duration(r.Took()), from)
}

func place(from Source) string {
	switch from {
	case BackupDirectory:
		return "the backup directory"
	case BackupStore:
		return "the store of backups"
	}
	return "backups"
}

// mostKeys is how many changed keys are named, in a text of mostDifference bytes, which an event has room for.
const mostKeys, mostDifference = 3, 900

// Describe says in one sentence where data differs from what. Its subject, an etcd, is left to the caller.
func (d *Difference) Describe() string {
	if d.From == Members {
		return fmt.Sprintf("serves data that differs from that of other members since %s: %s.", stamp(d.Since),
			line(d.Message, mostText))
	}
	var changed []string
	for _, c := range d.Changed[:min(mostKeys, len(d.Changed))] {
		changed = append(changed, fmt.Sprintf("revision %d of key %q", c.Revision, line(c.Key, mostReason)))
	}
	if more := len(d.Changed) - mostKeys; more > 0 {
		changed = append(changed, fmt.Sprintf("%d more", more))
	}
	return line(fmt.Sprintf("serves data that differs from %s of %s since %s: %s.", line(d.Backup, mostReason),
		place(d.From), stamp(d.Since), strings.Join(changed, ", ")), mostDifference)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func duration(d time.Duration) string { return d.Round(time.Millisecond).String() }
