package binding

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

var key = client.ObjectKey{Namespace: "garden-demo", Name: "local"}

func objectMeta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}
}

func credentialsBinding() *securityv1alpha1.CredentialsBinding {
	return &securityv1alpha1.CredentialsBinding{
		ObjectMeta: objectMeta(),
		Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Secret", Namespace: key.Namespace, Name: key.Name,
		},
	}
}

func reconcileOnce(t *testing.T, c client.Client) {
	t.Helper()
	r := CredentialsBindings()
	r.Client = c
	if _, err := r.Reconcile(context.Background(), reconcile.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
}

func secretOf(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(context.Background(), key, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestSecretIsMarkedAndReleased(t *testing.T) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "member1"},
		Spec:       gardencorev1beta1.ShootSpec{CredentialsBindingName: new("local")},
	}
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(credentialsBinding(),
		&corev1.Secret{ObjectMeta: objectMeta()}, shoot).Build()

	reconcileOnce(t, c)
	secret := secretOf(t, c)
	if !controllerutil.ContainsFinalizer(secret, credentialsFinalizer) ||
		secret.Labels["provider.shoot.gardener.cloud/local"] != "true" ||
		secret.Labels[gardencorev1beta1.LabelCredentialsBindingReference] != "true" {
		t.Errorf("finalizers %v, labels %v", secret.Finalizers, secret.Labels)
	}

	if err := c.Delete(ctx, credentialsBinding()); err != nil {
		t.Fatal(err)
	}
	reconcileOnce(t, c)
	if !controllerutil.ContainsFinalizer(secretOf(t, c), credentialsFinalizer) {
		t.Error("the secret was released although a shoot uses it")
	}

	if err := c.Delete(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	reconcileOnce(t, c)
	if secret := secretOf(t, c); len(secret.Finalizers) > 0 || len(secret.Labels) > 0 {
		t.Errorf("finalizers %v, labels %v; want none", secret.Finalizers, secret.Labels)
	}
	if err := c.Get(ctx, key, &securityv1alpha1.CredentialsBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("binding: %v, want it to be gone", err)
	}
}

func TestSharedSecretStaysMarked(t *testing.T) {
	other := &gardencorev1beta1.SecretBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "other", UID: "other"},
		SecretRef:  corev1.SecretReference{Namespace: key.Namespace, Name: key.Name},
	}
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(credentialsBinding(),
		&corev1.Secret{ObjectMeta: objectMeta()}, other).Build()
	reconcileOnce(t, c)
	if err := c.Delete(context.Background(), credentialsBinding()); err != nil {
		t.Fatal(err)
	}
	reconcileOnce(t, c)
	if !controllerutil.ContainsFinalizer(secretOf(t, c), credentialsFinalizer) {
		t.Error("the secret was released although a secret binding uses it")
	}
}

func TestOtherCredentialsAreMarked(t *testing.T) {
	tests := map[string]struct {
		apiVersion, kind string
		object           client.Object
	}{
		"workload identity": {
			"security.gardener.cloud/v1alpha1", "WorkloadIdentity",
			&securityv1alpha1.WorkloadIdentity{ObjectMeta: objectMeta()},
		},
		"internal secret": {
			"core.gardener.cloud/v1beta1", "InternalSecret",
			&gardencorev1beta1.InternalSecret{ObjectMeta: objectMeta()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			binding := credentialsBinding()
			binding.CredentialsRef.APIVersion, binding.CredentialsRef.Kind = test.apiVersion, test.kind
			c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(binding, test.object).Build()
			reconcileOnce(t, c)
			if err := c.Get(context.Background(), key, test.object); err != nil {
				t.Fatal(err)
			}
			if !controllerutil.ContainsFinalizer(test.object, credentialsFinalizer) ||
				test.object.GetLabels()["provider.shoot.gardener.cloud/local"] != "true" {
				t.Errorf("finalizers %v, labels %v", test.object.GetFinalizers(), test.object.GetLabels())
			}
			if err := c.Delete(context.Background(), binding); err != nil {
				t.Fatal(err)
			}
			reconcileOnce(t, c)
			if err := c.Get(context.Background(), key, test.object); err != nil ||
				len(test.object.GetFinalizers()) > 0 {
				t.Errorf("finalizers %v, %v; want none", test.object.GetFinalizers(), err)
			}
		})
	}
}
