package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// RemainingWave is the name of the last wave of every rollout: the clusters that no wave of the policy takes.
const RemainingWave = "remaining"

// RolloutFailureAction is Pause or Rollback.
type RolloutFailureAction string

// Values of RolloutFailureAction.
const (
	RolloutFailurePause    RolloutFailureAction = "Pause"
	RolloutFailureRollback RolloutFailureAction = "Rollback"
)

// RolloutStrategy brings a change of an object to its clusters wave by wave: the next wave gets it when all clusters
// that have it are healthy. What counts as a change is all that clusters get but the number of replicas, which follows
// at once everywhere. The first version of an object goes everywhere at once. An extension: Karmada has no such type.
//
// +kubebuilder:validation:XValidation:rule="!has(self.waves) || self.waves.all(a, self.waves.exists_one(b, b.name == a.name))",message="name must be unique",fieldPath=".waves"
// +kubebuilder:validation:XValidation:rule="!has(self.waves) || self.waves.all(w, w.name != 'remaining')",message="the name remaining is that of the last wave, which every rollout has: the clusters that no other wave takes",fieldPath=".waves"
type RolloutStrategy struct {
	// Waves in their order. A cluster belongs to the first one that takes it. Clusters that none takes form one more
	// wave at the end, named remaining.
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Waves []RolloutWave `json:"waves,omitempty"`
	// ProgressDeadlineSeconds is how long a wave may be not healthy, all such times added up. Then OnFailure is done.
	// Time in which the rollout is paused doesn't count. Default: 600.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	// +kubebuilder:default=600
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
	// OnFailure Pause leaves everything as it is until somebody resumes or undoes the rollout; Rollback gives all
	// clusters the version that was complete last. Default: Pause.
	// +kubebuilder:validation:Enum=Pause;Rollback
	// +kubebuilder:default=Pause
	// +optional
	OnFailure RolloutFailureAction `json:"onFailure,omitempty"`
	// Paused stops before the next wave, also before the first one of a new change.
	// +optional
	Paused bool `json:"paused,omitempty"`
	// RevisionHistoryLimit is how many versions are kept beside those in use, to go back to. Default: 5.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=32
	// +kubebuilder:default=5
	// +optional
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`
}

// RolloutWave is a group of clusters that get a change at the same time. Without ClusterAffinity and MaxClusters it
// takes all that the waves before it left. An extension: Karmada has no such type.
type RolloutWave struct {
	// Name of the wave.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must consist of small letters, digits and '-', and begin and end with a letter or digit"
	Name string `json:"name"`
	// ClusterAffinity matches the clusters. Absent means all.
	// +optional
	ClusterAffinity *ClusterAffinity `json:"clusterAffinity,omitempty"`
	// MaxClusters bounds how many of them the wave takes, in the order of their names: a number, or a percentage of the
	// clusters that have the object, rounded up. Absent means no bound.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : string(self).matches('^(100|[1-9][0-9]?)%$')",message="must be a number from 1 on or a percentage from 1% to 100%"
	// +optional
	MaxClusters *intstr.IntOrString `json:"maxClusters,omitempty"`
	// SoakSeconds is how long the clusters must have been healthy without a break before the wave is done.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=604800
	// +optional
	SoakSeconds int32 `json:"soakSeconds,omitempty"`
	// Pause waits after the wave until somebody resumes the rollout (trellisctl rollout resume).
	// +optional
	Pause bool `json:"pause,omitempty"`
}
