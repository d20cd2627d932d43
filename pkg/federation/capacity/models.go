package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

// grade is a ResourceModel as numbers: the least that a node of it has.
type grade struct {
	number int64
	least  amounts
}

// defaultGrades are those of clusters without spec.resourceModels: at least so many cores and GiB of memory.
func defaultGrades() []grade {
	grades := []grade{{number: 0, least: amounts{cpu: 0, memory: 0}}}
	for i := range 8 {
		grades = append(grades, grade{number: int64(i + 1), least: amounts{cpu: 1000 << i, memory: gibibytes[i] << 30}})
	}
	return grades
}

var gibibytes = [8]int64{4, 16, 32, 64, 128, 256, 512, 1024}

// gradesOf reads models. Each has to bound the same resources; the first begins at 0, each other where the one before
// ends, and the last ends at the largest number.
func gradesOf(models []clusterv1alpha1.ResourceModel) ([]grade, error) {
	if len(models) == 0 {
		return defaultGrades(), nil
	}
	sorted := slices.Clone(models)
	slices.SortFunc(sorted, func(a, b clusterv1alpha1.ResourceModel) int { return cmp.Compare(a.Grade, b.Grade) })
	ends := amounts{}
	var grades []grade
	for i, m := range sorted {
		least := amounts{}
		for _, r := range m.Ranges {
			path := fmt.Sprintf("spec.resourceModels, grade %d, range of %s", m.Grade, shorten(string(r.Name)))
			from, to := bound(r.Name, r.Min.Value(), r.Min.MilliValue()),
				bound(r.Name, r.Max.Value(), r.Max.MilliValue())
			end, continued := ends[string(r.Name)]
			switch {
			case i > 0 && !continued:
				return nil, fmt.Errorf("%s: grade %d does not have this resource; give every grade the same ones", path,
					sorted[i-1].Grade)
			case from != end:
				return nil, fmt.Errorf("%s.min: must be where the grade before ends (0 for the first)", path)
			case to <= from:
				return nil, fmt.Errorf("%s.max: must be more than min", path)
			case i == len(sorted)-1 && r.Max.Value() != math.MaxInt64:
				return nil, fmt.Errorf("%s.max: must be %d, as this is the last grade", path, int64(math.MaxInt64))
			}
			least[string(r.Name)], ends[string(r.Name)] = from, to
		}
		if len(least) != len(ends) || i > 0 && m.Grade == sorted[i-1].Grade {
			return nil, fmt.Errorf("spec.resourceModels: grade %d must be there once, with the resources of the "+
				"first grade", m.Grade)
		}
		grades = append(grades, grade{number: m.Grade, least: least})
	}
	return grades, nil
}

// bound gives CPU in millicores.
func bound(name corev1.ResourceName, value, milli int64) int64 {
	if name == corev1.ResourceCPU && value < math.MaxInt64/1000 {
		return milli
	}
	return value
}

// modelings counts nodes by the highest grade of which they have the least of every resource free.
func modelings(grades []grade, nodes []room) []clusterv1alpha1.AllocatableModeling {
	result := make([]clusterv1alpha1.AllocatableModeling, len(grades))
	for i, g := range grades {
		result[i].Grade = g.number
	}
	for _, n := range nodes {
		for i := len(grades) - 1; i >= 0; i-- {
			if i == 0 || n.free.covers(grades[i].least) {
				result[i].Count++
				break
			}
		}
	}
	return result
}

// covers tells whether there is at least so much of everything.
func (a amounts) covers(least amounts) bool {
	for name, value := range least {
		if a[name] < value {
			return false
		}
	}
	return true
}
