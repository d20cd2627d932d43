package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// storageMetrics are the metrics of classes of storage in cloud profiles.
var storageMetrics = map[string]corev1.ResourceName{
	"standard": gardencorev1beta1.QuotaMetricStorageStandard,
	"premium":  gardencorev1beta1.QuotaMetricStoragePremium,
}

// demandOf returns what a shoot takes of each metric when all its pools are at their maximum.
func demandOf(shoot *gardencorev1beta1.Shoot, profile *gardencorev1beta1.CloudProfileSpec) corev1.ResourceList {
	demand := corev1.ResourceList{}
	for i := range shoot.Spec.Provider.Workers {
		worker := &shoot.Spec.Provider.Workers[i]
		add(demand, times(demandOfMachine(worker, profile), int64(worker.Maximum)))
	}
	if addons := shoot.Spec.Addons; addons != nil && addons.NginxIngress != nil && addons.NginxIngress.Enabled {
		add(demand, corev1.ResourceList{gardencorev1beta1.QuotaMetricLoadbalancer: resource.MustParse("1")})
	}
	return demand
}

// demandOfMachine returns what one machine of a pool takes. A type that has left the profile is not counted.
func demandOfMachine(worker *gardencorev1beta1.Worker,
	profile *gardencorev1beta1.CloudProfileSpec) corev1.ResourceList {
	demand := corev1.ResourceList{}
	machine := machineType(profile, worker.Machine.Type)
	if machine != nil {
		add(demand, corev1.ResourceList{
			corev1.ResourceCPU: machine.CPU, corev1.ResourceMemory: machine.Memory,
			gardencorev1beta1.QuotaMetricGPU: machine.GPU,
		})
	}
	switch {
	case worker.Volume != nil:
		addStorage(demand, volumeClass(profile, worker.Volume.Type), worker.Volume.VolumeSize)
	case machine != nil && machine.Storage != nil && machine.Storage.StorageSize != nil:
		addStorage(demand, machine.Storage.Class, machine.Storage.StorageSize.String())
	}
	for _, volume := range worker.DataVolumes {
		addStorage(demand, volumeClass(profile, volume.Type), volume.VolumeSize)
	}
	return demand
}

func machineType(profile *gardencorev1beta1.CloudProfileSpec, name string) *gardencorev1beta1.MachineType {
	for i := range profile.MachineTypes {
		if profile.MachineTypes[i].Name == name {
			return &profile.MachineTypes[i]
		}
	}
	return nil
}

func volumeClass(profile *gardencorev1beta1.CloudProfileSpec, name *string) string {
	for _, volume := range profile.VolumeTypes {
		if volume.Name == ptr.Deref(name, "") {
			return volume.Class
		}
	}
	return ""
}

// addStorage adds a volume. Classes other than standard and premium have no metric.
func addStorage(to corev1.ResourceList, class, size string) {
	metric, known := storageMetrics[class]
	quantity, err := resource.ParseQuantity(size)
	if known && err == nil {
		add(to, corev1.ResourceList{metric: quantity})
	}
}

func add(to, added corev1.ResourceList) {
	for name, quantity := range added {
		sum := to[name].DeepCopy()
		sum.Add(quantity)
		to[name] = sum
	}
}

func times(list corev1.ResourceList, factor int64) corev1.ResourceList {
	result := corev1.ResourceList{}
	for name, quantity := range list {
		product := quantity.DeepCopy()
		product.Mul(factor)
		result[name] = product
	}
	return result
}

// larger returns the larger amount of each metric.
func larger(a, b corev1.ResourceList) corev1.ResourceList {
	result := maps.Clone(a)
	if result == nil {
		result = corev1.ResourceList{}
	}
	for name, quantity := range b {
		if present := result[name]; quantity.Cmp(present) > 0 {
			result[name] = quantity
		}
	}
	return result
}

// exceedsAny tells whether more is wanted than before of anything that is limited.
func exceedsAny(wanted, before, limits corev1.ResourceList) bool {
	for name := range limits {
		if grows(name, wanted, before) {
			return true
		}
	}
	return false
}

func grows(name corev1.ResourceName, wanted, before corev1.ResourceList) bool {
	is, was := wanted[name], before[name]
	return is.Cmp(was) > 0
}

// checkMetrics tells which limits of a quota a shoot exceeds, with what it wants and what others use. What does not
// grow is let through: whoever is over a limit that was lowered can still shrink.
func checkMetrics(quota *gardencorev1beta1.Quota, used, wanted, before corev1.ResourceList) error {
	var exceeded []string
	for _, name := range slices.Sorted(maps.Keys(quota.Spec.Metrics)) {
		limit, taken, requested := quota.Spec.Metrics[name], used[name], wanted[name]
		total := taken.DeepCopy()
		total.Add(requested)
		if grows(name, wanted, before) && total.Cmp(limit) > 0 {
			exceeded = append(exceeded, fmt.Sprintf("%s: used %s, requested %s, limit %s", name, &taken, &requested,
				&limit))
		}
	}
	if len(exceeded) == 0 {
		return nil
	}
	return fmt.Errorf("spec.provider.workers: quota %s is exceeded (%s): ask for fewer or smaller machines, or have "+
		"the quota raised", nameOf(quota), strings.Join(exceeded, "; "))
}

// sameBinding tells whether two shoots use the same binding.
func sameBinding(a, b *gardencorev1beta1.Shoot) bool {
	return ptr.Equal(a.Spec.SecretBindingName, b.Spec.SecretBindingName) &&
		ptr.Equal(a.Spec.CredentialsBindingName, b.Spec.CredentialsBindingName)
}
