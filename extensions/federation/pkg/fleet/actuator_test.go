package fleet

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
)

const namespaceOfFleet = "shoot--demo--fleet"

func extensionOf(config string) *extensionsv1alpha1.Extension {
	object := &extensionsv1alpha1.Extension{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: Type}}
	if config != "" {
		object.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(config)}
	}
	return object
}

func shootWith(hibernated bool, annotations map[string]string) *cluster.Cluster {
	shoot := &gardencorev1beta1.Shoot{}
	shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &hibernated}
	return &cluster.Cluster{Name: namespaceOfFleet, Shoot: shoot, Annotations: annotations}
}

// A fleet that sleeps loses its controllers only: what it has propagated goes on in its members.
func TestHibernationStopsTheControllers(t *testing.T) {
	for _, replicas := range []int32{1, component.Pair} {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: Name},
			Spec:       appsv1.DeploymentSpec{Replicas: &replicas},
		}
		c := fake.NewClientBuilder().WithObjects(deployment).Build()
		a := &Actuator{Client: c}
		for range 2 {
			if err := a.Reconcile(t.Context(), logr.Discard(), extensionOf(""), shootWith(true, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil ||
			*deployment.Spec.Replicas != 0 {
			t.Errorf("%d replicas: got %v, %v", replicas, deployment.Spec.Replicas, err)
		}
	}
	never := &Actuator{Client: fake.NewClientBuilder().Build()}
	if err := never.Reconcile(t.Context(), logr.Discard(), extensionOf(""), shootWith(true, nil)); err != nil {
		t.Errorf("a fleet that was created asleep: %v", err)
	}
}

// Everything in the seed goes, also when the fleet's API is gone already, and nothing of others.
func TestDeletionLeavesNothing(t *testing.T) {
	foreign := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: "shoot-access-cluster-autoscaler"},
	}
	ours := []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: Name}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: vpnv1alpha1.ServedAPIs}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: fleetv1alpha1.AccessSecret},
		},
		&networkingv1.NetworkPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: networkPolicyName},
		},
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: Name}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: certificateName}},
	}
	c := fake.NewClientBuilder().WithObjects(append(ours, foreign)...).Build()
	a := &Actuator{Client: c}
	for range 2 {
		if err := a.Delete(t.Context(), logr.Discard(), extensionOf(""), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range ours {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T: %v", object, err)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
		t.Error(err)
	}
}

// What has to be there first is named, and nothing is begun without it.
func TestWhatAFleetWaitsFor(t *testing.T) {
	kubeconfig := map[string]string{
		gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName: "generic-token-kubeconfig",
	}
	for name, test := range map[string]struct {
		config      string
		annotations map[string]string
		want        string
	}{
		"a wrong setting":  {`{"memory":"much"}`, kubeconfig, "memory"},
		"the kubeconfig":   {"", nil, gardencorev1beta1.AnnotationGenericTokenKubeconfigSecretName},
		"the egress proxy": {"", kubeconfig, gardencorev1beta1.AnnotationEgressClientSecretName},
	} {
		c := fake.NewClientBuilder().Build()
		err := (&Actuator{Client: c}).Reconcile(t.Context(), logr.Discard(), extensionOf(test.config),
			shootWith(false, test.annotations))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
		secrets := &corev1.SecretList{}
		if err := c.List(t.Context(), secrets); err != nil || len(secrets.Items) > 0 {
			t.Errorf("%s: %v, %v", name, secrets.Items, err)
		}
	}
}

// Replicas of a highly available fleet have a budget and one certificate, which stays while it is good; and they are
// back after the fleet has slept.
func TestReplicasOfAHighlyAvailableFleet(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOfFleet, Name: fleetv1alpha1.AccessSecret},
		Data:       map[string][]byte{"token": []byte("token")},
	}).Build()
	a := &Actuator{Client: c, Image: "federation:1"}
	values := deploymentValues{
		kubeconfig: "kubeconfig", egressClient: "egress", image: a.Image, serves: true,
		availability: component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeNode},
	}
	key := client.ObjectKey{Namespace: namespaceOfFleet, Name: Name}
	secret, before := &corev1.Secret{}, []byte(nil)
	for range 2 {
		if err := a.deploy(t.Context(), namespaceOfFleet, values); err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		if err := c.Get(t.Context(), key, deployment); err != nil || *deployment.Spec.Replicas != component.Pair {
			t.Errorf("%v replicas, %v", deployment.Spec.Replicas, err)
		}
		if err := c.Get(t.Context(), key, &policyv1.PodDisruptionBudget{}); err != nil {
			t.Error(err)
		}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespaceOfFleet, Name: certificateName},
			secret); err != nil {
			t.Fatal(err)
		}
		certificate := secret.Data[corev1.TLSCertKey]
		if !memberapi.IsCertificate(certificate, secret.Data[corev1.TLSPrivateKeyKey], time.Now()) ||
			before != nil && !bytes.Equal(certificate, before) {
			t.Errorf("certificate %s, before %s", certificate, before)
		}
		before = certificate
		if err := a.stop(t.Context(), logr.Discard(), namespaceOfFleet); err != nil {
			t.Fatal(err)
		}
	}
	secret.Data[corev1.TLSCertKey] = []byte("damaged")
	if err := c.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	again, err := a.ensureCertificate(t.Context(), namespaceOfFleet)
	if err != nil || !memberapi.IsCertificate(again.Data[corev1.TLSCertKey], again.Data[corev1.TLSPrivateKeyKey],
		time.Now()) {
		t.Errorf("a damaged certificate stays: %v", err)
	}
}
