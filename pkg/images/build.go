package images

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/imagevector"
)

// DefaultKubernetesVersion is the version of Kubernetes that is always built.
const DefaultKubernetesVersion = "1.36.3"

// Options say what to build and where.
type Options struct {
	// Root is the repository.
	Root string
	// Cache is the folder for everything that is built; it may be removed at any time.
	Cache string
	// Shared is the folder of what other clones of this user built that does not change with commits; empty for none.
	Shared string
	// KubernetesVersions are built in addition to DefaultKubernetesVersion.
	KubernetesVersions []string
	// Extensions are built beside Trellis itself.
	Extensions []Extension
	// Programs are the names of Trellis' own programs to compile; empty means all.
	Programs []string
	// Env are variables ("NAME=value", without spaces) that all programs find in containers, machines and nodes.
	Env []string
	// InUse returns image vectors whose images stay in the store, those of landscapes. Without it nothing is removed
	// from there.
	InUse func() ([]imagevector.Vector, error)
	// Progress is told about each step when it starts (done false) and when it ends. It may be called concurrently.
	Progress func(step string, done bool, took time.Duration, err error)
	// Log takes the output of the programs that are run.
	Log io.Writer
}

// Paths of what a build leaves in the cache folder.
const (
	// StoreDir is the store of images.
	StoreDir = "images"
	// BinDir holds the programs.
	BinDir = "bin"
	// MachineRootDir is the root file system of machines and of the landscape's node.
	MachineRootDir = "rootfs/machine"
	// VectorFile is an image vector that names Trellis' own images by their content, and has the digests of all images.
	VectorFile = "images/vector.yaml"
)

type builder struct {
	Options
	store  Store
	debian debian
	shared *sharedFolder

	mutex  sync.Mutex
	layers map[string]Layer
	// vector has the images of Trellis itself.
	vector imagevector.Vector
	// digests of all images that were written, by repository and tag.
	digests map[string]map[string]string
}

// Build makes every image, program and root file system of the landscape that is missing or out of date, and removes
// images of older builds that are not in use.
func Build(ctx context.Context, options Options) error {
	b, err := newBuilder(options)
	if err != nil {
		return err
	}
	defer b.shared.close()
	group, groupContext := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := b.buildSystems(groupContext); err != nil {
			return err
		}
		return b.buildRunc(groupContext)
	})
	group.Go(func() error { return b.compile(groupContext) })
	if err := group.Wait(); err != nil {
		return err
	}
	if err := b.step(ctx, "images", b.assemble); err != nil {
		return err
	}
	b.removeUnused(time.Now())
	return nil
}

