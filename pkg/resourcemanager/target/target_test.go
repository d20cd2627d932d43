package target

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	resourcesv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/resources/v1alpha1"
)

const shootKubeconfig = `
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: https://127.0.0.1:1}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`

func TestRegistry(t *testing.T) {
	seed := fake.NewClientBuilder().Build()
	registry := NewStaticRegistry(seed)
	if _, err := registry.Shoot(t.Context(), "ns"); !errors.Is(err, ErrNoTarget) {
		t.Errorf("without a Secret: %v", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: SecretName},
		Data:       map[string][]byte{SecretKey: []byte(shootKubeconfig)},
	}
	if err := seed.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	first := shoot(t, registry)
	if shoot(t, registry) != first {
		t.Error("the client is built anew although nothing changed")
	}
	registry.Refresh("ns", secret.ResourceVersion)
	if shoot(t, registry) != first || first.Context().Err() != nil {
		t.Error("an event of the known version forgets the client")
	}
	registry.Refresh("ns", "other")
	if first.Context().Err() == nil {
		t.Error("a changed Secret does not end what depends on the old client")
	}
	if shoot(t, registry) == first {
		t.Error("a changed Secret gives the old client")
	}
}

func TestHibernatedShootsAreNotAsked(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: SecretName, Annotations: map[string]string{resourcesv1alpha1.Asleep: "true"},
		},
		Data: map[string][]byte{SecretKey: []byte(shootKubeconfig)},
	}
	target := shoot(t, NewStaticRegistry(fake.NewClientBuilder().WithObjects(secret).Build()))
	target.probe = func(context.Context) error {
		t.Error("the API server is asked")
		return nil
	}
	if err := target.Ready(t.Context()); !errors.Is(err, ErrNotReady) {
		t.Errorf("got %v", err)
	}
	if got := target.RetryAfter(); got != asleepFor {
		t.Errorf("retry after %s", got)
	}
}

func TestReady(t *testing.T) {
	asked := 0
	answer := errors.New("refused")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	target := &Target{ctx: ctx, forget: cancel, probe: func(context.Context) error { asked++; return answer }}
	for range 3 {
		if err := target.Ready(t.Context()); !errors.Is(err, ErrNotReady) {
			t.Errorf("got %v", err)
		}
	}
	if asked != 1 {
		t.Errorf("%d questions for one answer", asked)
	}
	if got := target.RetryAfter(); got != notReadyFor {
		t.Errorf("retry after %s", got)
	}
	answer = nil
	target.Suspect()
	if err := target.Ready(t.Context()); err != nil || asked != 2 {
		t.Errorf("after %d questions: %v", asked, err)
	}
}

func TestRetriesGetRarer(t *testing.T) {
	for _, test := range []struct{ down, want time.Duration }{
		{time.Second, notReadyFor}, {2 * time.Minute, 2 * time.Second}, {time.Hour, 10 * time.Second},
	} {
		target := &Target{downSince: time.Now().Add(-test.down)}
		if got := target.RetryAfter(); got != test.want {
			t.Errorf("down for %s: retry after %s, want %s", test.down, got, test.want)
		}
	}
}

func TestDoubtsComeFromTimeToTime(t *testing.T) {
	now := time.Now()
	target := &Target{downSince: now.Add(-time.Minute)}
	if !target.doubtful(now) || target.doubtful(now.Add(time.Second)) || !target.doubtful(now.Add(doubtAfter)) {
		t.Error("the Secret of a target that is away is not looked at once in a while")
	}
	if (&Target{}).doubtful(now) {
		t.Error("a target that answers is doubted")
	}
}

func shoot(t *testing.T, registry *Registry) *Target {
	t.Helper()
	target, err := registry.Shoot(t.Context(), "ns")
	if err != nil {
		t.Fatal(err)
	}
	return target
}
