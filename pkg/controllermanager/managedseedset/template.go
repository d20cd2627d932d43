package managedseedset

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

// placeholder stands for the name of the replica wherever it occurs in the templates.
const placeholder = "replica-name"

// newShoot makes the shoot of a replica.
func newShoot(set *seedmanagementv1alpha1.ManagedSeedSet, name, revision string) (*gardencorev1beta1.Shoot, error) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: newMeta(set, &set.Spec.ShootTemplate.ObjectMeta, name, revision)}
	if err := fill(&set.Spec.ShootTemplate.Spec, &shoot.Spec, name); err != nil {
		return nil, fmt.Errorf("spec.shootTemplate.spec: %w", err)
	}
	return shoot, nil
}

// newManagedSeed makes the managed seed of a replica, for the shoot of the same name.
func newManagedSeed(set *seedmanagementv1alpha1.ManagedSeedSet,
	name, revision string) (*seedmanagementv1alpha1.ManagedSeed, error) {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: newMeta(set, &set.Spec.Template.ObjectMeta, name, revision),
	}
	if err := fill(&set.Spec.Template.Spec, &managedSeed.Spec, name); err != nil {
		return nil, fmt.Errorf("spec.template.spec: %w", err)
	}
	managedSeed.Spec.Shoot = &seedmanagementv1alpha1.Shoot{Name: name}
	return managedSeed, nil
}

func newMeta(set *seedmanagementv1alpha1.ManagedSeedSet, template *metav1.ObjectMeta,
	name, revision string) metav1.ObjectMeta {
	labels := maps.Clone(template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[revisionLabel] = revision
	return metav1.ObjectMeta{
		Namespace: set.Namespace, Name: name,
		Labels: labels, Annotations: maps.Clone(template.Annotations),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(set, seedmanagementv1alpha1.SchemeGroupVersion.WithKind("ManagedSeedSet")),
		},
	}
}

// fill copies a template with the placeholder replaced.
func fill(template, into any, name string) error {
	raw, err := json.Marshal(template)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(strings.ReplaceAll(string(raw), placeholder, name)), into)
}
