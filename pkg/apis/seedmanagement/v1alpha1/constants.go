package v1alpha1

// OperationForceRedeploy, as value of the annotation gardener.cloud/operation of a Gardenlet, has it installed again
// from outside, for when it cannot help itself.
const OperationForceRedeploy = "force-redeploy"