// newBuilder makes the folders of a build. Its shared folder is to be closed.
func newBuilder(options Options) (*builder, error) {
	for _, dir := range []*string{&options.Root, &options.Cache} {
		absolute, err := filepath.Abs(*dir)
		if err != nil {
			return nil, err
		}
		*dir = absolute
	}
	b := &builder{
		Options: options, store: Store{Dir: filepath.Join(options.Cache, StoreDir)}, layers: map[string]Layer{},
		vector: imagevector.Vector{}, digests: map[string]map[string]string{},
	}
	b.debian = debian{dir: filepath.Join(options.Cache, "debian"), log: b.log}
	for _, dir := range []string{
		b.binDir(), b.store.Dir, filepath.Join(options.Cache, "rootfs"), filepath.Join(options.Cache, "stamps"),
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	b.openShared()
	return b, nil
}

func (b *builder) binDir() string { return filepath.Join(b.Cache, BinDir) }

func (b *builder) bin(name string) string { return filepath.Join(b.binDir(), name) }

func (b *builder) log(line string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.Log != nil {
		fmt.Fprintln(b.Log, line)
	}
}

func (b *builder) step(ctx context.Context, name string, do func(context.Context) error) error {
	start := time.Now()
	b.report(name, false, 0, nil)
	err := do(ctx)
	b.report(name, true, time.Since(start), err)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func (b *builder) report(step string, done bool, took time.Duration, err error) {
	if b.Progress != nil {
		b.Progress(step, done, took, err)
	}
}

// compile builds the programs one after the other: each go build uses all cores.
func (b *builder) compile(ctx context.Context) error {
	for _, c := range b.compilations() {
		if err := b.step(ctx, c.name, c.do); err != nil {
			return err
		}
	}
	return nil
}

// compilation is one step of compile.
type compilation struct {
	name string
	do   func(context.Context) error
}

func (b *builder) compilations() []compilation {
	of := func(name string, m Module) compilation {
		return compilation{name, func(ctx context.Context) error { return b.buildModule(ctx, m) }}
	}
	all := []compilation{
		{"Pages of the dashboard", b.buildPages},
		{"Trellis", b.buildPrograms}, of("CNI plugins", cniPlugins), {"containerd", b.buildContainerd},
	}
	for _, m := range componentModules {
		all = append(all, of(m.Name, m))
	}
	for _, e := range b.Extensions {
		for _, m := range e.Modules {
			all = append(all, of(m.Name, m))
		}
	}
	for _, version := range b.kubernetesVersions() {
		all = append(all, of("Kubernetes "+version, kubernetes(version)))
	}
	return append(all, of("kubectl", kubectl))
}

func (b *builder) kubernetesVersions() []string {
	versions := []string{DefaultKubernetesVersion}
	for _, version := range b.KubernetesVersions {
		if version != DefaultKubernetesVersion {
			versions = append(versions, version)
		}
	}
	return versions
}

// cachedLayer returns the layer with this name when it was made from the same inputs, and else makes it.
func (b *builder) cachedLayer(name string, inputs []string, build func() (Layer, error)) (Layer, error) {
	key := checksum(inputs...)
	stamp := filepath.Join(b.Cache, "stamps", name+".json")
	var known struct {
		Key   string
		Layer Layer
	}
	if data, err := os.ReadFile(stamp); err == nil && json.Unmarshal(data, &known) == nil && known.Key == key &&
		b.store.HasLayer(known.Layer) {
		return known.Layer, nil
	}
	layer, err := build()
	if err != nil {
		return Layer{}, fmt.Errorf("layer %s: %w", name, err)
	}
	known.Key, known.Layer = key, layer
	data, err := json.Marshal(known)
	if err != nil {
		return Layer{}, err
	}
	return layer, writeFileAtomically(stamp, data)
}

// fileInputs describes a file by its path, size and time of change, which is enough to see that it was built anew.
func fileInputs(paths ...string) ([]string, error) {
	var inputs []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, fmt.Sprint(path, info.Size(), info.ModTime().UnixNano()))
	}
	return inputs, nil
}

func checksum(inputs ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(inputs, "\x00")))
	return hex.EncodeToString(sum[:])
}

// writeOwnImage stores an image of Trellis itself under the tag "dev" and a tag made from its content, and enters the
// latter into the image vector, so that a changed image is rolled out.
func (b *builder) writeOwnImage(name string, spec ImageSpec) error {
	parts := []string{fmt.Sprint(spec.Entrypoint, spec.Cmd, b.Env, spec.Env, spec.User)}
	for _, layer := range spec.Layers {
		parts = append(parts, layer.Digest.String())
	}
	tag := "dev-" + checksum(parts...)[:12]
	repository := ownRegistry + "/" + name
	spec.References = append(spec.References, repository+":dev", repository+":"+tag)
	if err := b.writeImage(spec); err != nil {
		return fmt.Errorf("image %s: %w", name, err)
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.vector[name] = imagevector.Source{Name: name, Repository: repository, Tag: tag}
	return nil
}

// writeImage stores an image and remembers its digest for the image vector.
func (b *builder) writeImage(spec ImageSpec) error {
	spec.Env = slices.Concat(b.Env, spec.Env)
	digest, err := b.store.WriteImage(spec)
	if err != nil {
		return err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, reference := range spec.References {
		image, err := imagevector.ParseImage(reference)
		if err != nil {
			return err
		}
		if b.digests[image.Repository] == nil {
			b.digests[image.Repository] = map[string]string{}
		}
		b.digests[image.Repository][image.Tag] = digest.String()
	}
	return nil
}

// writeVector writes the image vector with the digests of what was built.
func (b *builder) writeVector() error {
	vector, err := imagevector.Embedded()
	if err != nil {
		return err
	}
	maps.Copy(vector, b.vector)
	var sources []imagevector.Source
	for _, name := range slices.Sorted(maps.Keys(vector)) {
		source := vector[name]
		if source.Digests = b.digests[source.Repository]; len(source.Digests) > 0 {
			sources = append(sources, source)
		}
	}
	data, err := yaml.Marshal(map[string]any{"images": sources})
	if err != nil {
		return err
	}
	path := filepath.Join(b.Cache, VectorFile)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return writeFileAtomically(path, data)
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	if err = errors.Join(err, target.Close()); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// staticProgramOnPath finds a program that runs without a dynamic linker, so that it can be put in an image alone.
func staticProgramOnPath(name string) (string, bool) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", false
	}
	file, err := elf.Open(path)
	if err != nil {
		return "", false
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			return "", false
		}
	}
	return path, true
}
