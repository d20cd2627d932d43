package workloadidentity

import (
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// TestAttackIdentityOfAnotherShoot plays an extension that writes a Secret in the namespace of a shoot that it works
// for, so that gardenlet fetches into it the token of an identity which another shoot of the seed uses.
func TestAttackIdentityOfAnotherShoot(t *testing.T) {
	for name, sake := range map[string]string{
		"for the sake of the other " +
			"shoot": `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"s","namespace":"garden-demo","uid":"uid"}`,
		"for the sake of the own " +
			"shoot": `{"kind":"Shoot","apiVersion":"core.gardener.cloud/v1beta1","name":"own","namespace":"garden-evil","uid":"uid"}`,
		"for the sake of the " +
			"seed": `{"kind":"Seed","apiVersion":"core.gardener.cloud/v1beta1","name":"seed","uid":"uid"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetting(t)
			own := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-evil", Name: "own"}}
			own.Spec.SeedName, own.Status.TechnicalID = new("seed"), "shoot--evil--own"
			trap := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "shoot--evil--own", Name: "trap",
				Labels: map[string]string{
					securityv1alpha1.LabelPurpose: securityv1alpha1.LabelPurposeWorkloadIdentityTokenRequestor,
				},
				Annotations: map[string]string{
					securityv1alpha1.AnnotationWorkloadIdentityNamespace:     "garden-demo",
					securityv1alpha1.AnnotationWorkloadIdentityName:          "aws",
					securityv1alpha1.AnnotationWorkloadIdentityContextObject: sake,
				},
			}}
			if err := s.tokens.Garden.Create(t.Context(), own); err != nil {
				t.Fatal(err)
			}
			if err := s.tokens.Seed.Create(t.Context(), trap); err != nil {
				t.Fatal(err)
			}
			renewer := &Renewer{Tokens: s.tokens, Log: logr.Discard()}
			if err := renewer.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(s.requests) > 0 || renewer.Problem("shoot--evil--own") == "" {
				t.Errorf("gardenlet has requested %+v; it tells %q", s.requests, renewer.Problem("shoot--evil--own"))
			}
		})
	}
}
