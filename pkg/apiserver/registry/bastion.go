package registry

import (
	"context"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
)

// bastionTimeToLive is how long a bastion stays after a heartbeat.
const bastionTimeToLive = time.Hour

func bastions() Served {
	type bastion = *operationsv1alpha1.Bastion
	return &Kind[bastion]{
		Version: operationsv1alpha1.SchemeGroupVersion, Plural: "bastions", Singular: "bastion", Namespaced: true,
		New:                    func() bastion { return &operationsv1alpha1.Bastion{} },
		NewList:                func() runtime.Object { return &operationsv1alpha1.BastionList{} },
		Spec:                   func(b bastion) any { return b.Spec },
		CopySpec:               func(to, from bastion) { to.Spec = from.Spec },
		CopyStatus:             func(to, from bastion) { to.Status = from.Status },
		PrepareForCreate:       prepareBastion,
		PrepareForUpdate:       func(_ context.Context, b, _ bastion) { keepAlive(b, time.Now()) },
		PrepareForStatusUpdate: setBastionExpiration,
		NeedsNewGeneration:     bastionNeedsNewGeneration,
		Columns:                bastionColumns(time.Now),
		Fields: map[string]func(bastion) string{
			"spec.seedName":      func(b bastion) string { return ptr.Deref(b.Spec.SeedName, "") },
			"spec.shootRef.name": func(b bastion) string { return b.Spec.ShootRef.Name },
		},
		Index:          "spec.seedName",
		Validate:       operationsv1alpha1.ValidateBastion,
		ValidateUpdate: operationsv1alpha1.ValidateBastionUpdate,
		ValidateStatusUpdate: func(b, _ bastion) field.ErrorList {
			return operationsv1alpha1.ValidateBastionStatusUpdate(b, time.Now())
		},
	}
}

// prepareBastion notes who creates a bastion, and begins its life.
func prepareBastion(ctx context.Context, bastion *operationsv1alpha1.Bastion) {
	if creator, ok := apirequest.UserFrom(ctx); ok {
		metav1.SetMetaDataAnnotation(&bastion.ObjectMeta, gardencorev1beta1.GardenerCreatedBy, creator.GetName())
	}
	keepAlive(bastion, time.Now())
	heartbeat(bastion, time.Now())
}

// keepAlive carries out the operation keepalive and takes it away.
func keepAlive(bastion *operationsv1alpha1.Bastion, now time.Time) {
	if bastion.Annotations[gardencorev1beta1.GardenerOperation] == gardencorev1beta1.GardenerOperationKeepalive {
		delete(bastion.Annotations, gardencorev1beta1.GardenerOperation)
		heartbeat(bastion, now)
	}
}

func heartbeat(bastion *operationsv1alpha1.Bastion, now time.Time) {
	bastion.Status.LastHeartbeatTimestamp = new(metav1.NewTime(now))
	bastion.Status.ExpirationTimestamp = new(metav1.NewTime(now.Add(bastionTimeToLive)))
}

// setBastionExpiration keeps the expiration a function of the heartbeat, whoever writes the status.
func setBastionExpiration(bastion, old *operationsv1alpha1.Bastion) {
	if bastion.Status.LastHeartbeatTimestamp == nil {
		bastion.Status.LastHeartbeatTimestamp = old.Status.LastHeartbeatTimestamp
	}
	if last := bastion.Status.LastHeartbeatTimestamp; last != nil {
		bastion.Status.ExpirationTimestamp = new(metav1.NewTime(last.Add(bastionTimeToLive)))
	}
}

// bastionNeedsNewGeneration says when gardenlet has to act. It takes away the operation "reconcile" when it has.
func bastionNeedsNewGeneration(bastion, old *operationsv1alpha1.Bastion) bool {
	force := gardencorev1beta1.AnnotationConfirmationForceDeletion
	return !apiequality.Semantic.DeepEqual(bastion.Spec, old.Spec) ||
		bastion.Annotations[gardencorev1beta1.GardenerOperation] == gardencorev1beta1.GardenerOperationReconcile ||
		bastion.Annotations[force] == "true" && old.Annotations[force] != "true"
}

func bastionColumns(now func() time.Time) []Column[*operationsv1alpha1.Bastion] {
	type bastion = *operationsv1alpha1.Bastion
	return []Column[bastion]{
		{
			Name: "Shoot", Description: "The shoot whose nodes are reached.",
			Cell: func(b bastion) any { return b.Spec.ShootRef.Name },
		},
		{
			Name: "Seed", Description: "The seed of the shoot.",
			Cell: func(b bastion) any { return orElse(b.Spec.SeedName, pending) },
		},
		{Name: "IP", Description: "The public address.", Cell: bastionAddressCell},
		{Name: "Heartbeat", Description: "When it was last said to be needed.", Cell: func(b bastion) any {
			if b.Status.LastHeartbeatTimestamp.IsZero() {
				return "<never>"
			}
			return duration.HumanDuration(now().Sub(b.Status.LastHeartbeatTimestamp.Time)) + " ago"
		}},
		{Name: "Expires", Description: "The time until it is deleted.", Cell: func(b bastion) any {
			if b.Status.ExpirationTimestamp.IsZero() {
				return pending
			}
			if left := b.Status.ExpirationTimestamp.Sub(now()); left >= 0 {
				return duration.HumanDuration(left)
			}
			return "<expired>"
		}},
	}
}

func bastionAddressCell(bastion *operationsv1alpha1.Bastion) any {
	ingress := bastion.Status.Ingress
	switch {
	case ingress == nil:
		return pending
	case ingress.Hostname != "":
		return ingress.Hostname
	}
	return orElse(&ingress.IP, pending)
}
