package seedauthorizer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Authorizer decides by the graph about requests of gardenlets and extensions, and has no opinion about others.
type Authorizer struct {
	Graph *Graph
	// Synced tells whether the graph is complete.
	Synced func() bool
}

var _ authorizer.Authorizer = &Authorizer{}

// Authorize implements authorizer.Authorizer.
func (a *Authorizer) Authorize(_ context.Context,
	attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	identity, known := IdentityOf(attributes.GetUser())
	if !known {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if !a.Synced() {
		return authorizer.DecisionNoOpinion,
			"garden-apiserver does not know yet what belongs to which seed: try again in a moment", nil
	}
	decision, reason := Authorize(a.Graph, identity, attributes)
	return decision, reason, nil
}

// Authorize decides about a request for a seed. The reason says what is missing.
func Authorize(graph *Graph, identity Identity, attributes authorizer.Attributes) (authorizer.Decision, string) {
	if !attributes.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, ""
	}
	resource := schema.GroupResource{Group: attributes.GetAPIGroup(), Resource: attributes.GetResource()}
	r, found := rules[resource]
	if !found {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("%s are not for seeds", resource)
	}
	q := question{
		graph: graph, Identity: identity, verb: attributes.GetVerb(), subresource: attributes.GetSubresource(),
		namespace: attributes.GetNamespace(), name: attributes.GetName(),
	}
	if allowed := r.verbs(q); !slices.Contains(allowed, q.verb) {
		return authorizer.DecisionNoOpinion,
			fmt.Sprintf("%s may only %s %s", q.Identity, orNothing(allowed), describe(resource, q))
	}
	if r.allows(q, attributes) {
		return authorizer.DecisionAllow, ""
	}
	return authorizer.DecisionNoOpinion, r.missing(resource, q)
}

// verbs are those allowed on the resource or subresource, for what belongs to the seed.
func (r *rule) verbs(q question) verbs {
	if q.subresource == "" {
		return r.of(q.Identity)
	}
	return r.subresources[q.subresource].of(q.Identity)
}

func (r *rule) allows(q question, attributes authorizer.Attributes) bool {
	switch {
	case r.catalogue && q.reads():
		return true
	case q.verb == "create" && q.name == "" && r.creates != nil && r.creates(q):
		return true
	case (q.verb == "list" || q.verb == "watch") && (r.selectsOwn(q.Seed, attributes) || r.selectsShoot(q, attributes)):
		return true
	}
	return slices.ContainsFunc(r.belongs, func(belongs relation) bool { return belongs(q) })
}

// selectsOwn tells whether a list or watch is narrowed to what belongs to the seed.
func (r *rule) selectsOwn(seedName string, attributes authorizer.Attributes) bool {
	return len(r.selectors) > 0 && selects(attributes, func(path, value string) bool {
		return value == seedName && slices.Contains(r.selectors, path)
	})
}

// selectsShoot tells whether a list or watch is narrowed to what belongs to one shoot of the seed.
func (r *rule) selectsShoot(q question, attributes authorizer.Attributes) bool {
	return r.shootSelector != "" && !q.Extension && selects(attributes, func(path, value string) bool {
		return path == r.shootSelector && q.reaches(kindShoot, q.namespace, value)
	})
}

// selects tells whether a field selector demands a value that is accepted.
func selects(attributes authorizer.Attributes, accepted func(path, value string) bool) bool {
	requirements, err := attributes.GetFieldSelector()
	return err == nil && slices.ContainsFunc(requirements, func(requirement fields.Requirement) bool {
		return (requirement.Operator == selection.Equals || requirement.Operator == selection.DoubleEquals) &&
			accepted(requirement.Field, requirement.Value)
	})
}

// missing says what would have made the request an allowed one.
func (r *rule) missing(resource schema.GroupResource, q question) string {
	if (q.verb == "list" || q.verb == "watch") && q.name == "" {
		if len(r.selectors) > 0 {
			return fmt.Sprintf("%s may only %s %s with the field selector %s=%s", q.Identity, q.verb, resource,
				strings.Join(r.selectors, " or "), q.Seed)
		}
		if r.shootSelector != "" {
			return fmt.Sprintf("%s may only %s %s with the field selector %s=<shoot of the seed>", q.Identity, q.verb,
				resource, r.shootSelector)
		}
		return fmt.Sprintf("%s may only %s single %s, with the field selector metadata.name", q.Identity, q.verb,
			resource)
	}
	if kind, found := offerable[resource]; found && q.reads() && !q.Extension &&
		q.reaches(kindOffer, q.namespace, offerName(kind, q.name, q.Seed)) {
		return fmt.Sprintf("%s is named for seed %q, but does not say that the seed may read it: whoever may write "+
			"it gives it the label %s=%s",
			describe(resource, q), q.Seed, gardencorev1beta1.LabelSeedReadableBy, q.Seed)
	}
	return fmt.Sprintf("%s does not belong to seed %q", describe(resource, q), q.Seed)
}

// offerable are the resources whose objects say which seeds may read them, with their kinds.
var offerable = map[schema.GroupResource]string{
	builtin("secrets"): "Secret", builtin("configmaps"): "ConfigMap",
	core("internalsecrets"): "InternalSecret", security("workloadidentities"): "WorkloadIdentity",
}

func describe(resource schema.GroupResource, q question) string {
	path := resource.String()
	if q.subresource != "" {
		path += "/" + q.subresource
	}
	object := strings.Trim(q.namespace+"/"+q.name, "/")
	if object == "" {
		return path
	}
	return path + " " + object
}

func orNothing(allowed verbs) string {
	if len(allowed) == 0 {
		return "do nothing with"
	}
	return strings.Join(allowed, ", ")
}

// String implements fmt.Stringer.
func (i Identity) String() string {
	if i.Extension {
		return fmt.Sprintf("an extension of seed %q", i.Seed)
	}
	return fmt.Sprintf("the gardenlet of seed %q", i.Seed)
}
