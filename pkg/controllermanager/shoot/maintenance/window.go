package maintenance

import (
	"hash/fnv"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// day is how often a window comes.
const day = 24 * time.Hour

// allDay is the window of a shoot that has none: any time will do.
var allDay = gardencorev1beta1.MaintenanceTimeWindow{Begin: "000000+0000", End: "235959+0000"}

// nextMaintenance returns when a shoot is to be maintained: now if its time in the present window has come and it was
// not maintained since the window opened, else its time in the next window. A shoot that was created in the present
// window is as it should be. Shoots spread over the first half of a window by their UIDs.
func nextMaintenance(shoot *gardencorev1beta1.Shoot, now time.Time) (time.Time, error) {
	window := allDay
	if shoot.Spec.Maintenance != nil && shoot.Spec.Maintenance.TimeWindow != nil {
		window = *shoot.Spec.Maintenance.TimeWindow
	}
	begin, length, err := window.Parse()
	if err != nil {
		return time.Time{}, err
	}
	opened := opening(begin, now)
	offset := spread(string(shoot.UID), length/2)
	if last := shoot.Status.LastMaintenance; !shoot.CreationTimestamp.Time.Before(opened) ||
		last != nil && !last.TriggeredTime.Time.Before(opened) {
		return opened.Add(day + offset), nil
	}
	switch at := opened.Add(offset); {
	case now.Before(at):
		return at, nil
	case now.Before(opened.Add(length)):
		return now, nil
	default:
		return at.Add(day), nil
	}
}

// opening returns when the window opened last.
func opening(begin time.Duration, now time.Time) time.Time {
	opened := now.UTC().Truncate(day).Add(begin)
	if opened.After(now) {
		opened = opened.Add(-day)
	}
	return opened
}

// spread returns a time within the length, always the same for a key.
func spread(key string, length time.Duration) time.Duration {
	if length <= 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(key))
	return time.Duration(hash.Sum64() % uint64(length)).Truncate(time.Second)
}
