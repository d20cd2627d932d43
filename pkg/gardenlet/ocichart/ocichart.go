// Package ocichart gets the charts that objects of the garden name in OCI registries, with the credentials that lie in
// the garden.
package ocichart

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/helm"
)

// caBundleKey is the key of a registry's authorities in a Secret.
const caBundleKey = "bundle.crt"

// MistakeError is a mistake of the operator: trying again does not help.
type MistakeError struct{ Err error }

// Error implements error.
func (e *MistakeError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *MistakeError) Unwrap() error { return e.Err }

// UnavailableError says that a chart cannot be pulled now.
type UnavailableError struct{ Err error }

// Error implements error.
func (e *UnavailableError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Source gets charts.
type Source struct {
	// Garden reads the Secrets that repositories name.
	Garden client.Reader
	// Pull gets the archive of a chart.
	Pull func(context.Context, helm.Artifact) ([]byte, error)
}

// Archive returns a chart as gzipped tar. Errors are MistakeError, UnavailableError, or those of reading the garden.
func (s Source) Archive(ctx context.Context, repository *gardencorev1.OCIRepository) ([]byte, error) {
	artifact := helm.Artifact{Reference: repository.URL()}
	var err error
	if artifact.DockerConfig, err = s.secretKey(ctx, repository.PullSecretRef, corev1.DockerConfigJsonKey); err != nil {
		return nil, fmt.Errorf("ociRepository.pullSecretRef: %w", err)
	}
	if artifact.CABundle, err = s.secretKey(ctx, repository.CABundleSecretRef, caBundleKey); err != nil {
		return nil, fmt.Errorf("ociRepository.caBundleSecretRef: %w", err)
	}
	archive, err := s.Pull(ctx, artifact)
	if err != nil {
		return nil, &UnavailableError{Err: err}
	}
	return archive, nil
}

// secretKey returns one key of a Secret in the garden's namespace, nothing without a reference.
func (s Source) secretKey(ctx context.Context, reference *corev1.LocalObjectReference, key string) ([]byte, error) {
	if reference == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := s.Garden.Get(ctx, client.ObjectKey{Namespace: gardencorev1beta1.GardenNamespace, Name: reference.Name},
		secret)
	if apierrors.IsNotFound(err) {
		return nil, &MistakeError{
			Err: fmt.Errorf("Secret %s/%s does not exist", gardencorev1beta1.GardenNamespace, reference.Name),
		}
	}
	if err != nil {
		return nil, err
	}
	value, found := secret.Data[key]
	if !found {
		return nil, &MistakeError{
			Err: fmt.Errorf("Secret %s/%s has no key %q", gardencorev1beta1.GardenNamespace, reference.Name, key),
		}
	}
	return value, nil
}
