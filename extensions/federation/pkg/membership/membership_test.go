package membership

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
)

// gardenThatIssues gives credentials for an hour and counts how often.
func gardenThatIssues(t *testing.T, now func() time.Time, issued *int) client.Client {
	t.Helper()
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"a-external": {Server: "https://api"}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: "t"}},
		Contexts:       map[string]*clientcmdapi.Context{"a-external": {Cluster: "a-external", AuthInfo: "a"}},
		CurrentContext: "a-external",
	})
	if err != nil {
		t.Fatal(err)
	}
	return interceptor.NewClient(fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build(), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, answer client.Object,
			_ ...client.SubResourceCreateOption) error {
			*issued++
			request := answer.(*authenticationv1alpha1.AdminKubeconfigRequest)
			request.Status.Kubeconfig = kubeconfig
			request.Status.ExpirationTimestamp = metav1.NewTime(now().Add(time.Hour))
			return nil
		},
	})
}

func fleetClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).Build()
}

func reachable(s *gardencorev1beta1.Shoot) {
	s.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{{Name: "external", URL: "https://api"}}
	s.Status.Conditions = []gardencorev1beta1.Condition{
		{Type: gardencorev1beta1.ShootAPIServerAvailable, Status: gardencorev1beta1.ConditionTrue},
	}
}

func TestSync(t *testing.T) {
	ctx := context.Background()
	now := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	issued := 0
	clock := func() time.Time { return now }
	r := &Reconciler{Garden: gardenThatIssues(t, clock, &issued), Now: clock}
	fleet := fleetClient(t)
	sync := func(shoots ...gardencorev1beta1.Shoot) {
		t.Helper()
		if err := r.sync(ctx, fleet, shoots); err != nil {
			t.Fatal(err)
		}
	}
	members := func() []clusterv1alpha1.Cluster {
		var list clusterv1alpha1.ClusterList
		if err := fleet.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}

	sync(*shoot())
	if len(members()) != 0 {
		t.Fatal("a shoot whose API was never up is waited for")
	}
	sync(*shoot(reachable))
	if list := members(); len(list) != 1 || list[0].Spec.APIEndpoint != "https://api" || issued != 1 {
		t.Fatalf("got %+v, %d times credentials", list, issued)
	}
	sync(*shoot())
	if len(members()) != 1 {
		t.Fatal("a member whose API is down stays a member")
	}
	now = now.Add(31 * time.Minute)
	sync(*shoot(reachable))
	if issued != 2 {
		t.Fatalf("credentials are renewed at half time, not %d times", issued)
	}
	sync()
	if len(members()) != 0 {
		t.Fatal("the member leaves with its shoot")
	}
	sync()
	var secrets corev1.SecretList
	if err := fleet.List(ctx, &secrets); err != nil || len(secrets.Items) != 0 {
		t.Fatalf("the credentials go after the member: %v, %v", secrets.Items, err)
	}
}

func TestImportedClustersAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	issued := 0
	r := &Reconciler{Garden: gardenThatIssues(t, time.Now, &issued), Now: time.Now}
	fleet := fleetClient(t)
	imported := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "member1"}}
	if err := fleet.Create(ctx, imported); err != nil {
		t.Fatal(err)
	}
	if err := r.sync(ctx, fleet, []gardencorev1beta1.Shoot{*shoot(reachable)}); err == nil {
		t.Error("the name is taken")
	}
	if err := r.sync(ctx, fleet, nil); err != nil {
		t.Error(err)
	}
	if err := fleet.Get(ctx, client.ObjectKeyFromObject(imported), imported); err != nil {
		t.Error(err)
	}
}
