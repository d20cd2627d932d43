package component

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Part is a component that is a Deployment, with what belongs to it. Components embed it and add Deploy.
type Part struct {
	Client client.Client
	// Namespace of the control plane, and Name of the Deployment.
	Namespace, Name string
	// Labels are those of the pods.
	Labels map[string]string
	// Others are deleted with the Deployment; names are enough.
	Others []client.Object
}

// Destroy implements Deployer.
func (p *Part) Destroy(ctx context.Context) error {
	return Delete(ctx, p.Client, p.objects()...)
}

// Wait implements Waiter.
func (p *Part) Wait(ctx context.Context) error {
	return WaitUntilHealthy(ctx, p.Client, p.deployment())
}

// WaitCleanup implements Waiter.
func (p *Part) WaitCleanup(ctx context.Context) error {
	if err := WaitUntilGone(ctx, p.Client, p.objects()...); err != nil {
		return err
	}
	return WaitUntilNoPods(ctx, p.Client, p.Namespace, p.Labels)
}

func (p *Part) deployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
}

// objects returns copies: what is waited for is read into them.
func (p *Part) objects() []client.Object {
	objects := []client.Object{p.deployment()}
	for _, other := range p.Others {
		objects = append(objects, other.DeepCopyObject().(client.Object))
	}
	return objects
}
