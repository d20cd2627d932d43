package machinecontroller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
)

// What a provider adds runs against the shoot, knows Kubernetes' kinds, and its failure ends the program.
func TestWhatProvidersAddIsForTheShoot(t *testing.T) {
	scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	host, refused := "", errors.New("refused")
	_, err = shootManager(Options{Shoot: func(mgr manager.Manager) error {
		host = mgr.GetConfig().Host
		if kinds, _, err := mgr.GetScheme().ObjectKinds(&corev1.Service{}); err != nil || len(kinds) == 0 {
			t.Errorf("got %v, %v", kinds, err)
		}
		return refused
	}}, &rest.Config{Host: "https://shoot.example"}, scheme, logr.Discard())
	if host != "https://shoot.example" || !errors.Is(err, refused) {
		t.Errorf("got %q, %v", host, err)
	}
}

// The machine controller ends where the seed has no etcd or the shoot does not answer, so it does not begin before.
func TestBothAPIServersAreWaitedFor(t *testing.T) {
	serve := func(health int) *httptest.Server {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch r.URL.Path {
			case "/healthz":
				w.WriteHeader(health)
			case "/api":
				fmt.Fprint(w, `{"kind": "APIVersions", "versions": ["v1"]}`)
			default:
				fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`)
			}
		}))
		t.Cleanup(server.Close)
		return server
	}
	well, sick, away := serve(http.StatusOK), serve(http.StatusInternalServerError), serve(http.StatusOK)
	away.Close()
	config := func(server *httptest.Server) *rest.Config { return &rest.Config{Host: server.URL} }
	for name, test := range map[string]struct {
		clusters Clusters
		want     string
	}{
		"both":                       {Clusters{Control: config(well), Target: config(well)}, ""},
		"no shoot":                   {Clusters{Control: config(well)}, ""},
		"a shoot without etcd":       {Clusters{Control: config(well), Target: config(sick)}, ""},
		"a shoot that is away":       {Clusters{Control: config(well), Target: config(away)}, away.URL},
		"a seed without etcd":        {Clusters{Control: config(sick), Target: config(well)}, sick.URL},
		"a seed that is away":        {Clusters{Control: config(away), Target: config(well)}, away.URL},
		"a seed without etcd, alone": {Clusters{Control: config(sick)}, sick.URL},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.clusters.answer(t.Context())
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// What runs beside the machine controller in one of several replicas waits until that leads; also what providers add.
func TestCompanionsWaitUntilTheyLead(t *testing.T) {
	scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	clientset := kubernetesfake.NewClientset()
	asked := make(chan struct{}, 3)
	clientset.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case asked <- struct{}{}:
		default:
		}
		return false, nil, nil
	})
	leases := clientset.CoordinationV1().Leases("ns")
	now := metav1.NowMicro()
	held := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "companions"},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("other"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
		},
	}
	if _, err := leases.Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	options := command.Inside(scheme, logr.Discard())
	options.LeaderElection, options.RetryPeriod = true, new(10*time.Millisecond)
	options.LeaderElectionResourceLockInterface = &resourcelock.LeaseLock{
		LeaseMeta: held.ObjectMeta, Client: clientset.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "own"},
	}
	config := &rest.Config{Host: "https://seed.example"}
	companions, err := manager.New(config, options)
	if err != nil {
		t.Fatal(err)
	}
	shoot, err := manager.New(config, command.Inside(scheme, logr.Discard()))
	if err != nil {
		t.Fatal(err)
	}
	works := make(chan struct{})
	err = errors.Join(addElected(companions, shoot), shoot.Add(manager.RunnableFunc(func(context.Context) error {
		close(works)
		return nil
	})))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- companions.Start(ctx) }()
	for range 3 {
		<-asked
	}
	select {
	case <-works:
		t.Error("it works while another one leads")
	default:
	}
	free := held.DeepCopy()
	free.Spec.HolderIdentity = new("")
	if _, err := leases.Update(t.Context(), free, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	<-works
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
