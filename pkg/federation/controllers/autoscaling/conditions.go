package autoscaling

import (
	"slices"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	autoscalingv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/autoscaling/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/autoscale"
)

// longestMessage of a condition.
const longestMessage = 1000

// say sets a condition, and tells in an event when something begins to be wrong; then it is true.
func (a *autoscaling) say(f *autoscalingv1alpha1.FederatedHPA, c autoscale.Condition) bool {
	c.Message = shortened(c.Message, longestMessage)
	index := slices.IndexFunc(f.Status.Conditions,
		func(old autoscalingv2.HorizontalPodAutoscalerCondition) bool { return old.Type == c.Type })
	if index < 0 {
		index = len(f.Status.Conditions)
		f.Status.Conditions = append(f.Status.Conditions, autoscalingv2.HorizontalPodAutoscalerCondition{Type: c.Type})
	}
	condition := &f.Status.Conditions[index]
	changed := condition.Status != c.Status
	if changed {
		condition.LastTransitionTime = metav1.NewTime(a.now())
	}
	wrong := c.Status == corev1.ConditionFalse && c.Type != autoscalingv2.ScalingLimited &&
		(changed || condition.Reason != c.Reason)
	if wrong {
		a.events.Eventf(f, nil, corev1.EventTypeWarning, c.Reason, "Scale", "%s", c.Message)
	}
	condition.Status, condition.Reason, condition.Message = c.Status, c.Reason, c.Message
	return wrong
}

// warn tells in events which metrics begin to fail, whether or not others decide meanwhile. Those that fail for the
// same reason are in one event: another one of that reason would be counted with it, and its message be lost.
func (a *autoscaling) warn(f *autoscalingv1alpha1.FederatedHPA, failed []autoscale.Failure) {
	var reasons []string
	messages := map[string][]string{}
	for _, failure := range failed {
		if messages[failure.Reason] == nil {
			reasons = append(reasons, failure.Reason)
		}
		messages[failure.Reason] = append(messages[failure.Reason], failure.Message)
	}
	for _, reason := range reasons {
		a.events.Eventf(f, nil, corev1.EventTypeWarning, reason, "Scale", "%s",
			shortened(strings.Join(messages[reason], "; "), longestMessage))
	}
}

func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// sameTarget ignores the version.
func sameTarget(a, b autoscalingv2.CrossVersionObjectReference) bool {
	return a.Name == b.Name && schema.FromAPIVersionAndKind(a.APIVersion,
		a.Kind).GroupKind() == schema.FromAPIVersionAndKind(b.APIVersion, b.Kind).GroupKind()
}
