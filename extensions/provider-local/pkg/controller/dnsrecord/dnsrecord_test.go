package dnsrecord

import (
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/server"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// setting is an actuator with a cloud that has one record of its operator.
func setting(t *testing.T) *actuator {
	t.Helper()
	own := []api.Record{{FQDN: "garden.local.example", Type: "A", Values: []string{"172.18.0.2"}, TTL: 120}}
	cloud := httptest.NewServer(server.New(server.Options{
		StateDir: t.TempDir(), Token: "right", Zone: "local.example", Records: own, Log: logr.Discard(),
	}).Handler())
	t.Cleanup(cloud.Close)
	builder := fake.NewClientBuilder()
	for _, token := range []string{"right", "wrong"} {
		builder.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: token},
			Data:       map[string][]byte{"token": []byte(token)},
		})
	}
	return &actuator{
		credentials: credentials.Source{Reader: builder.Build(), Endpoint: cloud.URL}, zone: "local.example",
	}
}

func record(name, secret string, kind extensionsv1alpha1.DNSRecordType,
	values ...string) *extensionsv1alpha1.DNSRecord {
	return &extensionsv1alpha1.DNSRecord{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--demo--one", Name: "one-external"},
		Spec: extensionsv1alpha1.DNSRecordSpec{
			Name: name, RecordType: kind, Values: values,
			SecretRef: corev1.SecretReference{Namespace: "garden", Name: secret},
		},
	}
}

// A record is made, changed and removed, each step as often as anybody likes.
func TestRecordsComeAndGo(t *testing.T) {
	a := setting(t)
	for _, values := range [][]string{{"172.18.0.2"}, {"172.18.0.2"}, {"172.18.0.3"}} {
		object := record("api.one.local.example", "right", extensionsv1alpha1.DNSRecordTypeA, values...)
		if err := a.Reconcile(t.Context(), logr.Discard(), object, nil); err != nil {
			t.Fatal(err)
		}
		if object.Status.Zone == nil || *object.Status.Zone != "local.example" {
			t.Errorf("got zone %v", object.Status.Zone)
		}
	}
	for range 2 {
		if err := a.Delete(t.Context(), logr.Discard(),
			record("api.one.local.example", "right", extensionsv1alpha1.DNSRecordTypeA), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// What the user has to mend has a code, so that gardenlet says so at once; the rest has none and is tried again.
func TestErrorsHaveCodes(t *testing.T) {
	a := setting(t)
	away := &actuator{
		credentials: credentials.Source{Reader: a.credentials.Reader, Endpoint: "http://127.0.0.1:1"}, zone: a.zone,
	}
	for name, test := range map[string]struct {
		actuator *actuator
		record   *extensionsv1alpha1.DNSRecord
		want     []gardencorev1beta1.ErrorCode
	}{
		"a wrong token": {
			a, record("api.one.local.example", "wrong", "A", "172.18.0.2"),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorInfraUnauthenticated},
		},
		"a value that is no address": {
			a, record("api.one.local.example", "right", "A", "nowhere"),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem},
		},
		"a name of the operator": {
			a, record("garden.local.example", "right", "A", "10.0.0.1"),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem},
		},
		"a name in no zone of its": {
			a, record("api.example.com", "right", "A", "10.0.0.1"),
			[]gardencorev1beta1.ErrorCode{gardencorev1beta1.ErrorConfigurationProblem},
		},
		"a cloud that is away": {away, record("api.one.local.example", "right", "A", "172.18.0.2"), nil},
	} {
		err := test.actuator.Reconcile(t.Context(), logr.Discard(), test.record, nil)
		if err == nil || !slices.Equal(extension.Codes(err), test.want) {
			t.Errorf("%s: got %v with %v", name, err, extension.Codes(err))
		}
		if test.record.Status.Zone != nil {
			t.Errorf("%s: reported as done", name)
		}
	}
}

// Names have one form, or the same record would be made twice; the TTL is the user's, or the published default.
func TestWanted(t *testing.T) {
	ttl := int64(30)
	object := record("API.One.local.example.", "right", "CNAME", "gateway.local.example")
	object.Spec.TTL = &ttl
	if got := wanted(object); got.FQDN != "api.one.local.example" || got.TTL != 30 || got.Type != "CNAME" {
		t.Errorf("got %+v", got)
	}
	object.Spec.TTL = nil
	if got := wanted(object); got.TTL != uint32(extensionsv1alpha1.DefaultDNSRecordTTL) ||
		strings.HasSuffix(got.FQDN, ".") {
		t.Errorf("got %+v", got)
	}
}
