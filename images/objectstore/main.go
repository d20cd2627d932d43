// Command objectstore serves the buckets of the local cloud by S3. It is a module of its own, so that the product does
// not depend on the gateway.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/objectstore"
)

func main() {
	dir := flag.String("dir", "", "folder that is shared with the cloud")
	listen := flag.String("listen", "", "address to serve at, host:port")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, objectstore.Files{Dir: *dir}, *listen); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "objectstore:", err)
		os.Exit(1)
	}
}

// serve serves until the context ends.
func serve(ctx context.Context, files objectstore.Files, address string) error {
	root, err := files.Root()
	if err != nil {
		return fmt.Errorf("reading the administrator: %w", err)
	}
	objects, metadata := files.Objects()
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return err
	}
	backend, err := posix.New(objects, sidecar, posix.PosixOpts{SideCarDir: metadata})
	if err != nil {
		return err
	}
	certificate, key := files.Certificate()
	return embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
		RootUserAccess: root.AccessKeyID, RootUserSecret: root.SecretAccessKey, Region: objectstore.Region,
		Ports: []string{address}, CertFile: certificate, KeyFile: key, IAMService: users{files: files},
		MaxConnections: 200, MaxRequests: 200, MultipartMaxParts: 10_000, KeepAlive: true, Quiet: true,
	})
}

// errReadOnly: the cloud makes users, and the gateway only looks them up.
var errReadOnly = errors.New("users are made by the local cloud")

// users are those in the files, looked up with each request.
type users struct{ files objectstore.Files }

// GetUserAccount implements auth.IAMService.
func (u users) GetUserAccount(access string) (auth.Account, error) {
	user, err := u.files.User(access)
	if errors.Is(err, fs.ErrNotExist) {
		return auth.Account{}, auth.ErrNoSuchUser
	}
	if err != nil {
		return auth.Account{}, err
	}
	return auth.Account{Access: user.AccessKeyID, Secret: user.SecretAccessKey, Role: auth.RoleUser}, nil
}

// ResolveAccounts implements auth.IAMService: it returns those that do not exist.
func (u users) ResolveAccounts(accessKeyIDs []string) ([]string, error) {
	var missing []string
	for _, access := range accessKeyIDs {
		_, err := u.GetUserAccount(access)
		switch {
		case errors.Is(err, auth.ErrNoSuchUser):
			missing = append(missing, access)
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

// CreateAccount implements auth.IAMService.
func (users) CreateAccount(auth.Account) error { return errReadOnly }

// UpdateUserAccount implements auth.IAMService.
func (users) UpdateUserAccount(string, auth.MutableProps) error { return errReadOnly }

// DeleteUserAccount implements auth.IAMService.
func (users) DeleteUserAccount(string) error { return errReadOnly }

// ListUserAccounts implements auth.IAMService.
func (users) ListUserAccounts() ([]auth.Account, error) { return nil, errReadOnly }

// Shutdown implements auth.IAMService.
func (users) Shutdown() error { return nil }
