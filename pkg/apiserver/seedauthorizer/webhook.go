package seedauthorizer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// Path is where garden-apiserver answers SubjectAccessReviews.
	Path = "/seedauthorizer"
	// maxReview bounds a request.
	maxReview = 1 << 20
)

// MatchConditions are CEL expressions by which kube-apiserver knows the requests to ask about: those of IdentityOf for
// resources.
func MatchConditions() []string {
	return []string{
		fmt.Sprintf("request.user.startsWith('%s') || request.user.startsWith('%s')",
			gardencorev1beta1.SeedUserNamePrefix,
			serviceaccount.ServiceAccountUsernamePrefix+gardencorev1beta1.SeedNamespaceNamePrefix),
		"has(request.resourceAttributes)",
	}
}

// PathAuthorizer lets the garden's kube-apiserver, and nobody else, ask at Path.
func PathAuthorizer(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if attributes.IsResourceRequest() || attributes.GetPath() != Path {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if who := attributes.GetUser(); who != nil && who.GetName() == gardencorev1beta1.GardenKubeAPIServerUser {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionDeny,
		fmt.Sprintf("only %s may ask for the rights of seeds", gardencorev1beta1.GardenKubeAPIServerUser), nil
}

// Handler answers SubjectAccessReviews (authorization.k8s.io/v1) with an authorizer's decisions.
func Handler(a authorizer.Authorizer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "POST a SubjectAccessReview of authorization.k8s.io/v1", http.StatusMethodNotAllowed)
			return
		}
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(review); err != nil {
			http.Error(w, fmt.Sprintf("SubjectAccessReview: %v", err), http.StatusBadRequest)
			return
		}
		if review.APIVersion != authorizationv1.SchemeGroupVersion.String() || review.Kind != "SubjectAccessReview" {
			http.Error(w, fmt.Sprintf("%s %s is not a SubjectAccessReview of %s", review.APIVersion, review.Kind,
				authorizationv1.SchemeGroupVersion), http.StatusBadRequest)
			return
		}
		review.Status = statusOf(a.Authorize(r.Context(), attributesOf(&review.Spec)))
		review.ManagedFields = nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // the client is gone if this fails
	})
}

func statusOf(decision authorizer.Decision, reason string, err error) authorizationv1.SubjectAccessReviewStatus {
	status := authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny, Reason: reason,
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	return status
}

func attributesOf(spec *authorizationv1.SubjectAccessReviewSpec) authorizer.Attributes {
	who := &user.DefaultInfo{Name: spec.User, UID: spec.UID, Groups: spec.Groups}
	if resource := spec.ResourceAttributes; resource != nil {
		record := authorizer.AttributesRecord{
			User: who, ResourceRequest: true, Verb: resource.Verb, Namespace: resource.Namespace, Name: resource.Name,
			APIGroup: resource.Group, APIVersion: resource.Version, Resource: resource.Resource,
			Subresource: resource.Subresource,
		}
		if resource.FieldSelector != nil {
			record.FieldSelectorRequirements, record.FieldSelectorParsingErr = requirementsOf(resource.FieldSelector)
		}
		return record
	}
	record := authorizer.AttributesRecord{User: who}
	if path := spec.NonResourceAttributes; path != nil {
		record.Path, record.Verb = path.Path, path.Verb
	}
	return record
}

// requirementsOf returns the requirements of a selector that are understood. Requirements narrow a selection, so one
// that is left out allows nothing.
func requirementsOf(attributes *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if attributes.RawSelector != "" {
		selector, err := fields.ParseSelector(attributes.RawSelector)
		if err != nil {
			return nil, fmt.Errorf("field selector: %w", err)
		}
		return selector.Requirements(), nil
	}
	var result fields.Requirements
	for _, requirement := range attributes.Requirements {
		if requirement.Operator == metav1.FieldSelectorOpIn && len(requirement.Values) == 1 {
			result = append(result, fields.Requirement{
				Field: requirement.Key, Operator: selection.Equals, Value: requirement.Values[0],
			})
		}
	}
	return result, nil
}
