package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Limit is what one quota allows.
type Limit struct {
	Name string
	Hard corev1.ResourceList
}

// keepPromise is how long a decision counts that the cache of bindings does not show. By then it was written, or failed
// and was made again.
const keepPromise = 30 * time.Second

// tidyEvery so many promises, those of bindings that are gone are dropped.
const tidyEvery = 1024

// Reservations remember decisions that are being written, so that several made at a time do not exceed a quota
// together. Its zero value is ready for use.
type Reservations struct {
	mu       sync.Mutex
	promised map[types.NamespacedName]promise
}

type promise struct {
	usage corev1.ResourceList
	until time.Time
}

// Admit checks a decision for one binding, and promises what it uses if no limit is exceeded. used has what the
// bindings of the namespace use as far as is known, that one included. What becomes less is always admitted. The error
// says which limit is exceeded, and by how much.
func (l *Reservations) Admit(limits []Limit, used map[types.NamespacedName]corev1.ResourceList,
	key types.NamespacedName, wanted corev1.ResourceList, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := corev1.ResourceList{}
	for other, usage := range used {
		if other != key {
			others = Add(others, l.effective(other, usage, now))
		}
	}
	for _, limit := range limits {
		if err := limit.allows(others, used[key], wanted); err != nil {
			return err
		}
	}
	if l.promised == nil {
		l.promised = map[types.NamespacedName]promise{}
	}
	l.promised[key] = promise{wanted, now.Add(keepPromise)}
	if len(l.promised)%tidyEvery == 0 {
		maps.DeleteFunc(l.promised, func(_ types.NamespacedName, p promise) bool { return now.After(p.until) })
	}
	return nil
}

// effective gives the larger of what is known and what was promised.
func (l *Reservations) effective(key types.NamespacedName, known corev1.ResourceList,
	now time.Time) corev1.ResourceList {
	promised, found := l.promised[key]
	if !found {
		return known
	}
	if now.After(promised.until) || same(known, promised.usage) {
		delete(l.promised, key)
		return known
	}
	larger := known.DeepCopy()
	for name, quantity := range promised.usage {
		if have := larger[name]; quantity.Cmp(have) > 0 {
			if larger == nil {
				larger = corev1.ResourceList{}
			}
			larger[name] = quantity
		}
	}
	return larger
}

func same(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, found := b[name]; !found || other.Cmp(quantity) != 0 {
			return false
		}
	}
	return true
}

// allows tells what is wrong with using wanted instead of current beside what others use.
func (l Limit) allows(others, current, wanted corev1.ResourceList) error {
	var exceeded []string
	for name, hard := range l.Hard {
		requested, limited := Requested(name)
		want, have := wanted[requested], current[requested]
		if !limited || want.Cmp(have) <= 0 {
			continue
		}
		total, other := others[requested].DeepCopy(), others[requested]
		total.Add(want)
		if total.Cmp(hard) > 0 {
			exceeded = append(exceeded, fmt.Sprintf("%s: needs %s, others use %s of %s", name, want.String(),
				other.String(), hard.String()))
		}
	}
	if len(exceeded) == 0 {
		return nil
	}
	slices.Sort(exceeded)
	return fmt.Errorf("FederatedResourceQuota %s does not allow it: %s", l.Name, strings.Join(exceeded, "; "))
}
