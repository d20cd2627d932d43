package etcd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// unconfirmedFile has the revision that etcd started with, until the store's backups are known not to be ahead of that.
// Data that was rolled back while the store did not answer goes on with changes of its own, and passes the backups at
// some time: only this file tells then that it does not have what they have.
const unconfirmedFile = "unconfirmed-revision"

// unconfirmed returns the revision up to which the data may be what the backups have, and notes it.
func unconfirmed(dataDir string, revision int64) (int64, error) {
	path := filepath.Join(dataDir, unconfirmedFile)
	content, err := os.ReadFile(path)
	if err == nil {
		noted, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w; delete it if the data is as new as the backups in the store", path, err)
		}
		return min(noted, revision), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return revision, writeDurably(path, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, revision)
		return err
	})
}

// confirm forgets the revision: the data has what the backups have, or is other data.
func confirm(dataDir string) error {
	err := os.Remove(filepath.Join(dataDir, unconfirmedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
