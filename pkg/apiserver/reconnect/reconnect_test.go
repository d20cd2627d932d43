// Package reconnect_test is one of its own: with what it imports, package reconnect would be initialized after gRPC.
package reconnect_test

import (
	"reflect"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	_ "github.com/trellis-garden/trellis/pkg/apiserver/reconnect"
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
	if want := 5 * time.Second; got != want {
		t.Errorf("a client waits for as long as %s between attempts to connect, want %s", got, want)
	}
}
