// Package spread keeps what gardenlets do by the clock from happening all at once. What an object is given depends on
// its UID, so that it stays the same however often it is asked for, and whoever asks.
package spread

import (
	"hash/fnv"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// share is which part of a period is added to it at most: of an hour, six minutes.
const share = 10

// Within returns a moment of a window for an object, from its beginning to just before its end.
func Within(uid types.UID, window time.Duration) time.Duration {
	if window <= 0 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uid)) // It returns no error.
	// The upper bits of similar UIDs are similar at first.
	mixed := hash.Sum64()
	mixed ^= mixed >> 32
	mixed *= 0x9e3779b97f4a7c15
	return time.Duration(float64(mixed>>11) / (1 << 53) * float64(window))
}

// Period returns for an object a period that is up to a tenth longer, so that objects that were worked on together do
// not stay together.
func Period(uid types.UID, period time.Duration) time.Duration {
	period = min(period, math.MaxInt64/2)
	return period + Within(uid, period/share)
}
