// Package rollouts carries out staged rollouts: it keeps the revisions of objects, gathers what pkg/federation/rollout
// decides by, and tells the controller of Works which revision each cluster gets.
package rollouts
