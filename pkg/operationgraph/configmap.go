package operationgraph

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// DataKey is the key of the graph in the ConfigMap.
const DataKey = "graph"

var (
	// ErrForeign tells that a ConfigMap of the name is not gardenlet's.
	ErrForeign = errors.New("it is not gardenlet's, but somebody else's who has given it this name")
	// ErrEarlier tells that the graph is of an earlier Shoot of the name.
	ErrEarlier = errors.New("it is of an earlier shoot of this name")
)

// ConfigMap returns that of a Shoot, without a graph. It is called <shoot>.operation, and goes with the Shoot.
func ConfigMap(shoot *gardencorev1beta1.Shoot) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: shoot.Namespace, Name: Name(shoot.Name),
	}}
	Mark(configMap, shoot)
	return configMap
}

// Name is that of a Shoot's ConfigMap.
func Name(shoot string) string {
	return shoot + "." + gardencorev1beta1.ShootProjectConfigMapSuffixOperation
}

// Mark makes a ConfigMap that of a Shoot: by its labels, and by its owner, with which it is deleted.
func Mark(configMap *corev1.ConfigMap, shoot *gardencorev1beta1.Shoot) {
	if configMap.Labels == nil {
		configMap.Labels = map[string]string{}
	}
	configMap.Labels[gardencorev1beta1.LabelShootName] = shoot.Name
	configMap.Labels[gardencorev1beta1.GardenRole] = gardencorev1beta1.ShootProjectConfigMapSuffixOperation
	configMap.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Shoot", Name: shoot.Name, UID: shoot.UID,
	}}
}

// IsMarked tells whether a ConfigMap is gardenlet's: it has the labels, and a Shoot of the name is its owner, be it an
// earlier one.
func IsMarked(configMap *corev1.ConfigMap, shoot string) bool {
	return configMap.Labels[gardencorev1beta1.LabelShootName] == shoot &&
		configMap.Labels[gardencorev1beta1.GardenRole] == gardencorev1beta1.ShootProjectConfigMapSuffixOperation &&
		slices.ContainsFunc(configMap.OwnerReferences, func(owner metav1.OwnerReference) bool {
			return owner.Kind == "Shoot" && owner.Name == shoot
		})
}

// Read reads the graph of a Shoot.
func Read(configMap *corev1.ConfigMap, shoot *gardencorev1beta1.Shoot) (*Graph, error) {
	g, err := read(configMap, shoot)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %w", configMap.Namespace, configMap.Name, err)
	}
	return g, nil
}

func read(configMap *corev1.ConfigMap, shoot *gardencorev1beta1.Shoot) (*Graph, error) {
	if !IsMarked(configMap, shoot.Name) {
		return nil, ErrForeign
	}
	if !slices.ContainsFunc(configMap.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.UID == shoot.UID
	}) {
		return nil, ErrEarlier
	}
	return Decode(configMap.Data[DataKey])
}

// IsPresent tells whether the graph is that of the operation which the Shoot's status is about. It is not while the
// next try has not told its own, where gardenlet could not write it, and after a try that failed before it had tasks.
func (g *Graph) IsPresent(status *gardencorev1beta1.ShootStatus) bool {
	last := status.LastOperation
	if last == nil || g.Type != string(last.Type) || g.Generation != status.ObservedGeneration {
		return false
	}
	switch last.State {
	case gardencorev1beta1.LastOperationStateProcessing:
		// What began after the end of this one is the next try.
		return g.Ended.IsZero() || !last.LastUpdateTime.After(g.Ended)
	case gardencorev1beta1.LastOperationStateError, gardencorev1beta1.LastOperationStateFailed:
		return !g.Ended.IsZero() && g.failedAs(status.LastErrors)
	case gardencorev1beta1.LastOperationStateSucceeded:
		return !g.Ended.IsZero() && g.failedAs(nil)
	}
	return false
}

// failedAs tells whether the graph has the failures that the status tells of.
func (g *Graph) failedAs(failures []gardencorev1beta1.LastError) bool {
	told, outside := map[string]bool{}, false
	for _, failure := range failures {
		if failure.TaskID == nil {
			outside = true
			continue
		}
		told[oneLine(*failure.TaskID, maxName)] = true
	}
	if outside != (g.Error != "") {
		return false
	}
	if g.Omitted > 0 {
		return true
	}
	failed := 0
	for _, task := range g.Tasks {
		if task.State == Failed {
			failed++
			if !told[task.Name] {
				return false
			}
		}
	}
	return failed == len(told)
}
