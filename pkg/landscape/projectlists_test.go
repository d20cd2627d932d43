package landscape

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// While a garden-apiserver of before runs, which shows everybody all projects, nobody is let list them; when none is
// left, garden-controller-manager is told, and what else the role has stays.
func TestLetListProjects(t *testing.T) {
	role := func(annotations map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{
				Name: gardencorev1beta1.ClusterRoleReadGlobalResources, Annotations: annotations,
			},
			Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{"a"}, Resources: []string{"b"}}},
		}
	}
	const filtered = gardencorev1beta1.AnnotationProjectsAreFiltered
	rolledOut := appsv1.DeploymentStatus{
		ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
	}
	withAnother := rolledOut
	withAnother.Replicas = 2
	for name, test := range map[string]struct {
		status appsv1.DeploymentStatus
		isLeft bool
		role   *rbacv1.ClusterRole
		want   map[string]string
	}{
		"when none of before is left": {
			status: rolledOut, role: role(map[string]string{"own": "x"}),
			want: map[string]string{"own": "x", filtered: "true"},
		},
		"when it was done before": {
			status: rolledOut, role: role(map[string]string{filtered: "true"}), want: map[string]string{filtered: "true"},
		},
		"in a new garden":             {status: rolledOut},
		"while one of before is left": {status: withAnother, role: role(nil)},
		"while one of before ends":    {status: rolledOut, isLeft: true, role: role(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				isToWait := test.isLeft || test.status.Replicas > 1
				labels := map[string]string{"app": "garden-apiserver"}
				objects := []client.Object{&appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Namespace: gardenNS, Name: "garden-apiserver", Generation: 1},
					Spec: appsv1.DeploymentSpec{
						Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
					},
					Status: test.status,
				}}
				if test.isLeft {
					objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
						Namespace: gardenNS, Name: "old", Labels: labels, Finalizers: []string{"kept"},
						DeletionTimestamp: new(metav1.Now()),
					}})
				}
				garden := fake.NewClientBuilder()
				if test.role != nil {
					garden.WithObjects(test.role)
				}
				r := &run{}
				r.clusters.garden = &cluster{client: garden.Build()}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := r.letListProjects(ctx, &cluster{client: fake.NewClientBuilder().WithObjects(objects...).Build()})
				if (err != nil) != isToWait {
					t.Errorf("got %v", err)
				}
				got := &rbacv1.ClusterRole{}
				err = r.clusters.garden.client.Get(t.Context(),
					client.ObjectKey{Name: gardencorev1beta1.ClusterRoleReadGlobalResources}, got)
				if test.role == nil {
					if !apierrors.IsNotFound(err) {
						t.Errorf("got a role %v, %v", got, err)
					}
					return
				}
				if err != nil || !maps.Equal(got.Annotations, test.want) || len(got.Rules) != 1 {
					t.Errorf("got %v, %v", got, err)
				}
			})
		})
	}
}
