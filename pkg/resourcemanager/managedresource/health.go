package managedresource

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/crd"
	"github.com/trellis-garden/trellis/pkg/rollout"
)

// Health is what an object's status says.
type Health struct {
	// Unhealthy tells why the object does not do its work; empty when it does.
	Unhealthy string
	// Progressing tells what is still being rolled out; empty when the object has settled.
	Progressing string
}

// Healthy says that nothing is wrong and nothing is under way.
func (h Health) Healthy() bool { return h.Unhealthy == "" && h.Progressing == "" }

// checkers know the kinds that have a health of their own; all others are healthy when they exist.
var checkers = map[string]func(*unstructured.Unstructured) (Health, error){
	"Deployment.apps":  workloadHealth,
	"StatefulSet.apps": workloadHealth,
	"DaemonSet.apps":   workloadHealth,
	"Job.batch":        typed(jobHealth),
	"Pod":              typed(podHealth),
	"Service":          typed(serviceHealth),
	"CustomResourceDefinition.apiextensions.k8s.io": crdHealth,
	"APIService.apiregistration.k8s.io":             apiServiceHealth,
}

// HasHealth says whether objects of the kind are looked at again until they are healthy.
func HasHealth(object *unstructured.Unstructured) bool {
	_, ok := checkers[object.GroupVersionKind().GroupKind().String()]
	return ok && object.GetAnnotations()[resourcesv1alpha1.SkipHealthCheck] != "true"
}

// CheckHealth judges an object as read from its cluster.
func CheckHealth(object *unstructured.Unstructured) Health {
	if !HasHealth(object) {
		return Health{}
	}
	health, err := checkers[object.GroupVersionKind().GroupKind().String()](object)
	if err != nil {
		return Health{Unhealthy: "status cannot be read: " + err.Error()}
	}
	return health
}

// typed adapts a check of a Go type.
func typed[T any](check func(*T) Health) func(*unstructured.Unstructured) (Health, error) {
	return func(object *unstructured.Unstructured) (Health, error) {
		into := new(T)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
			return Health{}, err
		}
		return check(into), nil
	}
}

func workloadHealth(object *unstructured.Unstructured) (Health, error) {
	state, _, err := rollout.Of(object)
	return Health{Unhealthy: state.Unavailable(), Progressing: state.Progressing()}, err
}

func jobHealth(j *batchv1.Job) Health {
	for _, condition := range j.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			return Health{Unhealthy: "job failed: " + condition.Message}
		}
	}
	return Health{}
}

func podHealth(p *corev1.Pod) Health {
	switch p.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		return Health{}
	default:
		return Health{Unhealthy: "pod is " + string(p.Status.Phase)}
	}
}

func serviceHealth(s *corev1.Service) Health {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && len(s.Status.LoadBalancer.Ingress) == 0 {
		return Health{Unhealthy: "load balancer has no address yet"}
	}
	return Health{}
}

func crdHealth(definition *unstructured.Unstructured) (Health, error) {
	_, reason := crd.Established(definition)
	return Health{Unhealthy: reason}, nil
}

func apiServiceHealth(object *unstructured.Unstructured) (Health, error) {
	reason, err := rollout.APIServiceUnavailable(object)
	return Health{Unhealthy: reason}, err
}
