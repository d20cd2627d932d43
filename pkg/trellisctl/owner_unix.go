//go:build unix

package trellisctl

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUser says whether a file belongs to the user who runs this program.
func ownedByUser(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
