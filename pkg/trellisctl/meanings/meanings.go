// Package meanings says in words what conditions, error codes and phases of the garden's API mean, and what to do about
// errors. It reads nothing and decides nothing.
package meanings

import gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"

// Conditions say what holds where a condition is True.
var Conditions = map[gardencorev1beta1.ConditionType]string{
	gardencorev1beta1.ShootAPIServerAvailable:             "the API server answers",
	gardencorev1beta1.ShootControlPlaneHealthy:            "all parts of the control plane run",
	gardencorev1beta1.ShootObservabilityComponentsHealthy: "monitoring and logging run",
	gardencorev1beta1.ShootEveryNodeReady:                 "every node is ready, and none is missing",
	gardencorev1beta1.ShootSystemComponentsHealthy:        "what Trellis runs in the cluster is healthy",
	gardencorev1beta1.ShootEtcdBackupReady:                "every change of etcd comes to the backup",

	gardencorev1beta1.ShootHibernationPossible:                   "the cluster could wake up after it was hibernated",
	gardencorev1beta1.ShootMaintenancePreconditionsSatisfied:     "nothing in the cluster hinders its maintenance",
	gardencorev1beta1.ShootCACertificateValiditiesAcceptable:     "no certificate authority expires soon",
	gardencorev1beta1.ShootCRDsWithProblematicConversionWebhooks: "no conversion webhook hinders a rotation",
	gardencorev1beta1.ShootManualInPlaceWorkersUpdated:           "no pool waits for you to update its machines",
	gardencorev1beta1.ShootEtcdSpaceSufficient:                   "etcd has room for more objects",

	gardencorev1beta1.SeedGardenletReady:                    "gardenlet is in touch with the garden",
	gardencorev1beta1.SeedBackupBucketsReady:                "the buckets for backups are ready",
	gardencorev1beta1.SeedExtensionsReady:                   "all extensions are installed and healthy",
	gardencorev1beta1.SeedSystemComponentsHealthy:           "what Trellis runs in the seed is healthy",
	gardencorev1beta1.SeedEmergencyStopShootReconciliations: "operators have stopped work on all its shoots",
}

// Phases say what a rotation does in a phase, or waits for.
var Phases = map[gardencorev1beta1.CredentialsRotationPhase]string{
	gardencorev1beta1.RotationPreparing:                      "the new one comes beside the old one",
	gardencorev1beta1.RotationPreparingWithoutWorkersRollout: "the same, machines are left alone",
	gardencorev1beta1.RotationWaitingForWorkersRollout:       "machines have to be replaced, when you say so",
	gardencorev1beta1.RotationPrepared:                       "old and new are in use: clients can switch over",
	gardencorev1beta1.RotationCompleting:                     "the old one is removed",
	gardencorev1beta1.RotationCompleted:                      "only the new one is in use",
}

// failure is what an error code says, and what to do about it.
type failure struct{ says, do string }

var codes = map[gardencorev1beta1.ErrorCode]failure{
	gardencorev1beta1.ErrorInfraUnauthenticated: {
		"the infrastructure refuses the credentials", "correct the Secret behind the shoot's binding",
	},
	gardencorev1beta1.ErrorInfraUnauthorized: {
		"the credentials lack permissions in the infrastructure", "give them those that the error names",
	},
	gardencorev1beta1.ErrorInfraQuotaExceeded: {
		"a quota of the infrastructure is used up", "have it raised, or free what is not needed",
	},
	gardencorev1beta1.ErrorInfraRateLimitsExceeded: {"the infrastructure asks for fewer requests", "wait a while"},
	gardencorev1beta1.ErrorInfraDependencies: {
		"something of yours in the infrastructure stands in the way", "remove it",
	},
	gardencorev1beta1.ErrorRetryableInfraDependencies: {
		"something in the infrastructure stands in the way", "remove it if it does not go by itself",
	},
	gardencorev1beta1.ErrorInfraResourcesDepleted: {
		"the infrastructure has nothing left of what was asked for", "choose another zone or machine type, or wait",
	},
	gardencorev1beta1.ErrorCleanupClusterResources: {
		"objects in the cluster do not go away", "see what their finalizers wait for",
	},
	gardencorev1beta1.ErrorConfigurationProblem: {
		"something is configured wrongly", "correct what the error names by trellisctl edit shoot",
	},
	gardencorev1beta1.ErrorRetryableConfigurationProblem: {
		"something is configured so that it may never succeed",
		"correct what the error names by trellisctl edit shoot, if it does not go by itself",
	},
	gardencorev1beta1.ErrorProblematicWebhook: {
		"a webhook in the cluster stands in the way", "correct or remove it",
	},
}

// Code tells what a code says, and what to do; empty if this version of trellisctl does not know it.
func Code(code gardencorev1beta1.ErrorCode) string {
	meaning, known := codes[code]
	if !known {
		return ""
	}
	return meaning.says + "; " + meaning.do
}
