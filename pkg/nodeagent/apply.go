package nodeagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/go-logr/logr"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	unitDir = "/etc/systemd/system"
	// containerdUnit is started before files are taken out of images.
	containerdUnit = "containerd.service"
	kubeletUnit    = "kubelet.service"
)

// machine is the edge to the operating system; root is "/" except in tests.
type machine struct {
	root  string
	log   logr.Logger
	units unitManager
	// extract writes a file of an image to a path of the machine.
	extract func(ctx context.Context, ref extensionsv1alpha1.FileContentImageRef, target string, mode fs.FileMode) error
	// defaultConfig is containerd's where there is no file.
	defaultConfig func(ctx context.Context) ([]byte, error)
}

// unitManager is what node-agent needs of systemd.
type unitManager interface {
	Reload(ctx context.Context) error
	Enable(ctx context.Context, unit string) error
	Disable(ctx context.Context, unit string) error
	Restart(ctx context.Context, unit string) error
	Stop(ctx context.Context, unit string) error
}

func isContainerd(unit extensionsv1alpha1.Unit) bool { return unit.Name == containerdUnit }

// unitPath is where the content of a unit is.
func unitPath(unit string) string { return filepath.Join(unitDir, unit) }

func dropInPath(unit, name string) string { return filepath.Join(unitDir, unit+".d", name) }

func (m *machine) path(path string) string { return filepath.Join(m.root, path) }

// apply carries out the changes: files, units, containerd, files out of images, then the other units. Everything may be
// repeated, so that a run that was killed half-way is simply done again. Registries that are awaited are not among it.
func (m *machine) apply(ctx context.Context, c changes) error {
	var fromImages []extensionsv1alpha1.File
	for _, file := range c.writeFiles {
		if file.Content.ImageRef != nil {
			fromImages = append(fromImages, file)
			continue
		}
		if err := m.writeInline(file); err != nil {
			return err
		}
	}
	if err := m.writeUnits(ctx, c); err != nil {
		return err
	}
	if err := m.applyContainerd(ctx, &c); err != nil {
		return err
	}
	if i := slices.IndexFunc(c.restart, isContainerd); i >= 0 {
		if err := m.start(ctx, c.restart[i]); err != nil {
			return err
		}
		c.restart = slices.Delete(slices.Clone(c.restart), i, i+1)
	}
	for _, file := range fromImages {
		m.log.Info("Taking a file out of an image", "path", file.Path, "image", file.Content.ImageRef.Image)
		if err := m.extract(ctx, *file.Content.ImageRef, m.path(file.Path), permissions(file)); err != nil {
			return fmt.Errorf("file %s from image %s: %w", file.Path, file.Content.ImageRef.Image, err)
		}
	}
	for _, unit := range c.restart {
		if err := m.start(ctx, unit); err != nil {
			return err
		}
	}
	return m.remove(ctx, c)
}

// applyContainerd configures containerd and its registries, and has it started again where that is needed.
func (m *machine) applyContainerd(ctx context.Context, c *changes) error {
	if c.containerd != nil {
		changed, err := m.configureContainerd(ctx, c.containerd)
		if err != nil {
			return err
		}
		if changed && !slices.ContainsFunc(c.restart, isContainerd) {
			c.restart = append(slices.Clone(c.restart), extensionsv1alpha1.Unit{Name: containerdUnit})
		}
	}
	for _, registry := range c.registries {
		if isAwaited(registry) {
			continue
		}
		if err := m.writeRegistry(registry); err != nil {
			return err
		}
	}
	for _, upstream := range c.removeRegistries {
		dir, err := registryDir(upstream)
		if err != nil {
			return err
		}
		if err := os.RemoveAll(m.path(dir)); err != nil {
			return err
		}
	}
	return nil
}

// writeUnits brings the files of units up to date, and has systemd read them.
func (m *machine) writeUnits(ctx context.Context, c changes) error {
	for _, unit := range c.writeUnits {
		if err := m.writeUnit(unit); err != nil {
			return err
		}
	}
	for _, path := range c.removeUnitFiles {
		if err := os.RemoveAll(m.path(path)); err != nil {
			return fmt.Errorf("removing %s: %w", path, err)
		}
	}
	if err := m.units.Reload(ctx); err != nil {
		return fmt.Errorf("reloading systemd: %w", err)
	}
	return nil
}

// start brings a unit to the state that it is to have: running, unless it is disabled or to be stopped.
func (m *machine) start(ctx context.Context, unit extensionsv1alpha1.Unit) error {
	if unit.Enable != nil && !*unit.Enable {
		return errors.Join(m.units.Disable(ctx, unit.Name), m.units.Stop(ctx, unit.Name))
	}
	if unit.Command != nil && *unit.Command == extensionsv1alpha1.CommandStop {
		return m.units.Stop(ctx, unit.Name)
	}
	if err := m.units.Enable(ctx, unit.Name); err != nil {
		return fmt.Errorf("enabling %s: %w", unit.Name, err)
	}
	m.log.Info("Starting", "unit", unit.Name)
	if err := m.units.Restart(ctx, unit.Name); err != nil {
		return fmt.Errorf("starting %s: %w", unit.Name, err)
	}
	return nil
}

