package shoot

//lint:file-ignore SA1019 Shoots with older versions of Kubernetes use fields that newer ones must not.

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
)

// readInputs reads the inputs of a shoot from the garden.
func readInputs(ctx context.Context, garden client.Client, shoot *gardencorev1beta1.Shoot,
	seedName, gardenIdentity string) (*plan.Inputs, error) {
	in := &plan.Inputs{Shoot: shoot, Seed: &gardencorev1beta1.Seed{}, GardenIdentity: gardenIdentity}
	if err := garden.Get(ctx, client.ObjectKey{Name: seedName}, in.Seed); err != nil {
		return nil, fmt.Errorf("reading Seed %s: %w", seedName, err)
	}
	var err error
	if in.CloudProfile, err = readCloudProfile(ctx, garden, shoot); err != nil {
		return nil, err
	}
	if in.ProjectName, err = projectOf(ctx, garden, shoot.Namespace); err != nil {
		return nil, err
	}
	if in.Credentials, err = credentialsOf(ctx, garden, shoot); err != nil {
		return nil, err
	}
	registrations := &gardencorev1beta1.ControllerRegistrationList{}
	if err := garden.List(ctx, registrations); err != nil {
		return nil, fmt.Errorf("listing ControllerRegistrations: %w", err)
	}
	in.Registrations = registrations.Items
	files, err := readFiles(ctx, garden, shoot)
	if err != nil {
		return nil, err
	}
	in.Files = *files
	return in, nil
}

// etcdBackup is how gardenlet's configuration says that etcds are backed up.
func etcdBackup(c config.ETCDConfig) component.ETCDBackup {
	return component.ETCDBackup{
		DeltaSnapshotPeriod: ptr.Deref(c.DeltaSnapshotPeriod, metav1.Duration{}).Duration,
		FullSnapshots:       int(c.MaxBackupsLimitBasedGC),
		FullSnapshotAge:     c.FullSnapshotRetentionPeriod.Duration,
		VerificationPeriod:  ptr.Deref(c.VerificationPeriod, metav1.Duration{}).Duration,
	}
}

// readFiles reads the ConfigMaps and Secrets that the settings of kube-apiserver refer to.
func readFiles(ctx context.Context, garden client.Client,
	shoot *gardencorev1beta1.Shoot) (*apiserverconfig.Files, error) {
	source := apiserverconfig.Source{
		ConfigMap: func(ctx context.Context, name string) (*corev1.ConfigMap, error) {
			object := &corev1.ConfigMap{}
			return object, garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, object)
		},
		Secret: func(ctx context.Context, name string) (*corev1.Secret, error) {
			object := &corev1.Secret{}
			return object, garden.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, object)
		},
	}
	files, missing, err := apiserverconfig.Read(ctx, source, shoot.Spec.Kubernetes.KubeAPIServer, plan.APIServerPath)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, &plan.ConfigurationError{Err: missing.ToAggregate()}
	}
	return files, nil
}

// readCloudProfile reads the profile that the shoot names in one of two ways.
func readCloudProfile(ctx context.Context, garden client.Client,
	shoot *gardencorev1beta1.Shoot) (*gardencorev1beta1.CloudProfile, error) {
	name := ptr.Deref(shoot.Spec.CloudProfileName, "")
	if ref := shoot.Spec.CloudProfile; ref != nil {
		if ref.Kind == gardencorev1beta1.CloudProfileReferenceKindNamespacedCloudProfile {
			return readNamespacedCloudProfile(ctx, garden, shoot.Namespace, ref.Name)
		}
		name = ref.Name
	}
	profile := &gardencorev1beta1.CloudProfile{}
	if err := garden.Get(ctx, client.ObjectKey{Name: name}, profile); err != nil {
		return nil, fmt.Errorf("reading CloudProfile %q of Shoot %s/%s: %w", name, shoot.Namespace, shoot.Name, err)
	}
	return profile, nil
}

// readNamespacedCloudProfile returns a namespaced profile in the form of a CloudProfile: its status holds the parent's
// specification with its own changes.
func readNamespacedCloudProfile(ctx context.Context, garden client.Client,
	namespace, name string) (*gardencorev1beta1.CloudProfile, error) {
	profile := &gardencorev1beta1.NamespacedCloudProfile{}
	if err := garden.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, profile); err != nil {
		return nil, fmt.Errorf("reading NamespacedCloudProfile %s/%s: %w", namespace, name, err)
	}
	if profile.Status.CloudProfileSpec == nil {
		return nil, fmt.Errorf("NamespacedCloudProfile %s/%s has no status yet", namespace, name)
	}
	return &gardencorev1beta1.CloudProfile{ObjectMeta: profile.ObjectMeta, Spec: *profile.Status.CloudProfileSpec}, nil
}

// projectOf returns the name of the project that a namespace belongs to.
func projectOf(ctx context.Context, garden client.Client, namespace string) (string, error) {
	object := &corev1.Namespace{}
	if err := garden.Get(ctx, client.ObjectKey{Name: namespace}, object); err != nil {
		return "", fmt.Errorf("reading Namespace %s of the garden: %w", namespace, err)
	}
	name := object.Labels[gardencorev1beta1.ProjectName]
	if name == "" {
		return "", fmt.Errorf("namespace %s of the garden has no label %s: it belongs to no project", namespace,
			gardencorev1beta1.ProjectName)
	}
	return name, nil
}

// credentialsOf follows the shoot's binding to the object with the credentials for the infrastructure.
func credentialsOf(ctx context.Context, garden client.Client,
	shoot *gardencorev1beta1.Shoot) (*corev1.ObjectReference, error) {
	switch {
	case shoot.Spec.CredentialsBindingName != nil:
		binding := &securityv1alpha1.CredentialsBinding{}
		key := client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.CredentialsBindingName}
		if err := garden.Get(ctx, key, binding); err != nil {
			return nil, bindingError("CredentialsBinding", key, err)
		}
		return &binding.CredentialsRef, nil
	case shoot.Spec.SecretBindingName != nil:
		binding := &gardencorev1beta1.SecretBinding{}
		key := client.ObjectKey{Namespace: shoot.Namespace, Name: *shoot.Spec.SecretBindingName}
		if err := garden.Get(ctx, key, binding); err != nil {
			return nil, bindingError("SecretBinding", key, err)
		}
		return &corev1.ObjectReference{
			Kind: "Secret", APIVersion: "v1", Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name,
		}, nil
	case len(shoot.Spec.Provider.Workers) > 0:
		return nil, &plan.ConfigurationError{
			Err: errors.New("spec.credentialsBindingName must name the credentials for the infrastructure"),
		}
	default:
		return nil, nil
	}
}

// bindingError tells a missing binding, which the user must create, from a failing API.
func bindingError(kind string, key client.ObjectKey, err error) error {
	err = fmt.Errorf("reading %s %s: %w", kind, key, err)
	if apierrors.IsNotFound(err) {
		return &plan.ConfigurationError{Err: err}
	}
	return err
}
