package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	vpnv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/vpn/v1alpha1"
)

// shootPrefix begins the names of the namespaces that gardenlet makes for shoots.
const shootPrefix = "shoot--"

// Grants say which namespace a host name or the key of a tunnel's server belongs to. Who may write TLSRoutes and
// Services in a namespace cannot change them: they are annotations of the Namespace, which gardenlet or the operator
// of the seed writes.
//
// The operator's namespace has what it claims, before all others. A namespace of a shoot that was given nothing yet, by
// a gardenlet that did not know of this, keeps what is not given to another; wildcards are no host of a shoot.
type Grants struct {
	operator    string
	hosts, keys grants
}

// grants are the namespaces that things were given to.
type grants struct {
	owners map[string]string
	// given has the namespaces that something was given to, or nothing expressly.
	given map[string]bool
}

// BuildGrants reads the grants of namespaces. What was given to two belongs to the older one. operator is the namespace
// of the operator.
func BuildGrants(operator string, namespaces []*corev1.Namespace) Grants {
	sorted := slices.Clone(namespaces)
	slices.SortFunc(sorted, func(a, b *corev1.Namespace) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return Grants{
		operator: operator, hosts: grantsOf(sorted, vpnv1alpha1.AnnotationHosts),
		keys: grantsOf(sorted, vpnv1alpha1.AnnotationPublicKey),
	}
}

func grantsOf(namespaces []*corev1.Namespace, annotation string) grants {
	g := grants{owners: map[string]string{}, given: map[string]bool{}}
	for _, namespace := range namespaces {
		value, ok := namespace.Annotations[annotation]
		if !ok {
			continue
		}
		g.given[namespace.Name] = true
		for what := range strings.SplitSeq(value, ",") {
			if _, taken := g.owners[what]; !taken && what != "" {
				g.owners[what] = namespace.Name
			}
		}
	}
	return g
}

// check says why something is not the namespace's.
func (g grants) check(namespace, what string) error {
	owner, owned := g.owners[what]
	switch {
	case owner == namespace:
		return nil
	case owned:
		return fmt.Errorf("%q belongs to namespace %s", what, owner)
	case g.given[namespace], !strings.HasPrefix(namespace, shootPrefix):
		return fmt.Errorf("%q was not given to namespace %s", what, namespace)
	}
	return nil
}

// rank orders namespaces whose claims compete.
func (g Grants) rank(namespace string) int {
	if namespace == g.operator {
		return 0
	}
	return 1
}

// Host says why a namespace may not have a host name, which is in lower case.
func (g Grants) Host(namespace, host string) error {
	if namespace == g.operator {
		return nil
	}
	if _, given := g.hosts.owners[host]; !given && strings.HasPrefix(host, "*") {
		return fmt.Errorf("%q was not given to namespace %s", host, namespace)
	}
	return g.hosts.check(namespace, host)
}

// Key says why a namespace may not have a public key, in base64.
func (g Grants) Key(namespace, key string) error {
	if namespace == g.operator {
		return nil
	}
	return g.keys.check(namespace, key)
}
