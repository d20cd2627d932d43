// Package rollout decides which revision of an object each of its clusters gets while a change goes through them wave
// by wave. It decides on values alone: the plan of the policy, what people asked for, what the status said before, what
// the clusters have, and the time. All that the next decision needs is in the status, so that a restart at any point
// changes nothing.
package rollout
