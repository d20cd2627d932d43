package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func newFlagSet(options *etcd.Options) *pflag.FlagSet {
	flags := pflag.NewFlagSet("etcd-steward", pflag.ContinueOnError)
	options.AddFlags(flags)
	return flags
}

// systemObjects are all objects that a shoot starts with, and, to let a real server check them too, the policies of its
// namespace in the seed.
func (cp *controlPlane) systemObjects(t *testing.T) []client.Object {
	t.Helper()
	shoot := &gardencorev1beta1.ShootSpec{
		Provider: gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Name: "pool"}}},
	}
	facts := component.Facts{
		Images: map[string]string{}, PodNetworks: []string{"10.3.0.0/16"}, DNS: "10.4.0.10",
		Hostname: "api.member1.demo.local.trellis.garden", TunnelEndpoint: "gw:51820", ProxyEndpoint: "gw:8443",
		NodeAgentSecrets: []string{"osc"},
	}
	for _, name := range components.Images() {
		facts.Images[name] = name
	}
	builder := &components.Builder{Secrets: cp.secrets, Values: components.Decide(facts, shoot)}
	objects := networkpolicies.Objects(networkpolicies.Shoot, "default", networkpolicies.Values{
		Networks: gardencorev1beta1.SeedNetworks{Pods: "10.1.0.0/16", Services: "10.2.0.0/16"},
	})
	for _, c := range components.System {
		made, err := c.Objects(t.Context(), builder)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		objects = append(objects, made...)
	}
	return objects
}

// growEtcd has a real server take the objects of an etcd that gets other members, and its controller start those beside
// the first pod, which stays. No node runs these pods: the first is said to be ready, the others never are, which is
// when the order matters.
func (cp *controlPlane) growEtcd(t *testing.T) {
	target, err := client.New(cp.adminConfig(t), client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		t.Fatal(err)
	}
	const namespace = "default"
	manager, err := secrets.New(t.Context(), target, namespace, secrets.Options{})
	if err == nil {
		err = component.GenerateCertificateAuthorities(t.Context(), manager,
			[]string{component.CAETCD, component.CAETCDPeer})
	}
	if err != nil {
		t.Fatal(err)
	}
	deploy := func(ctx context.Context, availability component.Availability) error {
		values := etcdcomponent.Decide(etcdcomponent.Main)(component.Facts{
			Availability: availability, Images: map[string]string{"etcd-steward": "etcd"},
		})
		return etcdcomponent.New(target, namespace, manager, values).Deploy(ctx)
	}
	if err := deploy(t.Context(), component.Availability{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	first := client.ObjectKey{Namespace: namespace, Name: "etcd-main-0"}
	cp.eventually(t, "there is a single member", func(ctx context.Context) error {
		if err := target.Get(ctx, first, pod); err != nil {
			return err
		}
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		return target.Status().Update(ctx, pod)
	})
	cp.eventually(t, "there are three members", func(ctx context.Context) error {
		err := deploy(ctx, component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone})
		if err != nil {
			return err
		}
		set := &appsv1.StatefulSet{}
		if err := target.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set); err != nil {
			return err
		}
		if *set.Spec.Replicas != 3 || set.Status.Replicas != 3 || set.Status.UpdatedReplicas != 2 {
			return fmt.Errorf("%d are wanted, %d of the new template are there", *set.Spec.Replicas,
				set.Status.UpdatedReplicas)
		}
		return nil
	})
	for i, name := range etcdcomponent.PodNames(etcdcomponent.Main, 3) {
		member := &corev1.Pod{}
		if err := target.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, member); err != nil {
			t.Fatal(err)
		}
		arguments := member.Spec.Containers[0].Args
		if (member.UID == pod.UID) != (i == 0) || slices.Contains(arguments, "--single-member") != (i == 0) ||
			!strings.Contains(strings.Join(arguments, " "), "--members=etcd-main-0=https://") {
			t.Errorf("%s, with UID %s and %q, is not of before, or knows no others", name, member.UID, arguments)
		}
	}
}
