package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reason is why a seed cannot take a shoot, in a word.
type Reason string

// Reasons for which seeds are rejected.
const (
	Deleted             Reason = "Deleted"
	Invisible           Reason = "Invisible"
	NotReady            Reason = "NotReady"
	BackupNotReady      Reason = "BackupNotReady"
	OtherProvider       Reason = "OtherProvider"
	OtherRegion         Reason = "OtherRegion"
	NotSelected         Reason = "NotSelected"
	Tainted             Reason = "Tainted"
	MissingZones        Reason = "MissingZones"
	NoAccessRestriction Reason = "NoAccessRestriction"
	Full                Reason = "Full"
	Farther             Reason = "Farther"
)

// told is how a reason is told of one seed, and of several.
type told struct {
	reason       Reason
	one, several string
}

// inOrder has the reasons in the order in which a seed is asked about them: what people can do nothing about comes
// first, what time or a small change may cure last.
var inOrder = []told{
	{Deleted, "is being deleted", "are being deleted"},
	{Invisible, "takes no new shoots", "take no new shoots"},
	{OtherProvider, "has another provider", "have another provider"},
	{OtherRegion, "is in another region", "are in another region"},
	{Farther, "is farther away", "are farther away"},
	{NotSelected, "is not selected", "are not selected"},
	{Tainted, "has a taint that is not tolerated", "have taints that are not tolerated"},
	{MissingZones, "lacks zones", "lack zones"},
	{NoAccessRestriction, "lacks an access restriction", "lack an access restriction"},
	{NotReady, "is not ready", "are not ready"},
	{BackupNotReady, "cannot back up", "cannot back up"},
	{Full, "has no capacity", "have no capacity"},
}

func placeOf(reason Reason) int {
	return slices.IndexFunc(inOrder, func(t told) bool { return t.reason == reason })
}

// Summary tells in one line how many of all seeds fit, and for which reasons which others do not: the most frequent
// reason first. The same findings give the same line.
func Summary(seeds int, rejections []Rejection) string {
	if seeds == 0 {
		return "The garden has no seed."
	}
	var parts []string
	for _, group := range groups(rejections) {
		parts = append(parts, fmt.Sprintf("%d %s (%s)", len(group.seeds), phrase(group.reason, len(group.seeds)),
			strings.Join(group.seeds, ", ")))
	}
	summary := fmt.Sprintf("%d/%d seeds", seeds-len(rejections), seeds)
	if len(parts) > 0 {
		summary += ": " + strings.Join(parts, ", ")
	}
	return summary + "."
}

func phrase(reason Reason, seeds int) string {
	if seeds == 1 {
		return inOrder[placeOf(reason)].one
	}
	return inOrder[placeOf(reason)].several
}

type group struct {
	reason Reason
	seeds  []string
}

// groups collects the seeds of each reason.
func groups(rejections []Rejection) []group {
	byReason := map[Reason][]string{}
	for _, rejection := range rejections {
		byReason[rejection.Reason] = append(byReason[rejection.Reason], rejection.Seed)
	}
	result := make([]group, 0, len(byReason))
	for reason, seeds := range byReason {
		slices.Sort(seeds)
		result = append(result, group{reason: reason, seeds: seeds})
	}
	slices.SortFunc(result, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(b.seeds), len(a.seeds)), cmp.Compare(a.reason, b.reason))
	})
	return result
}

// Details lists what was found of each seed, cut so that it has at most the given number of bytes. Near misses come
// first, as in a large garden most seeds are just elsewhere.
func Details(rejections []Rejection, limit int) string {
	sorted := slices.SortedStableFunc(slices.Values(rejections), func(a, b Rejection) int {
		return cmp.Compare(placeOf(b.Reason), placeOf(a.Reason))
	})
	var details strings.Builder
	for i, rejection := range sorted {
		part := fmt.Sprintf("%s %s; ", rejection.Seed, rejection.Message)
		more := fmt.Sprintf("and %d more; ", len(sorted)-i)
		if details.Len()+len(part)+len(more) > limit {
			details.WriteString(more)
			break
		}
		details.WriteString(part)
	}
	return strings.TrimSuffix(details.String(), "; ")
}
