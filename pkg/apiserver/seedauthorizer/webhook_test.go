package seedauthorizer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func review(user string, groups []string,
	resource *authorizationv1.ResourceAttributes) *authorizationv1.SubjectAccessReview {
	return &authorizationv1.SubjectAccessReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"},
		Spec:     authorizationv1.SubjectAccessReviewSpec{User: user, Groups: groups, ResourceAttributes: resource},
	}
}

func ask(t *testing.T, body any) (int, authorizationv1.SubjectAccessReviewStatus) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	handler := Handler(&Authorizer{Graph: state("one"), Synced: func() bool { return true }})
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(encoded)))
	answer := authorizationv1.SubjectAccessReview{}
	if recorder.Code == http.StatusOK {
		if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
			t.Fatal(err)
		}
	}
	return recorder.Code, answer.Status
}

func TestHandler(t *testing.T) {
	seed, seeds := "gardener.cloud:system:seed:one", []string{"gardener.cloud:system:seeds"}
	shoot := func(change func(*authorizationv1.ResourceAttributes)) *authorizationv1.ResourceAttributes {
		attributes := &authorizationv1.ResourceAttributes{
			Verb: "list", Group: "core.gardener.cloud", Version: "v1beta1", Resource: "shoots",
		}
		change(attributes)
		return attributes
	}
	for name, test := range map[string]struct {
		review *authorizationv1.SubjectAccessReview
		want   bool
	}{
		"own": {
			review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
				a.Verb, a.Namespace, a.Name = "get", "garden-one", "s"
			})), true,
		},
		"another's": {
			review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
				a.Verb, a.Namespace, a.Name = "get", "garden-two", "s"
			})), false,
		},
		"all": {review(seed, seeds, shoot(func(*authorizationv1.ResourceAttributes) {})), false},
		"selected": {review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
			a.FieldSelector = &authorizationv1.FieldSelectorAttributes{
				Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.seedName", Operator: "In", Values: []string{"one"}},
				},
			}
		})), true},
		"selected among others": {review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
			a.FieldSelector = &authorizationv1.FieldSelectorAttributes{
				Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.seedName", Operator: "In", Values: []string{"one", "two"}},
				},
			}
		})), false},
		"selected out": {review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
			a.FieldSelector = &authorizationv1.FieldSelectorAttributes{
				Requirements: []metav1.FieldSelectorRequirement{
					{Key: "spec.seedName", Operator: "NotIn", Values: []string{"one"}},
				},
			}
		})), false},
		"selected, unparsed": {review(seed, seeds, shoot(func(a *authorizationv1.ResourceAttributes) {
			a.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: "spec.seedName=one"}
		})), true},
		"somebody else": {
			review("jane", seeds, shoot(func(a *authorizationv1.ResourceAttributes) { a.Verb = "get" })), false,
		},
		"not a resource": {review(seed, seeds, nil), false},
	} {
		t.Run(name, func(t *testing.T) {
			code, status := ask(t, test.review)
			if code != http.StatusOK || status.Allowed != test.want || status.Denied {
				t.Errorf("got %d, %+v, want allowed = %v", code, status, test.want)
			}
		})
	}
}

func TestHandlerRefusesNonsense(t *testing.T) {
	for name, body := range map[string]any{
		"another kind": map[string]string{"apiVersion": "v1", "kind": "Pod"},
		"another version": map[string]string{
			"apiVersion": "authorization.k8s.io/v1beta1", "kind": "SubjectAccessReview",
		},
		"no object": "text", "too much": strings.Repeat("x", maxReview+1),
	} {
		if code, _ := ask(t, body); code != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", name, code)
		}
	}
	recorder := httptest.NewRecorder()
	Handler(nil).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, Path, nil))
	if recorder.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: got %d", recorder.Code)
	}
}

func TestOnlyKubeAPIServerMayAsk(t *testing.T) {
	for who, want := range map[string]authorizer.Decision{
		gardencorev1beta1.GardenKubeAPIServerUser: authorizer.DecisionAllow, "jane": authorizer.DecisionDeny,
		"gardener.cloud:system:seed:one": authorizer.DecisionDeny,
	} {
		decision, _, err := PathAuthorizer(t.Context(),
			authorizer.AttributesRecord{User: &user.DefaultInfo{Name: who}, Path: Path, Verb: "post"})
		if decision != want || err != nil {
			t.Errorf("%s: %v, %v", who, decision, err)
		}
	}
	if decision, _, _ := PathAuthorizer(t.Context(),
		authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: gardencorev1beta1.GardenKubeAPIServerUser}, Path: "/metrics",
		}); decision != authorizer.DecisionNoOpinion {
		t.Errorf("about other paths: %v", decision)
	}
}
