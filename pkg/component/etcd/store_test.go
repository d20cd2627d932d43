package etcd

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

func TestOnlyMainIsBackedUp(t *testing.T) {
	backedUp := component.Facts{BackupPrefix: "shoot--demo--one--uid"}
	for name, test := range map[string]struct {
		role  Role
		facts component.Facts
		want  string
	}{
		"main":            {Main, backedUp, "shoot--demo--one--uid/etcd-main"},
		"events":          {Events, backedUp, ""},
		"without a store": {Main, component.Facts{}, ""},
	} {
		got := ""
		if store := Decide(test.role)(test.facts).Store; store != nil {
			got = store.Prefix
		}
		if got != test.want {
			t.Errorf("%s: backed up to %q, want %q", name, got, test.want)
		}
	}
}

// What is restored is what that etcd itself has saved: a request says when, never from where.
func TestOnlyMainIsRestored(t *testing.T) {
	asked := request.Restore{To: "2026-01-02T03:04:05Z", ID: "one"}
	for name, test := range map[string]struct {
		role  Role
		facts component.Facts
		want  []string
	}{
		"main": {
			Main, component.Facts{BackupPrefix: "p", RestoreETCD: asked},
			[]string{
				"--store-prefix=p/etcd-main", "--restore-to=2026-01-02T03:04:05Z", "--restore-request=one",
			},
		},
		"nothing is asked for": {
			Main, component.Facts{BackupPrefix: "p"}, []string{"--store-prefix=p/etcd-main"},
		},
		"several members": {
			Main, component.Facts{BackupPrefix: "p", RestoreETCD: asked, Availability: outlasts(node)},
			[]string{
				"--store-prefix=p/etcd-main", "--restore-to=2026-01-02T03:04:05Z", "--restore-request=one",
			},
		},
		"events":          {Events, component.Facts{BackupPrefix: "p", RestoreETCD: asked}, nil},
		"without a store": {Main, component.Facts{RestoreETCD: asked}, nil},
	} {
		var got []string
		for _, argument := range arguments(namespace, Decide(test.role)(test.facts)) {
			if strings.HasPrefix(argument, "--restore-") || strings.HasPrefix(argument, "--store-prefix") {
				got = append(got, argument)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// An etcd that was on another seed takes its backups over, but for events.
func TestBackupsThatAreTakenOver(t *testing.T) {
	for role, want := range map[Role]bool{Main: true, Events: false} {
		for _, claim := range []int64{0, 7} {
			facts := component.Facts{BackupPrefix: "p", BackupClaim: claim}
			got := slices.Contains(arguments(namespace, Decide(role)(facts)), "--store-claim=7")
			if got != (want && claim == 7) {
				t.Errorf("%s, claim %d: got %v", role, claim, got)
			}
		}
	}
}

// How often is saved reaches what is backed up, and nothing else.
func TestSettingsOfBackups(t *testing.T) {
	facts := component.Facts{BackupPrefix: "p", ETCDBackup: component.ETCDBackup{
		DeltaSnapshotPeriod: 10 * time.Second, FullSnapshots: 168, FullSnapshotAge: 7 * 24 * time.Hour,
	}}
	for role, want := range map[Role]bool{Main: true, Events: false} {
		got := arguments(namespace, Decide(role)(facts))
		for _, argument := range []string{
			"--delta-snapshot-period=10s", "--store-snapshot-retention=168", "--snapshot-retention-age=168h0m0s",
			"--verify-period=0s",
		} {
			if slices.Contains(got, argument) != want {
				t.Errorf("%s has %q: want %s %v", role, got, argument, want)
			}
		}
	}
}

// deploy deploys an etcd with a store, of which the extension has written a Secret.
func deploy(t *testing.T, written map[string][]byte) ([]string, error) {
	t.Helper()
	builder := fake.NewClientBuilder()
	if written != nil {
		builder.WithObjects(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "etcd-backup"}, Data: written,
		})
	}
	c := builder.Build()
	manager := newManager(t, c, secrets.Options{})
	values := Values{Role: Main, Image: "i", Replicas: 1, Store: &Store{Prefix: "p/etcd-main"}}
	if err := New(c, namespace, manager, values).Deploy(t.Context()); err != nil {
		return nil, err
	}
	set := &appsv1.StatefulSet{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set); err != nil {
		t.Fatal(err)
	}
	return set.Spec.Template.Spec.Containers[0].Args, nil
}

// The name of the bucket is that in the store, which need not be that of the BackupBucket.
func TestTheSecretSaysWhereBackupsGo(t *testing.T) {
	whole := map[string][]byte{
		"bucketName": []byte("there"), "accessKeyID": []byte("id"), "secretAccessKey": []byte("key"),
	}
	arguments, err := deploy(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"--store-provider=S3", "--store-bucket=there", "--store-prefix=p/etcd-main",
		"--store-credentials-dir=/etc/etcd/store",
	} {
		if !slices.Contains(arguments, want) {
			t.Errorf("%s is not among %q", want, arguments)
		}
	}
	if _, err := deploy(t, nil); err == nil || !strings.Contains(err.Error(), "extension writes for the BackupEntry") {
		t.Errorf("without the Secret: %v", err)
	}
	for missing := range whole {
		part := map[string][]byte{}
		for key, value := range whole {
			if key != missing {
				part[key] = value
			}
		}
		if _, err := deploy(t, part); err == nil || !strings.Contains(err.Error(), "has no key "+missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// The keys of the Secret say which kind of store it is for; they are those that are published for gardener.
func TestKeysOfTheSecretSayWhichStoreItIs(t *testing.T) {
	for name, test := range map[string]struct {
		keys  []string
		want  string
		wrong string
	}{
		"S3":    {keys: []string{"accessKeyID", "secretAccessKey", "region"}, want: "S3"},
		"Azure": {keys: []string{"storageAccount", "storageKey", "domain"}, want: "ABS"},
		"GCS":   {keys: []string{"serviceaccount.json", "storageAPIEndpoint"}, want: "GCS"},
		"Swift with a password": {
			keys: []string{"authURL", "domainName", "tenantName", "username", "password", "region"}, want: "Swift",
		},
		"Swift with an application credential": {
			keys: []string{"authURL", "applicationCredentialID", "applicationCredentialSecret"}, want: "Swift",
		},
		"half of Azure": {keys: []string{"storageAccount"}, wrong: "has no key storageKey beside storageAccount"},
		"half of S3": {
			keys: []string{"secretAccessKey", "serviceaccount.json"}, wrong: "has no key accessKeyID",
		},
		"nothing":    {keys: []string{"region"}, wrong: "none of the stores"},
		"two stores": {keys: []string{"serviceaccount.json", "authURL"}, wrong: "several stores: GCS, Swift"},
	} {
		t.Run(name, func(t *testing.T) {
			written := map[string][]byte{"bucketName": []byte("b")}
			for _, key := range test.keys {
				written[key] = []byte("secret-value")
			}
			arguments, err := deploy(t, written)
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) ||
					strings.Contains(err.Error(), "secret-value") {
					t.Errorf("got %v, want an error with %q and no value", err, test.wrong)
				}
				return
			}
			if err != nil || !slices.Contains(arguments, "--store-provider="+test.want) {
				t.Errorf("got %q, %v, want %s", arguments, err, test.want)
			}
		})
	}
}

// What the extension writes later reaches etcd through the volume; its pod is not replaced for it.
func TestOtherCredentialsReplaceNoPod(t *testing.T) {
	of := func(key string) map[string][]byte {
		return map[string][]byte{"bucketName": []byte("b"), "accessKeyID": []byte(key), "secretAccessKey": []byte(key)}
	}
	before, err := deploy(t, of("old"))
	if err != nil {
		t.Fatal(err)
	}
	after, err := deploy(t, of("new"))
	if err != nil || !slices.Equal(before, after) {
		t.Errorf("%q became %q, %v", before, after, err)
	}
}
