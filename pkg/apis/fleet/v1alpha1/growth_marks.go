package v1alpha1

import (
	"slices"
	"strings"
)

const (
	// AllowGrowthAnnotation, on the Shoot of a fleet, lets the fleet change worker pools of the project's shoots (value
	// GrowPools), and also create and delete shoots there (value GrowPools and GrowShoots, separated by a comma).
	AllowGrowthAnnotation = "federation.trellis.garden/growth"
	// GrowPools is a value of AllowGrowthAnnotation.
	GrowPools = "pools"
	// GrowShoots is a value of AllowGrowthAnnotation.
	GrowShoots = "shoots"

	// GrowthCredentialsAnnotation, on the Shoot of a fleet, names the CredentialsBindings and SecretBindings of the
	// project that shoots which the fleet creates may use, separated by commas. Without it they use none.
	GrowthCredentialsAnnotation = "federation.trellis.garden/growth-credentials"

	// GrownPoolsAnnotation, on a Shoot, says which of its worker pools a fleet has enlarged, and what they were before.
	// It is a JSON object with a PoolRecord per name of a pool.
	GrownPoolsAnnotation = "federation.trellis.garden/grown-pools"
	// GrownByLabel, on a Shoot that a fleet has created, names the Shoot of the fleet. It is also on the fleet's
	// Cluster for that shoot.
	GrownByLabel = "federation.trellis.garden/grown-by"
	// GrownForLabel, on a Shoot that a fleet has created, names the FleetGrowth. It is also on the fleet's Cluster for
	// that shoot.
	GrownForLabel = "federation.trellis.garden/grown-for"

	// GrowthFinalizer keeps a FleetGrowth until everything is given back.
	GrowthFinalizer = "federation.trellis.garden/growth"
	// TaintLeaving (NoSchedule) is on a Cluster whose shoot is about to be given back.
	TaintLeaving = "federation.trellis.garden/leaving"
)

// AllowsGrowth tells whether a value of AllowGrowthAnnotation has a part, which is GrowPools or GrowShoots; or one of
// GrowthCredentialsAnnotation has a name.
func AllowsGrowth(value, part string) bool {
	return slices.ContainsFunc(strings.Split(value, ","), func(s string) bool { return strings.TrimSpace(s) == part })
}
