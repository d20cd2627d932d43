package component

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// DisruptionBudget is that of the Deployment's pods, for those of Others that are applied in a highly available control
// plane only.
func (p *Part) DisruptionBudget() *policyv1.PodDisruptionBudget {
	return DisruptionBudget(p.Namespace, p.Name, p.Labels)
}

// DeployElecting applies the Deployment of a part that elects a leader where it has several replicas, unless it is held
// (IsHeld), and its DisruptionBudget in a highly available control plane.
func (p *Part) DeployElecting(ctx context.Context, availability Availability, deployment *appsv1.Deployment) error {
	if availability.IsHigh() {
		if err := p.endLeaderless(ctx); err != nil {
			return err
		}
		if err := Apply(ctx, p.Client, p.DisruptionBudget()); err != nil {
			return err
		}
	}
	return ApplyUnlessHeld(ctx, p.Client, deployment)
}

// endLeaderless stops the one pod of before the part elected a leader, and waits until it is gone: it knows of no lease
// and would work beside the leader.
func (p *Part) endLeaderless(ctx context.Context) error {
	current := p.deployment()
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(current), current)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading Deployment %s/%s: %w", p.Namespace, p.Name, err)
	// What elects a leader is updated pod by pod (ControlPlaneDeployment).
	case current.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType:
		return nil
	case IsHeld(current):
		return WaitUntilNoPods(ctx, p.Client, p.Namespace, p.Labels)
	}
	return Stop(ctx, p.Client, current)
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
