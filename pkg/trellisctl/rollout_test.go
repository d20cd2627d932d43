package trellisctl

import (
	"bytes"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/bindings"
)

// TestRolloutsThatWereNotLookedAt: what is stored about a rollout is not the truth before the controllers have seen the
// object and what was asked for.
func TestRolloutsThatWereNotLookedAt(t *testing.T) {
	scheme := fleetscheme.Scheme()
	key := bindings.TemplateKey{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		NamespacedName:   types.NamespacedName{Namespace: "shop", Name: "web"},
	}
	tests := map[string]struct {
		generation int64
		control    *workv1alpha2.RolloutControl
		want       string
	}{
		"nothing new": {7, nil, ""},
		"a change":    {8, nil, "the object was changed (generation 8)"},
		"an undo": {
			7, &workv1alpha2.RolloutControl{Undo: &workv1alpha2.RolloutUndo{Number: 2, Revision: "a"}},
			"undo was asked for",
		},
		"an object that is gone": {0, nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if tc.generation != 0 {
				builder.WithObjects(&appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Generation: tc.generation},
				})
			}
			b := &workv1alpha2.ResourceBinding{Spec: workv1alpha2.ResourceBindingSpec{RolloutControl: tc.control}}
			b.Status.Rollout = &workv1alpha2.RolloutStatus{
				Number: 2, Phase: workv1alpha2.RolloutCompleted, StableRevision: "b", UpdateRevision: "b",
				Revisions: []workv1alpha2.RolloutRevision{
					{Revision: "a", Number: 1, TemplateGeneration: 5},
					{Revision: "b", Number: 2, TemplateGeneration: 7},
				},
			}
			got, err := (&Fleet{Client: builder.Build()}).pending(t.Context(), key, b)
			if err != nil || !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// TestRolloutStatusNamesWhatIsWrongWithThePolicy: a policy that was written before the fleet refused such a selector is
// still there.
func TestRolloutStatusNamesWhatIsWrongWithThePolicy(t *testing.T) {
	wave := func(value string) policyv1alpha1.RolloutWave {
		return policyv1alpha1.RolloutWave{Name: "canary", ClusterAffinity: &policyv1alpha1.ClusterAffinity{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"stage": value}},
		}}
	}
	tests := map[string]struct {
		waves []policyv1alpha1.RolloutWave
		want  string
	}{
		"nothing": {[]policyv1alpha1.RolloutWave{wave("first")}, ""},
		"a selector": {
			[]policyv1alpha1.RolloutWave{{Name: "a"}, wave("not a value")},
			"Problem:   correct the policy before the next change: " +
				"spec.rollout.waves[1].clusterAffinity.labelSelector: ",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := &workv1alpha2.ResourceBinding{
				Spec: workv1alpha2.ResourceBindingSpec{Rollout: &policyv1alpha1.RolloutStrategy{Waves: tc.waves}},
			}
			b.Status.Rollout = &workv1alpha2.RolloutStatus{
				Number: 2, Phase: workv1alpha2.RolloutCompleted, StableRevision: "b", UpdateRevision: "b",
			}
			var out bytes.Buffer
			if err := printRollout(&out, b, "", time.Now()); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out.String(), tc.want) || tc.want == "" && strings.Contains(out.String(), "Problem:") {
				t.Errorf("got\n%swant %q", out.String(), tc.want)
			}
		})
	}
}
