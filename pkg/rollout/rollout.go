// Package rollout judges how far a Deployment, StatefulSet or DaemonSet is with what its specification says, as
// `kubectl rollout status` does, and whether the API of an APIService is available.
package rollout

import (
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

// State of a workload.
type State struct {
	// Seen says whether the controller has seen the latest specification; the numbers mean nothing before.
	Seen bool
	// Desired are the pods that it is to have; Updated those of the latest template, and Available those that serve.
	Desired, Updated, Available int32
	// Old are pods of earlier templates that are still there.
	Old int32
}

// OfDeployment reads the state of a Deployment.
func OfDeployment(d *appsv1.Deployment) State {
	return State{
		Seen: d.Status.ObservedGeneration >= d.Generation, Desired: ptr.Deref(d.Spec.Replicas, 1),
		Updated:   d.Status.UpdatedReplicas,
		Available: d.Status.AvailableReplicas, Old: max(0, d.Status.Replicas-d.Status.UpdatedReplicas),
	}
}

// OfStatefulSet reads the state of a StatefulSet. Its pods take the place of old ones, so what is updated leaves none.
func OfStatefulSet(s *appsv1.StatefulSet) State {
	return State{
		Seen: s.Status.ObservedGeneration >= s.Generation, Desired: ptr.Deref(s.Spec.Replicas, 1),
		Updated:   s.Status.UpdatedReplicas,
		Available: s.Status.ReadyReplicas,
	}
}

// OfDaemonSet reads the state of a DaemonSet.
func OfDaemonSet(d *appsv1.DaemonSet) State {
	return State{
		Seen: d.Status.ObservedGeneration >= d.Generation, Desired: d.Status.DesiredNumberScheduled,
		Updated:   d.Status.UpdatedNumberScheduled,
		Available: d.Status.NumberAvailable,
	}
}

// Of reads the state of any of these, also where it is unstructured; ok is false for other kinds.
func Of(object runtime.Object) (state State, ok bool, err error) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return OfDeployment(o), true, nil
	case *appsv1.StatefulSet:
		return OfStatefulSet(o), true, nil
	case *appsv1.DaemonSet:
		return OfDaemonSet(o), true, nil
	case runtime.Unstructured:
		return ofUnstructured(o)
	}
	return State{}, false, nil
}

func ofUnstructured(object runtime.Unstructured) (State, bool, error) {
	gvk := object.GetObjectKind().GroupVersionKind()
	typed := map[string]runtime.Object{
		"Deployment": &appsv1.Deployment{}, "StatefulSet": &appsv1.StatefulSet{}, "DaemonSet": &appsv1.DaemonSet{},
	}[gvk.Kind]
	if gvk.Group != appsv1.GroupName || typed == nil {
		return State{}, false, nil
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.UnstructuredContent(), typed); err != nil {
		return State{}, false, err
	}
	return Of(typed)
}

// Progressing says what of the latest specification is still to come; empty if nothing is.
func (s State) Progressing() string {
	switch {
	case !s.Seen:
		return "its controller has not seen the latest change yet"
	case s.Updated < s.Desired:
		return fmt.Sprintf("%d of %d replicas are updated", s.Updated, s.Desired)
	case s.Old > 0:
		return fmt.Sprintf("%d old replicas are still there", s.Old)
	}
	return ""
}

// Unavailable says how many serve, if that is fewer than there are to be, as far as the controller has seen that; else
// it is empty.
func (s State) Unavailable() string {
	if !s.Seen || s.Available >= s.Desired {
		return ""
	}
	return fmt.Sprintf("%d of %d replicas are available", s.Available, s.Desired)
}

// Check returns nil when the workload is rolled out: all of it is of the latest specification and serves, and nothing
// of before is left.
func (s State) Check() error {
	for _, reason := range []func() string{
		State{Seen: s.Seen, Desired: s.Desired, Updated: s.Updated}.Progressing, s.Unavailable, s.Progressing,
	} {
		if text := reason(); text != "" {
			return errors.New(text)
		}
	}
	return nil
}
