package failover

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TaintEviction tells whether, and when, a copy has to leave a cluster because of taints.
type TaintEviction struct {
	// Leave is false when the copy may stay for good.
	Leave bool
	// At is when it has to leave; the zero time means now.
	At time.Time
	// Taint is the one that decides.
	Taint corev1.Taint
}

// Due tells whether the time to leave has come.
func (v TaintEviction) Due(now time.Time) bool { return v.Leave && !v.At.After(now) }

// NoExecute judges the NoExecute taints of a cluster. A taint that nothing tolerates means to leave now. One that is
// tolerated for some seconds means to leave that long after it was added; of several tolerations the shortest counts.
// Others let the copy stay.
func NoExecute(taints []corev1.Taint, tolerations []corev1.Toleration, now time.Time) TaintEviction {
	var eviction TaintEviction
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		tolerated, seconds := tolerance(taint, tolerations)
		if !tolerated {
			return TaintEviction{Leave: true, Taint: taint}
		}
		if seconds == nil {
			continue
		}
		if at := addedAt(taint, now).Add(time.Duration(max(*seconds, 0)) * time.Second); !eviction.Leave ||
			at.Before(eviction.At) {
			eviction = TaintEviction{Leave: true, At: at, Taint: taint}
		}
	}
	return eviction
}

// addedAt counts a taint without a time from now on.
func addedAt(taint corev1.Taint, now time.Time) time.Time {
	if taint.TimeAdded == nil {
		return now
	}
	return taint.TimeAdded.Time
}

// tolerance gives the shortest time for which a taint is tolerated; nil seconds stand for ever.
func tolerance(taint corev1.Taint, tolerations []corev1.Toleration) (tolerated bool, seconds *int64) {
	for i := range tolerations {
		t := &tolerations[i]
		if !Tolerates(*t, taint) {
			continue
		}
		tolerated = true
		if t.TolerationSeconds != nil && (seconds == nil || *t.TolerationSeconds < *seconds) {
			seconds = t.TolerationSeconds
		}
	}
	return tolerated, seconds
}

// Tolerates tells whether a toleration is for a taint.
func Tolerates(t corev1.Toleration, taint corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	return t.Operator == corev1.TolerationOpExists ||
		(t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == taint.Value
}

// Repelled tells whether a cluster's taints keep objects with these tolerations away.
func Repelled(taints []corev1.Taint, tolerations []corev1.Toleration) bool {
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectNoSchedule && taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		if tolerated, _ := tolerance(taint, tolerations); !tolerated {
			return true
		}
	}
	return false
}
