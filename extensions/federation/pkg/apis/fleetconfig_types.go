package apis

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// APIVersion and FleetConfigKind are what a provider configuration says that it is.
	APIVersion      = "federation.extensions.trellis.garden/v1alpha1"
	FleetConfigKind = "FleetConfig"
)

// FleetConfig holds the settings of a fleet: spec.extensions[].providerConfig of a Shoot, with type federation.
// Durations are written like 90s, 10m or 1h30m. A mistake is reported with the field's path in status.lastErrors of the
// Shoot.
type FleetConfig struct {
	metav1.TypeMeta `json:",inline"`
	// SkippedNamespaces is a regular expression; objects in namespaces that match it entirely are never propagated.
	// Default: kube-.*
	// +optional
	SkippedNamespaces *string `json:"skippedNamespaces,omitempty"`
	// Memory that the controllers may use before they collect garbage ever more eagerly, at the cost of CPU. From 64Mi
	// to 8Gi. Default: 512Mi, which is enough for about 10,000 objects in two members each.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
	// Clusters says how members are watched over.
	// +optional
	Clusters ClustersConfig `json:"clusters,omitempty"`
	// PromiseLapse is how long replicas that a member was told to run, and makes no pods for, hold room that others
	// could have. At least 1m, since agents may take that long to report of pods that there are. Default: 10m.
	// +optional
	PromiseLapse *metav1.Duration `json:"promiseLapse,omitempty"`
	// Failover says when objects leave members, and when they return.
	// +optional
	Failover FailoverConfig `json:"failover,omitempty"`
	// DeletionBudget says how many deletions at once need no confirmation.
	// +optional
	DeletionBudget DeletionBudgetConfig `json:"deletionBudget,omitempty"`
}

// ClustersConfig says how members are watched over.
type ClustersConfig struct {
	// ProbeInterval is the time between two questions whether a member is ready. At least 1s. Default: 10s.
	// +optional
	ProbeInterval *metav1.Duration `json:"probeInterval,omitempty"`
	// SurveyInterval is the time between two looks at what a member offers. At least 1s. Default: 60s.
	// +optional
	SurveyInterval *metav1.Duration `json:"surveyInterval,omitempty"`
	// FailureThreshold is how long a ready member must fail to answer until it counts as not ready. Default: 30s.
	// +optional
	FailureThreshold *metav1.Duration `json:"failureThreshold,omitempty"`
	// SuccessThreshold is how long a failed member must answer until it counts as ready. Default: 30s.
	// +optional
	SuccessThreshold *metav1.Duration `json:"successThreshold,omitempty"`
}

// FailoverConfig says when objects leave members, and when they return. Policies may differ from it in spec.failover.
type FailoverConfig struct {
	// After is how long a member may be away before its objects move; 0s: never by itself. Default: 5m.
	// +optional
	After *metav1.Duration `json:"after,omitempty"`
	// EvictionsPerSecond is how many copies leave members because of taints; 0: one in 30 minutes. A fraction is
	// written as text. Default: "0.5".
	// +optional
	EvictionsPerSecond *resource.Quantity `json:"evictionsPerSecond,omitempty"`
	// GracefulEvictionTimeout is when an old copy that waits for its replacement is reported. At least 1s. Default:
	// 10m.
	// +optional
	GracefulEvictionTimeout *metav1.Duration `json:"gracefulEvictionTimeout,omitempty"`
	// FailBack is Automatic, where objects return by themselves to members that are healthy again, or Never. Default:
	// Automatic.
	// +optional
	FailBack *string `json:"failBack,omitempty"`
	// FailBackWindow is how long a member must have been healthy without a break before objects return to it. Default:
	// 5m.
	// +optional
	FailBackWindow *metav1.Duration `json:"failBackWindow,omitempty"`
	// FailBacksPerHour is how many objects of the fleet return per hour, up to 1,000,000; 0: no bound. Default: 240.
	// +optional
	FailBacksPerHour *int32 `json:"failBacksPerHour,omitempty"`
	// FailBacksPerClusterPerHour is how many objects return to one member per hour, up to 1,000,000; 0: no bound.
	// Default: 120.
	// +optional
	FailBacksPerClusterPerHour *int32 `json:"failBacksPerClusterPerHour,omitempty"`
}

// DeletionBudgetConfig says how many deletions at once need no confirmation.
type DeletionBudgetConfig struct {
	// Percent of the objects of a member, or of the fleet, that may be deleted within the window; 100: never ask.
	// Default: 20.
	// +optional
	Percent *int32 `json:"percent,omitempty"`
	// AtLeast is how many objects of a member may be deleted within the window in any case, and twice as many of the
	// fleet. Up to 1,000,000. Default: 20.
	// +optional
	AtLeast *int32 `json:"atLeast,omitempty"`
	// Window is how long deletions count. At least 1s. Default: 10m.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`
}
