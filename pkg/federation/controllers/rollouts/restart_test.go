package rollouts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
)

var errKilled = errors.New("killed")

// mortal is a fleet whose controllers are killed before a write, once.
type mortal struct {
	client.Client
	left int
}

func newMortal(t *testing.T, left int, objects ...client.Object) *mortal {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	m := &mortal{left: left}
	m.Client = fake.NewClientBuilder().
		WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&workv1alpha2.ResourceBinding{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object,
				options ...client.CreateOption) error {
				return m.write(func() error { return c.Create(ctx, object, options...) })
			},
			Delete: func(ctx context.Context, c client.WithWatch, object client.Object,
				options ...client.DeleteOption) error {
				return m.write(func() error { return c.Delete(ctx, object, options...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object,
				patch client.Patch, options ...client.SubResourcePatchOption) error {
				return m.write(func() error { return c.SubResource(sub).Patch(ctx, object, patch, options...) })
			},
		}).Build()
	return m
}

func (m *mortal) write(do func() error) error {
	m.left--
	if m.left == 0 {
		return errKilled
	}
	return do()
}

// TestKillBeforeEveryWrite: whenever the controllers are killed, what is stored afterwards is what it would have been.
func TestKillBeforeEveryWrite(t *testing.T) {
	want, survived := history(t, 0)
	if !survived {
		t.Fatal("killed without a reason")
	}
	for n := 1; ; n++ {
		got, survived := history(t, n)
		if got != want {
			t.Errorf("killed before write %d:\n%s\nwant\n%s", n, got, want)
		}
		if survived {
			if n < 5 {
				t.Errorf("only %d writes", n-1)
			}
			return
		}
	}
}

// history has an object change several times, and gives what is stored in the end.
func history(t *testing.T, killBefore int) (result string, survived bool) {
	t.Helper()
	b := &workv1alpha2.ResourceBinding{}
	b.Namespace, b.Name = "shop", "web-deployment"
	b.Spec.Replicas, b.Spec.Clusters = 3, []workv1alpha2.TargetCluster{{Name: "one", Replicas: 3}}
	b.Spec.Rollout = &policyv1alpha1.RolloutStrategy{
		Waves: []policyv1alpha1.RolloutWave{{Name: "all"}}, RevisionHistoryLimit: new(int32(1)),
	}
	m := newMortal(t, killBefore, b)
	survived = true
	var stage *Stage
	for _, image := range []string{"web:1", "web:2", "web:3", "web:1", "web:4"} {
		template := object(t, web)
		containers := []any{map[string]any{"name": "web", "image": image}}
		if err := unstructured.SetNestedSlice(template.Object, containers, "spec", "template", "spec",
			"containers"); err != nil {
			t.Fatal(err)
		}
		for {
			r := &Rollouts{
				Client: m, Live: m, Interpreter: interpreter.New(), Events: events.NewFakeRecorder(100),
				Now: func() time.Time { return time.Unix(1_800_000_000, 0) },
			}
			var err error
			if _, stage, err = r.Stage(t.Context(), b, template, nil); err == nil {
				break
			}
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			survived = false
		}
		if _, _, err := stage.TemplateFor("elsewhere", template); err != nil {
			t.Fatalf("what clusters have whose wave has not come: %v", err)
		}
	}
	return stored(t, m), survived
}

func stored(t *testing.T, m *mortal) string {
	t.Helper()
	var secrets corev1.SecretList
	if err := m.List(t.Context(), &secrets, client.InNamespace(workv1alpha2.RevisionsNamespace)); err != nil {
		t.Fatal(err)
	}
	var kept []string
	for _, s := range secrets.Items {
		kept = append(kept, s.Annotations[workv1alpha2.RevisionAnnotation])
	}
	slices.Sort(kept)
	b := &workv1alpha2.ResourceBinding{}
	if err := m.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "web-deployment"}, b); err != nil {
		t.Fatal(err)
	}
	s := b.Status.Rollout
	return fmt.Sprintf("kept %v\nrollout %d %s stable %s update %s wave %d\nrevisions %v", kept, s.Number, s.Phase,
		s.StableRevision, s.UpdateRevision, s.CurrentWave, s.Revisions)
}
