package csrapprover

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
	"github.com/trellis-garden/trellis/test/certrequest"
)

// countingMachines is a seed with one machine, node n1, that counts who asks for it.
type countingMachines struct {
	client.Reader
	asked int
}

func (c *countingMachines) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	c.asked++
	list.(*metav1.PartialObjectMetadataList).Items = []metav1.PartialObjectMetadata{
		{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: map[string]string{nodeLabel: "n1"}}},
	}
	return nil
}

// countingNodes is the API server of a shoot, with nodes that have no address.
type countingNodes struct {
	client.Client
	asked int
}

func (c *countingNodes) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	c.asked++
	return nil
}

// The cluster-admin of a shoot may leave any number of requests pending that look like a node's, for an address that it
// does not have. They must not be what the seed is busy with.
func TestAttackFloodOfPendingRequests(t *testing.T) {
	const requests, seconds, perSecond = 2000, 60, 20
	certificate := certrequest.Encode(t, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:n1", Organization: []string{nodesGroup}},
		IPAddresses: []net.IP{net.ParseIP("10.0.0.1")},
	})
	synctest.Test(t, func(t *testing.T) {
		seed, shoot := &countingMachines{}, &countingNodes{}
		approver := newApprover("shoot", &target.Target{Client: shoot}, kubelets("shoot", seed, shoot))
		go approver.work(t.Context())
		for i := range requests {
			err := approver.handle(watch.Event{Type: watch.Added, Object: &certificatesv1.CertificateSigningRequest{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("csr-", i), CreationTimestamp: metav1.Now()},
				Spec: certificatesv1.CertificateSigningRequestSpec{
					SignerName: certificatesv1.KubeletServingSignerName, Username: "system:node:n1",
					Groups: []string{nodesGroup},
					Usages: []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}, Request: certificate,
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(seconds * time.Second)
		approver.queue.work.ShutDown()
		synctest.Wait()
		for who, asked := range map[string]int{"the seed": seed.asked, "the shoot's API server": shoot.asked} {
			if asked == 0 || asked > seconds*perSecond {
				t.Errorf("%d requests cost %s %d requests in %d s, want some, and at most %d a second", requests, who,
					asked, seconds, perSecond)
			}
		}
	})
}
