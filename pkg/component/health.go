package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/rollout"
)

// CheckHealth returns nil when a Deployment, StatefulSet or DaemonSet has rolled out its latest specification and all
// of its pods are ready; otherwise what is missing. Objects of other kinds are healthy.
func CheckHealth(object client.Object) error {
	state, ok, err := rollout.Of(object)
	if err != nil || !ok {
		return err
	}
	return state.Check()
}

// CheckDeployment returns nil when the Deployment is rolled out: the controller has seen the latest specification,
// every replica is updated and available, and no old one is left.
func CheckDeployment(d *appsv1.Deployment) error { return rollout.OfDeployment(d).Check() }

// CheckStatefulSet returns nil when the StatefulSet is rolled out.
func CheckStatefulSet(s *appsv1.StatefulSet) error { return rollout.OfStatefulSet(s).Check() }

// WaitUntilRolledOut waits until nothing but pods of the Deployment's newest template runs. Other than for health, a
// pod that is ending counts: it may still write what it was told to before.
func WaitUntilRolledOut(ctx context.Context, c client.Client, deployment *appsv1.Deployment) error {
	if err := WaitUntilHealthy(ctx, c, deployment); err != nil {
		return err
	}
	return poll(ctx, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := c.List(ctx, pods, client.InNamespace(deployment.Namespace),
			client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("pod %s/%s is still ending", pod.Namespace, pod.Name)
			}
		}
		return nil
	})
}

// diagnosisTimeout bounds how long looking for the cause of a failed wait may take.
const diagnosisTimeout = 5 * time.Second

// WaitUntilHealthy waits until CheckHealth is satisfied with each object, which is read into the given values. When ctx
// ends first, the error names the object, what is missing, and what its pods and their events say.
func WaitUntilHealthy(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		err := poll(ctx, func(ctx context.Context) error {
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			return CheckHealth(object)
		})
		if err == nil {
			continue
		}
		diagnosis, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosisTimeout)
		defer cancel()
		if reason := Diagnose(diagnosis, c, object); reason != "" {
			return fmt.Errorf("%s is not healthy: %w: %s", apply.Describe(c.Scheme(), object), err, reason)
		}
		return fmt.Errorf("%s is not healthy: %w", apply.Describe(c.Scheme(), object), err)
	}
	return nil
}

// WaitUntilGone waits until none of the objects exists.
func WaitUntilGone(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		err := poll(ctx, func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
			if err == nil {
				return stillThere(object)
			}
			if isGone(err) {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("%s is not deleted: %w", apply.Describe(c.Scheme(), object), err)
		}
	}
	return nil
}

func stillThere(object client.Object) error {
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return fmt.Errorf("it waits for the finalizers %s", strings.Join(finalizers, ", "))
	}
	return errors.New("it is still there")
}

// WaitUntilNoPods waits until no pod with these labels is left in the namespace: deleting a Deployment returns before
// its pods are gone.
func WaitUntilNoPods(ctx context.Context, c client.Client, namespace string, labels map[string]string) error {
	return poll(ctx, func(ctx context.Context) error {
		pods, err := listLive(ctx, c, "Pod", namespace, client.MatchingLabels(labels))
		if err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d pods with labels %v are left in namespace %s, first %s", len(pods.Items), labels,
				namespace, pods.Items[0].GetName())
		}
		return nil
	})
}

