// Package plan predicts what a change of policies, clusters or objects would move in a fleet: which policy each object
// would have, the clusters that it would leave and go to with how many replicas, the fields that override policies
// would set in another way, and whether the fleet's deletion budget would hold what is removed.
//
// It asks the same functions as the fleet's controllers do (pkg/federation/policies, karmada, core, overrides,
// references, rollout, quota, budget). Predict is a function of the Input alone; Read and Check fill one from a fleet's
// API, and write nothing but dry runs.
package plan