func (m *machine) remove(ctx context.Context, c changes) error {
	for _, unit := range c.removeUnits {
		m.log.Info("Removing", "unit", unit)
		err := errors.Join(m.units.Stop(ctx, unit), m.units.Disable(ctx, unit),
			os.RemoveAll(m.path(unitPath(unit))), os.RemoveAll(m.path(dropInPath(unit, ""))))
		if err != nil {
			return fmt.Errorf("removing unit %s: %w", unit, err)
		}
	}
	for _, path := range c.removeFiles {
		if err := os.RemoveAll(m.path(path)); err != nil {
			return fmt.Errorf("removing file %s: %w", path, err)
		}
	}
	if len(c.removeUnits) > 0 {
		return m.units.Reload(ctx)
	}
	return nil
}

func (m *machine) writeInline(file extensionsv1alpha1.File) error {
	content, err := file.Content.Inline.Decode()
	if err != nil {
		return fmt.Errorf("file %s: %w", file.Path, err)
	}
	return writeIfChanged(m.path(file.Path), content, permissions(file))
}

func (m *machine) writeUnit(unit extensionsv1alpha1.Unit) error {
	if unit.Content != nil {
		if err := writeIfChanged(m.path(unitPath(unit.Name)), []byte(*unit.Content), 0o644); err != nil {
			return err
		}
	}
	for _, dropIn := range unit.DropIns {
		path := m.path(dropInPath(unit.Name, dropIn.Name))
		if err := writeIfChanged(path, []byte(dropIn.Content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeIfChanged replaces a file in one step.
func writeIfChanged(path string, content []byte, mode fs.FileMode) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return os.Chmod(path, mode)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, content, mode); err != nil {
		return err
	}
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}

// extractWithContainerd takes a file out of an image with containerd's own tool, through the mirrors that containerd is
// configured with; the layers stay for the pods that use them.
func extractWithContainerd(ctx context.Context, ref extensionsv1alpha1.FileContentImageRef, target string,
	mode fs.FileMode) error {
	if err := ctr(ctx, "image", "pull", "--hosts-dir", "/etc/containerd/certs.d", ref.Image); err != nil {
		return err
	}
	mountPoint, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.Remove(mountPoint)
	if err := ctr(ctx, "image", "mount", ref.Image, mountPoint); err != nil {
		return err
	}
	copyErr := copyFromImage(mountPoint, ref.FilePathInImage, target, mode)
	return errors.Join(copyErr, ctr(context.WithoutCancel(ctx), "image", "unmount", "--rm", mountPoint))
}

// copyFromImage opens the file below the mounted image, whose symbolic links are resolved within the image.
func copyFromImage(imageRoot, file, target string, mode fs.FileMode) error {
	root, err := os.OpenRoot(imageRoot)
	if err != nil {
		return err
	}
	defer root.Close()
	source, err := root.Open(strings.TrimPrefix(file, "/"))
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	copied, err := os.OpenFile(target+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, source)
	if err = errors.Join(err, copied.Chmod(mode), copied.Close()); err != nil {
		return err
	}
	return os.Rename(target+".new", target)
}

func ctr(ctx context.Context, arguments ...string) error {
	output, err := exec.CommandContext(ctx, "ctr",
		append([]string{"--namespace", "k8s.io"}, arguments...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(lastLine(output)))
	}
	return nil
}

func lastLine(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return lines[len(lines)-1]
}

// systemd manages units over systemd's private socket, which needs no message bus.
type systemd struct{ connection *dbus.Conn }

func (s systemd) Reload(ctx context.Context) error { return s.connection.ReloadContext(ctx) }

func (s systemd) Enable(ctx context.Context, unit string) error {
	_, _, err := s.connection.EnableUnitFilesContext(ctx, []string{unit}, false, true)
	return err
}

func (s systemd) Disable(ctx context.Context, unit string) error {
	_, err := s.connection.DisableUnitFilesContext(ctx, []string{unit}, false)
	return err
}

func (s systemd) Restart(ctx context.Context, unit string) error {
	return s.job(ctx, unit, s.connection.RestartUnitContext)
}

func (s systemd) Stop(ctx context.Context, unit string) error {
	return s.job(ctx, unit, s.connection.StopUnitContext)
}

func (s systemd) job(ctx context.Context, unit string,
	start func(context.Context, string, string, chan<- string) (int, error)) error {
	done := make(chan string, 1)
	if _, err := start(ctx, unit, "replace", done); err != nil {
		return err
	}
	select {
	case result := <-done:
		if result != "done" && result != "skipped" {
			return fmt.Errorf("systemd says %q; see: journalctl -u %s", result, unit)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
