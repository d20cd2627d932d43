package failover

import (
	"slices"
	"time"
)

// Limits bound how many objects return per hour.
type Limits struct {
	// PerHour bounds the returns of the whole fleet, PerClusterPerHour those to one cluster. 0 or less means no bound.
	PerHour, PerClusterPerHour int
}

// Returns remembers the returns of the last hour. It is not safe for use by several goroutines.
type Returns struct {
	all       []time.Time
	byCluster map[string][]time.Time
}

// Note a return.
func (r *Returns) Note(clusters []string, at time.Time) {
	if r.byCluster == nil {
		r.byCluster = map[string][]time.Time{}
	}
	r.all = insert(r.all, at)
	for _, c := range clusters {
		r.byCluster[c] = insert(r.byCluster[c], at)
	}
}

func insert(times []time.Time, at time.Time) []time.Time {
	i, _ := slices.BinarySearchFunc(times, at, time.Time.Compare)
	return slices.Insert(times, i, at)
}

// Wait tells how long a return to these clusters has to wait; 0 means that it may happen now.
func (r *Returns) Wait(clusters []string, limits Limits, now time.Time) time.Duration {
	r.all = lastHour(r.all, now)
	wait := waitFor(r.all, limits.PerHour, now)
	for _, c := range clusters {
		recent := lastHour(r.byCluster[c], now)
		if len(recent) == 0 {
			delete(r.byCluster, c)
		} else {
			r.byCluster[c] = recent
		}
		wait = max(wait, waitFor(recent, limits.PerClusterPerHour, now))
	}
	return wait
}

func lastHour(times []time.Time, now time.Time) []time.Time {
	i := slices.IndexFunc(times, func(t time.Time) bool { return now.Sub(t) < time.Hour })
	if i < 0 {
		return nil
	}
	return times[i:]
}

// waitFor the oldest of the returns that exhaust the bound to be an hour ago.
func waitFor(times []time.Time, most int, now time.Time) time.Duration {
	if most <= 0 || len(times) < most {
		return 0
	}
	return time.Hour - now.Sub(times[len(times)-most])
}
