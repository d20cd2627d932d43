package reconnect

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// What a client keeps of its options is nobody else's to see, so that this test looks through reflection.
func TestClientsConnectAgainSoon(t *testing.T) {
	client, err := grpc.NewClient("passthrough:///etcd", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	strategy := reflect.ValueOf(client).Elem().FieldByName("dopts").FieldByName("bs").Elem()
	got := time.Duration(strategy.FieldByName("Config").FieldByName("MaxDelay").Int())
	if got != longest {
		t.Errorf("a client waits for as long as %s between attempts to connect, want %s", got, longest)
	}
}
