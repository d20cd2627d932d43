package bindings

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// NewFor gives the binding of an object before it is written: it knows the object, goes with it, and stays until its
// Works are gone.
func NewFor(template *unstructured.Unstructured) Binding {
	key := types.NamespacedName{Namespace: template.GetNamespace(), Name: Name(template.GetName(), template.GetKind())}
	b := New(key)
	SetLabel(b, PermanentIDLabel(key.Namespace), string(uuid.NewUUID()))
	b.SetFinalizers([]string{Finalizer(key.Namespace)})
	b.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Name: template.GetName(),
		UID: template.GetUID(),
	}})
	b.BindingSpec().Resource = ReferenceTo(template)
	return b
}

// ReferenceTo an object, as bindings hold it.
func ReferenceTo(template *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(),
		Name: template.GetName(), UID: template.GetUID(), ResourceVersion: template.GetResourceVersion(),
	}
}

// IsFor compares without the version, which may change during the life of an object.
func IsFor(b Binding, key TemplateKey) bool {
	other := TemplateOf(b)
	return other.GroupKind() == key.GroupKind() && other.NamespacedName == key.NamespacedName
}

// IsPlaced tells whether a policy places the object. One that only goes where others need it has no placement.
func IsPlaced(spec *workv1alpha2.ResourceBindingSpec) bool { return spec.Placement != nil }

// Targets are the clusters that are to have the object: those decided on, and those where others need it. In the
// latter, an object with replicas has all of them.
func Targets(spec *workv1alpha2.ResourceBindingSpec) []workv1alpha2.TargetCluster {
	targets := slices.Clip(spec.Clusters)
	known := map[string]bool{}
	for _, c := range targets {
		known[c.Name] = true
	}
	for _, referrer := range spec.RequiredBy {
		for _, c := range referrer.Clusters {
			if !known[c.Name] {
				known[c.Name] = true
				targets = append(targets, workv1alpha2.TargetCluster{Name: c.Name, Replicas: spec.Replicas})
			}
		}
	}
	return targets
}

// AllPlaced tells whether the replicas of an object are divided, and all of them have a place.
func AllPlaced(spec *workv1alpha2.ResourceBindingSpec) bool {
	if spec.Placement == nil || spec.Placement.ReplicaScheduling == nil || spec.Replicas == 0 ||
		spec.Placement.ReplicaScheduling.ReplicaSchedulingType == policyv1alpha1.ReplicaSchedulingTypeDuplicated {
		return false
	}
	var sum int32
	for _, c := range spec.Clusters {
		sum += c.Replicas
	}
	return sum >= spec.Replicas
}