// Diagnose tells in one line why the pods of a Deployment, StatefulSet or DaemonSet are not ready: pods that cannot be
// scheduled, containers that wait or crashed, and the latest warning event. Empty when nothing is known.
func Diagnose(ctx context.Context, c client.Client, object client.Object) string {
	selector := podSelector(object)
	if selector == nil {
		return ""
	}
	pods, err := listLive(ctx, c, "Pod", object.GetNamespace(), client.MatchingLabels(selector.MatchLabels))
	if err != nil {
		return ""
	}
	var reasons []string
	names := []string{object.GetName()}
	for i := range pods.Items {
		pod := &corev1.Pod{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(pods.Items[i].Object, pod); err != nil {
			continue
		}
		if reason := DescribePod(pod); reason != "" {
			reasons = append(reasons, reason)
			names = append(names, pod.Name)
		}
	}
	if len(pods.Items) == 0 {
		reasons = append(reasons, "it has no pods")
	}
	if event := latestWarning(ctx, c, object.GetNamespace(), names); event != "" {
		reasons = append(reasons, event)
	}
	return strings.Join(reasons, "; ")
}

// listLive lists without types, which the client of a manager does not answer from (and start) a cache.
func listLive(ctx context.Context, c client.Client, kind, namespace string,
	options ...client.ListOption) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind(kind + "List")
	return list, c.List(ctx, list, append(options, client.InNamespace(namespace))...)
}

func podSelector(object client.Object) *metav1.LabelSelector {
	switch o := object.(type) {
	case *appsv1.Deployment:
		return o.Spec.Selector
	case *appsv1.StatefulSet:
		return o.Spec.Selector
	case *appsv1.DaemonSet:
		return o.Spec.Selector
	}
	return nil
}

// DescribePod tells in one line why a pod is not ready; empty when it is.
func DescribePod(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return ""
		}
	}
	var reasons []string
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			reasons = append(reasons, "cannot be scheduled: "+condition.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if reason := describeContainer(status); reason != "" {
			reasons = append(reasons, fmt.Sprintf("container %s %s", status.Name, reason))
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, "is in phase "+string(pod.Status.Phase))
	}
	return fmt.Sprintf("pod %s %s", pod.Name, strings.Join(reasons, ", "))
}

func describeContainer(status corev1.ContainerStatus) string {
	if waiting := status.State.Waiting; waiting != nil {
		if last := status.LastTerminationState.Terminated; last != nil {
			return describeTermination(last) + " and waits (" + waiting.Reason + ")"
		}
		return strings.TrimSuffix(fmt.Sprintf("waits: %s: %s", waiting.Reason, waiting.Message), ": ")
	}
	if terminated := status.State.Terminated; terminated != nil && terminated.ExitCode != 0 {
		return describeTermination(terminated)
	}
	if status.State.Running != nil && !status.Ready {
		if last := status.LastTerminationState.Terminated; last != nil {
			return "runs but is not ready; before, it " + describeTermination(last)
		}
		return "runs but is not ready"
	}
	return ""
}

func describeTermination(terminated *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("ended with code %d (%s)", terminated.ExitCode, terminated.Reason)
	if message := strings.TrimSpace(terminated.Message); message != "" {
		lines := strings.Split(message, "\n")
		text += ": " + lines[len(lines)-1]
	}
	return text
}

func latestWarning(ctx context.Context, c client.Client, namespace string, names []string) string {
	events, err := listLive(ctx, c, "Event", namespace)
	if err != nil {
		return ""
	}
	var latest corev1.Event
	for i := range events.Items {
		var event corev1.Event
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(events.Items[i].Object, &event); err != nil {
			continue
		}
		if event.Type == corev1.EventTypeWarning && concerns(event.InvolvedObject.Name, names) &&
			!eventTime(event).Before(eventTime(latest)) {
			latest = event
		}
	}
	if latest.Reason == "" {
		return ""
	}
	return fmt.Sprintf("event %s on %s %s: %s", latest.Reason, latest.InvolvedObject.Kind, latest.InvolvedObject.Name,
		latest.Message)
}

// concerns reports whether an object is one of the named or, as a ReplicaSet or claim is, named after it.
func concerns(name string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return name == n || strings.HasPrefix(name, n+"-") })
}

func eventTime(event corev1.Event) time.Time {
	if !event.LastTimestamp.IsZero() {
		return event.LastTimestamp.Time
	}
	return event.EventTime.Time
}
