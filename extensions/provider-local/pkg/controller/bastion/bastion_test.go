package bastion

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
)

// cloud notes what it is asked for, and answers with a status.
type cloud struct {
	asked  []string
	put    api.Bastion
	status int
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked = append(c.asked, r.Method+" "+r.URL.Path)
	if c.status != 0 {
		w.WriteHeader(c.status)
		_ = json.NewEncoder(w).Encode(api.Error{Message: "refused"})
		return
	}
	_ = json.NewDecoder(r.Body).Decode(&c.put)
	_ = json.NewEncoder(w).Encode(api.Bastion{Address: "172.18.0.208"})
}

func setting(t *testing.T) (*actuator, *cloud) {
	t.Helper()
	c := &cloud{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "local-cloud", Name: "local-cloud"},
		Data:       map[string][]byte{"token": []byte("t")},
	}
	return &actuator{credentials: credentials.Source{
		Reader: fake.NewClientBuilder().WithObjects(token).Build(), Endpoint: server.URL,
		Secret: client.ObjectKeyFromObject(token),
	}}, c
}

func aBastion(userData []byte) *extensionsv1alpha1.Bastion {
	return &extensionsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "cli-1"},
		Spec: extensionsv1alpha1.BastionSpec{
			UserData: userData,
			Ingress: []extensionsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.0/24", Except: []string{"203.0.113.9/32"}}},
			},
		},
	}
}

// The cloud gets what gardenlet has written, for the network of this shoot, and tells the address.
func TestBastionOfAShoot(t *testing.T) {
	access, err := bastionaccess.New("ssh-ed25519 AAAA alice")
	if err != nil {
		t.Fatal(err)
	}
	a, cloud := setting(t)
	object := aBastion(access.UserData())
	if err := a.Reconcile(t.Context(), logr.Discard(), object, nil); err != nil {
		t.Fatal(err)
	}
	want := api.Bastion{
		Name: "shoot--demo--one.cli-1", Network: "shoot--demo--one", AuthorizedKey: access.AuthorizedKey,
		HostKey: access.HostKey,
		Ingress: []networkingv1.IPBlock{{CIDR: "203.0.113.0/24", Except: []string{"203.0.113.9/32"}}},
	}
	if difference := cmp.Diff(want, cloud.put); difference != "" {
		t.Error(difference)
	}
	if object.Status.Ingress == nil || object.Status.Ingress.IP != "172.18.0.208" {
		t.Errorf("address %+v", object.Status.Ingress)
	}
	if err := a.Delete(t.Context(), logr.Discard(), object, nil); err != nil {
		t.Fatal(err)
	}
	path := "/v1/bastions/shoot--demo--one.cli-1"
	if !slices.Equal(cloud.asked, []string{"PUT " + path, "DELETE " + path}) {
		t.Errorf("asked %q", cloud.asked)
	}
}

// User data of others makes no bastion, and refusals have codes.
func TestBastionsThatCannotBe(t *testing.T) {
	access, err := bastionaccess.New("ssh-ed25519 AAAA alice")
	if err != nil {
		t.Fatal(err)
	}
	problem := []gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem}
	a, cloud := setting(t)
	err = a.Reconcile(t.Context(), logr.Discard(), aBastion([]byte("#!/bin/sh\n")), nil)
	if err == nil || !slices.Equal(extension.Codes(err), problem) || len(cloud.asked) > 0 {
		t.Errorf("got %v, asked %q", err, cloud.asked)
	}
	cloud.status = http.StatusConflict
	object := aBastion(access.UserData())
	for name, act := range map[string]func(context.Context, logr.Logger, *extensionsv1alpha1.Bastion) error{
		"made": func(ctx context.Context, log logr.Logger, b *extensionsv1alpha1.Bastion) error {
			return a.Reconcile(ctx, log, b, nil)
		},
		"removed": func(ctx context.Context, log logr.Logger, b *extensionsv1alpha1.Bastion) error {
			return a.Delete(ctx, log, b, nil)
		},
	} {
		if err := act(t.Context(), logr.Discard(), object); err == nil || !strings.Contains(err.Error(), "refused") ||
			!slices.Equal(extension.Codes(err), problem) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if object.Status.Ingress != nil {
		t.Error("an address is told of a bastion that is none")
	}
}
