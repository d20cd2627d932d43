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

// phrases say a reason of one seed, and of several.
var phrases = map[Reason][2]string{
	Deleted:             {"is being deleted", "are being deleted"},
	Invisible:           {"takes no new shoots", "take no new shoots"},
	NotReady:            {"is not ready", "are not ready"},
	BackupNotReady:      {"cannot back up", "cannot back up"},
	OtherProvider:       {"has another provider", "have another provider"},
	OtherRegion:         {"is in another region", "are in another region"},
	NotSelected:         {"is not selected", "are not selected"},
	Tainted:             {"has a taint that is not tolerated", "have taints that are not tolerated"},
	MissingZones:        {"lacks zones", "lack zones"},
	NoAccessRestriction: {"lacks an access restriction", "lack an access restriction"},
	Full:                {"has no capacity", "have no capacity"},
	Farther:             {"is farther away", "are farther away"},
}

// nearMisses are the reasons in the order in which they are told in detail: those that time or a small change may cure
// come first, as in a large garden most seeds are just elsewhere.
var nearMisses = []Reason{
	Full, NotReady, BackupNotReady, NoAccessRestriction, MissingZones, Tainted, NotSelected, Farther, OtherRegion,
	OtherProvider, Invisible, Deleted,
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
		return phrases[reason][0]
	}
	return phrases[reason][1]
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

// Details lists what was found of each seed, near misses first, cut so that it has at most the given number of bytes.
func Details(rejections []Rejection, limit int) string {
	sorted := slices.SortedStableFunc(slices.Values(rejections), func(a, b Rejection) int {
		return cmp.Compare(slices.Index(nearMisses, a.Reason), slices.Index(nearMisses, b.Reason))
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
