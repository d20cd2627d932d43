// Package dnsrecord is the DNSRecord controller of provider-local: records of the local cloud's zone.
package dnsrecord

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/cluster"
	"github.com/trellis-garden/trellis/extensions/pkg/extension"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/apis"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

// Add registers the controller. zone is the one reported for records that name none.
func Add(mgr manager.Manager, source credentials.Source, zone string) error {
	return extension.Add(mgr, extension.Options[*extensionsv1alpha1.DNSRecord]{
		Kind:     extensionsv1alpha1.DNSRecordResource,
		Type:     apis.Type,
		Actuator: &actuator{credentials: source, zone: zone},
	})
}

type actuator struct {
	credentials credentials.Source
	zone        string
}

// Reconcile implements extension.Actuator.
func (a *actuator) Reconcile(ctx context.Context, _ logr.Logger, record *extensionsv1alpha1.DNSRecord,
	_ *cluster.Cluster) error {
	cloud, err := a.credentials.Client(ctx, record.Spec.SecretRef)
	if err != nil {
		return err
	}
	if err := cloud.PutRecord(ctx, wanted(record)); err != nil {
		return api.WithCodes(err)
	}
	zone := a.zone
	if record.Spec.Zone != nil {
		zone = *record.Spec.Zone
	}
	record.Status.Zone = &zone
	return nil
}

// Delete implements extension.Actuator.
func (a *actuator) Delete(ctx context.Context, _ logr.Logger, record *extensionsv1alpha1.DNSRecord,
	_ *cluster.Cluster) error {
	cloud, err := a.credentials.Client(ctx, record.Spec.SecretRef)
	if err != nil {
		return err
	}
	return api.WithCodes(cloud.DeleteRecord(ctx, record.Spec.Name))
}

func wanted(record *extensionsv1alpha1.DNSRecord) api.Record {
	ttl := extensionsv1alpha1.DefaultDNSRecordTTL
	if record.Spec.TTL != nil {
		ttl = *record.Spec.TTL
	}
	return api.Record{
		FQDN:   api.CanonicalName(record.Spec.Name),
		Type:   string(record.Spec.RecordType),
		Values: record.Spec.Values,
		TTL:    uint32(ttl),
	}
}
