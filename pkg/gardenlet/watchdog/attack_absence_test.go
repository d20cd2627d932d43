package watchdog

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
)

const victims = "shoot--v--v"

// victim is another shoot of the seed, all of which is well: its nodes renew their Leases.
type victim struct {
	*bench
	api   *shootAPI
	shoot *gardencorev1beta1.Shoot
	nodes []string
}

func newVictim(b *bench) *victim {
	b.t.Helper()
	v := &victim{bench: b, api: &shootAPI{}, shoot: aShoot(), nodes: []string{"v1", "v2", "v3"}}
	v.shoot.Namespace, v.shoot.Name, v.shoot.Status.TechnicalID = "garden-v", "v", victims
	v.create(b.garden, v.shoot)
	for _, deployment := range []string{kcm, mcm, ca} {
		d := aDeployment(deployment, 1)
		d.Namespace = victims
		v.create(b.seed, d)
	}
	for _, node := range v.nodes {
		machine := aMachine(node, nil)
		machine.Namespace = victims
		v.create(b.seed, machine)
	}
	for _, service := range []string{kubeapiserver.Name, etcdcomponent.ClientServiceName(etcdcomponent.Main)} {
		v.endpointsOf(service, true)
	}
	server := httptest.NewServer(v.api)
	b.t.Cleanup(server.Close)
	own := b.prober.Connect
	b.prober.Connect = func(ctx context.Context, namespace string) (kubernetes.Interface, error) {
		if namespace == victims {
			return kubernetes.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
		}
		return own(ctx, namespace)
	}
	return v
}

func (v *victim) create(c client.Client, object client.Object) {
	v.t.Helper()
	if err := c.Create(v.t.Context(), object); err != nil {
		v.t.Fatal(err)
	}
}

// endpointsOf adds an EndpointSlice of the victim's.
func (v *victim) endpointsOf(service string, ready bool) {
	v.t.Helper()
	slice := sliceOf(service, ready)
	slice.Namespace, slice.Name = victims, fmt.Sprintf("%s-%t", service, ready)
	v.create(v.seed, slice)
}

// look has both shoots looked at, and time pass.
func (v *victim) look(objects ...client.Object) {
	v.t.Helper()
	v.api.renew(v.now, v.nodes...)
	for _, object := range objects {
		if _, err := v.prober.Reconcile(v.t.Context(),
			ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)}); err != nil {
			v.t.Fatal(err)
		}
	}
	v.now = v.now.Add(probePeriod)
}

// TestAttackAbsenceOfAnother plays who wants the controllers of another's shoot stopped, kube-controller-manager first,
// by an API server that seems to be away or nodes that seem to be silent: an owner of a shoot, root on its workers, who
// rules its API server, or an extension that may write in its namespace of the seed. Only the own shoot loses them, and
// only of that an event tells.
func TestAttackAbsenceOfAnother(t *testing.T) {
	others := aShoot()
	others.Name, others.Spec.SeedName, others.Status.SeedName = "other", new("other"), new("other")
	others.Status.TechnicalID = victims
	for name, attack := range map[string]func(*bench, *victim){
		"its API server is away": func(b *bench, _ *victim) {
			b.api.answer(http.StatusServiceUnavailable)
			b.endpoints(kubeapiserver.Name, false)
		},
		"its etcd is away, and it has EndpointSlices that name the other's": func(b *bench, v *victim) {
			b.api.answer(http.StatusServiceUnavailable)
			b.endpoints(etcdcomponent.ClientServiceName(etcdcomponent.Main), false)
			for _, service := range []string{kubeapiserver.Name + "." + victims, victims + "." + kubeapiserver.Name} {
				v.create(b.seed, sliceOf(service, false))
			}
		},
		"its nodes are called as the other's, and silent": func(b *bench, v *victim) {
			for _, node := range v.nodes {
				v.create(b.seed, aMachine(node, nil))
			}
			b.api.renew(b.now.Add(-time.Hour), v.nodes...)
		},
		"the other's API server is kept so busy that it does not answer": func(_ *bench, v *victim) {
			v.api.answer(http.StatusServiceUnavailable)
		},
		"the other's API server is kept so busy that it says so": func(b *bench, v *victim) {
			v.api.answer(http.StatusTooManyRequests)
			v.endpointsOf(kubeapiserver.Name, false)
		},
		"a shoot of another seed has the other's namespace": func(b *bench, v *victim) {
			v.create(b.garden, others.DeepCopy())
			b.api.answer(http.StatusServiceUnavailable)
			b.endpoints(kubeapiserver.Name, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, three...)
			v := newVictim(b)
			v.look(aShoot(), v.shoot)
			attack(b, v)
			for range 60 {
				v.look(aShoot(), others, v.shoot)
			}
			for _, controller := range []string{kcm, mcm, ca} {
				d := aDeployment(controller, 0)
				d.Namespace = victims
				if err := b.seed.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
					t.Fatal(err)
				}
				if *d.Spec.Replicas != 1 || len(d.Annotations) > 0 {
					t.Errorf("%s has %d replicas, annotations %v", controller, *d.Spec.Replicas, d.Annotations)
				}
			}
			for _, told := range b.told {
				if !strings.HasPrefix(told, "garden-a/b: ") {
					t.Errorf("an event tells of %s", told)
				}
			}
		})
	}
}
