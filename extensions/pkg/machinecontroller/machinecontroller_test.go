package machinecontroller

import (
	"errors"
	"testing"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
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
