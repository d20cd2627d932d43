package failover

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/jsonpath"

	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/core"
	"github.com/trellis-garden/trellis/pkg/federation/karmada"
)

// DefaultTolerationSeconds is how long a copy may be unhealthy when the policy doesn't say.
const DefaultTolerationSeconds = 300

// NoteUnhealthy brings the list of unhealthy copies up to date: the clock of a copy starts when it is first seen to be
// unhealthy, and ends when it is healthy again or the cluster is left.
func NoteUnhealthy(spec *workv1alpha2.ResourceBindingSpec, status *workv1alpha2.ResourceBindingStatus,
	now time.Time) []workv1alpha2.UnhealthyCopy {
	if spec.Failover == nil || spec.Failover.Application == nil {
		return nil
	}
	var result []workv1alpha2.UnhealthyCopy
	for _, item := range status.AggregatedStatus {
		known := slices.IndexFunc(status.UnhealthyCopies,
			func(c workv1alpha2.UnhealthyCopy) bool { return c.ClusterName == item.ClusterName })
		switch {
		case item.Health != workv1alpha2.ResourceUnhealthy || !hasTarget(spec.Clusters, item.ClusterName):
		case known >= 0:
			result = append(result, status.UnhealthyCopies[known])
		default:
			result = append(result, workv1alpha2.UnhealthyCopy{
				ClusterName: item.ClusterName, Since: metav1.NewTime(now),
			})
		}
	}
	return result
}

// Unbearable gives the clusters whose copy has been unhealthy for longer than the policy tolerates, and when the next
// one will be; zero if none.
func Unbearable(spec *workv1alpha2.ResourceBindingSpec, copies []workv1alpha2.UnhealthyCopy,
	now time.Time) (clusters []string, next time.Duration) {
	if spec.Failover == nil || spec.Failover.Application == nil {
		return nil, 0
	}
	limit := DefaultTolerationSeconds * time.Second
	if seconds := spec.Failover.Application.DecisionConditions.TolerationSeconds; seconds != nil {
		limit = time.Duration(*seconds) * time.Second
	}
	for _, c := range copies {
		if !hasTarget(spec.Clusters, c.ClusterName) {
			continue
		}
		if left := limit - now.Sub(c.Since.Time); left <= 0 {
			clusters = append(clusters, c.ClusterName)
		} else if next == 0 || left < next {
			next = left
		}
	}
	return clusters, next
}

// Elsewhere tells whether another cluster takes the object, or has it, when it leaves one.
func Elsewhere(clusters core.Snapshot, spec *workv1alpha2.ResourceBindingSpec,
	status *workv1alpha2.ResourceBindingStatus, e Eviction, now time.Time) (bool, error) {
	left := spec.DeepCopy()
	if !Evict(left, e, now) {
		return false, nil
	}
	binding, err := karmada.Binding(left, status)
	if err != nil {
		return false, err
	}
	decision := core.Decide(clusters, binding)
	return decision.Failure == nil && len(decision.Targets) > 0, nil
}

// PreservedLabels evaluates the rules against the status of the copy in a cluster. A rule whose path leads nowhere
// gives no label; other rules that cannot be applied are reported.
func PreservedLabels(rules *policyv1alpha1.StatePreservation, items []workv1alpha2.AggregatedStatusItem,
	cluster string) (map[string]string, error) {
	if rules == nil || len(rules.Rules) == 0 {
		return nil, nil
	}
	i := slices.IndexFunc(items, func(item workv1alpha2.AggregatedStatusItem) bool {
		return item.ClusterName == cluster
	})
	if i < 0 || items[i].Status == nil {
		return nil, nil
	}
	var status any
	if err := json.Unmarshal(items[i].Status.Raw, &status); err != nil {
		return nil, fmt.Errorf("status of the copy in cluster %s: %w", cluster, err)
	}
	labels := map[string]string{}
	for j, rule := range rules.Rules {
		value, err := evaluate(rule.JSONPath, status)
		if err != nil {
			return nil, fmt.Errorf("statePreservation.rules[%d].jsonPath: %w", j, err)
		}
		if value != "" {
			labels[rule.AliasLabelName] = value
		}
	}
	return labels, nil
}

func evaluate(path string, status any) (string, error) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "{"), "}")
	parser := jsonpath.New("statePreservation").AllowMissingKeys(true)
	if err := parser.Parse("{" + path + "}"); err != nil {
		return "", err
	}
	var text strings.Builder
	if err := parser.Execute(&text, status); err != nil {
		return "", err
	}
	return text.String(), nil
}
