package garden

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserver/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

const (
	writers = 20
	// watchers resume after each failure.
	watchers = 3
	// objectsPerWriter is small, so that objects are changed often.
	objectsPerWriter = 4
	// writesBetweenFaults are acknowledged before the next process is killed.
	writesBetweenFaults = 150
	// requestTimeout is short: a request to a killed server must not hold up its writer.
	requestTimeout = 5 * time.Second
)

// state is what a client knows of one object.
type state struct {
	// value of the last acknowledged write; 0 when the object is deleted or was never there.
	value int64
	// attempts are the values of later writes without an answer: they may or may not have happened.
	attempts []int64
	// version is that of the last acknowledged write that left the object there.
	version uint64
}

func (s *state) allows(value int64) bool {
	return value == s.value || slices.Contains(s.attempts, value)
}

func (s *state) acknowledge(value int64, version uint64) {
	s.value, s.attempts = value, nil
	if value != 0 {
		s.version = version
	}
}

// writer creates, changes and deletes objects of its own, and keeps a record of what was acknowledged.
type writer struct {
	client client.Client
	random *rand.Rand
	next   int64
	acked  *atomic.Int64
	states map[string]*state
}

func objectName(writer, object int) string { return fmt.Sprintf("writer%d-%d", writer, object) }

func newWriter(t *testing.T, config *rest.Config, number int, acked *atomic.Int64) *writer {
	t.Helper()
	own := rest.CopyConfig(config)
	own.Timeout = requestTimeout
	// While nothing answers, this leaves the machine time to start what does.
	own.QPS, own.Burst = 100, 10
	// A connection of its own.
	own.Dial = (&net.Dialer{}).DialContext
	c, err := client.New(own, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		t.Fatal(err)
	}
	w := &writer{client: c, random: rand.New(rand.NewPCG(uint64(number), 1)), acked: acked, states: map[string]*state{}}
	for i := range objectsPerWriter {
		w.states[objectName(number, i)] = &state{}
	}
	return w
}

// run writes until the context ends. It returns an error when the server contradicts the writer's record.
func (w *writer) run(ctx context.Context, number int) error {
	for ctx.Err() == nil {
		name := objectName(number, w.random.IntN(objectsPerWriter))
		if err := w.write(ctx, name, w.states[name]); err != nil {
			return err
		}
	}
	return nil
}

// write reads an object until it is answered, compares it with the record, and changes it.
func (w *writer) write(ctx context.Context, name string, s *state) error {
	object, answered := w.read(ctx, name)
	if !answered {
		return nil
	}
	if found := valueOf(object); !s.allows(found) {
		return fmt.Errorf("%s has value %d, but what is known of it is %+v", name, found, *s)
	}
	s.value = valueOf(object)
	value, change := w.plan(name, object)
	written, err := change(context.WithoutCancel(ctx))
	if err != nil {
		s.attempts = append(s.attempts, value) // No answer, or none that tells: the next read does.
		return nil
	}
	s.acknowledge(value, versionOf(written))
	w.acked.Add(1)
	return nil
}

// plan chooses the next change of an object, which is nil when it does not exist, and the value it leaves behind.
func (w *writer) plan(name string,
	object *gardencorev1beta1.InternalSecret) (value int64, change func(context.Context) (metav1.Object, error)) {
	w.next++
	switch {
	case object == nil:
		object = newInternalSecret(name, w.next)
		return w.next, func(ctx context.Context) (metav1.Object, error) { return object, w.client.Create(ctx, object) }
	case w.random.IntN(8) == 0:
		unchanged := client.Preconditions{ResourceVersion: &object.ResourceVersion}
		return 0, func(ctx context.Context) (metav1.Object, error) {
			return object, w.client.Delete(ctx, object, unchanged)
		}
	}
	setValue(object, w.next)
	return w.next, func(ctx context.Context) (metav1.Object, error) { return object, w.client.Update(ctx, object) }
}

// read asks until there is an answer, or the context ends. The object is nil when it does not exist.
func (w *writer) read(ctx context.Context, name string) (object *gardencorev1beta1.InternalSecret, answered bool) {
	for ctx.Err() == nil {
		object := newInternalSecret(name, 0)
		err := w.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		switch {
		case err == nil:
			return object, true
		case apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err): // The latter: the API is not served.
			return nil, true
		}
	}
	return nil, false
}

func newInternalSecret(name string, value int64) *gardencorev1beta1.InternalSecret {
	object := &gardencorev1beta1.InternalSecret{
		ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: name},
	}
	setValue(object, value)
	return object
}

func setValue(object *gardencorev1beta1.InternalSecret, value int64) {
	object.Data = map[string][]byte{"value": strconv.AppendInt(nil, value, 10)}
}

func valueOf(object *gardencorev1beta1.InternalSecret) int64 {
	if object == nil {
		return 0
	}
	value, _ := strconv.ParseInt(string(object.Data["value"]), 10, 64)
	return value
}

func versionOf(object metav1.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return version
}

// watcher records what an informer's connection to the garden tells. It is a store as client-go's reflectors fill it.
type watcher struct {
	mutex sync.Mutex
	// present are the versions of the objects that exist, highest the greatest that was ever told of each name.
	present, highest map[string]uint64
	// events were told one by one; lists is how often everything was.
	events, lists int
	err           error
}

func newWatcher() *watcher {
	return &watcher{present: map[string]uint64{}, highest: map[string]uint64{}}
}

func (w *watcher) observe(object any, deleted bool) error {
	meta := object.(metav1.Object)
	version, name := versionOf(meta), meta.GetName()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.events++
	if version <= w.highest[name] {
		w.err = errors.Join(w.err, fmt.Errorf("%s went back from version %d to %d", name, w.highest[name], version))
	}
	w.highest[name] = version
	if delete(w.present, name); !deleted {
		w.present[name] = version
	}
	return nil
}

// Add, Update, Delete and Replace implement cache.ReflectorStore.
func (w *watcher) Add(object any) error    { return w.observe(object, false) }
func (w *watcher) Update(object any) error { return w.observe(object, false) }
func (w *watcher) Delete(object any) error { return w.observe(object, true) }

func (w *watcher) Replace(objects []any, listVersion string) error {
	at, err := strconv.ParseUint(listVersion, 10, 64)
	if err != nil {
		return err
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.lists++
	listed := map[string]uint64{}
	for _, object := range objects {
		meta := object.(metav1.Object)
		listed[meta.GetName()] = versionOf(meta)
	}
	for name, highest := range w.highest {
		if at < highest || (listed[name] != 0 && listed[name] < highest) {
			w.err = errors.Join(w.err, fmt.Errorf("a list at version %d tells %d of %s, which was at %d already", at,
				listed[name], name, highest))
		}
	}
	for name, version := range listed {
		w.highest[name] = max(version, w.highest[name])
	}
	w.present = listed
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *watcher) Resync() error { return nil }

// check compares what was told with what the writers know: each acknowledged version was told, or a later one.
func (w *watcher) check(all []*writer, stored map[string]uint64) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	err := w.err
	for _, writer := range all {
		for name, s := range writer.states {
			if stored[name] != 0 && w.highest[name] < s.version {
				err = errors.Join(err, fmt.Errorf("%s: version %d was acknowledged, the latest that was told is %d",
					name, s.version, w.highest[name]))
			}
			if w.present[name] != stored[name] {
				err = errors.Join(err, fmt.Errorf("%s: stored is version %d, told is %d", name, stored[name],
					w.present[name]))
			}
		}
	}
	return err
}

// TestNoAcknowledgedWriteIsLost kills garden-apiserver and etcd again and again while clients write.
func TestNoAcknowledgedWriteIsLost(t *testing.T) {
	garden := startKillableGarden(t)
	watching, stopWatching := context.WithCancel(t.Context())
	told := startWatchers(t, watching, garden)
	var acked atomic.Int64
	writing, stopWriting := context.WithCancel(t.Context())
	all, done := startWriters(t, writing, garden.Config, &acked)

	for _, victims := range [][]*environment.Process{
		{garden.GardenAPIServer}, {garden.Etcd}, {garden.GardenAPIServer}, {garden.Etcd},
		{garden.Etcd, garden.GardenAPIServer},
	} {
		awaitWrites(t, &acked, done)
		for _, victim := range victims {
			victim.Kill()
		}
		for _, victim := range victims {
			if err := victim.Start(); err != nil {
				t.Fatal(err)
			}
		}
	}
	awaitWrites(t, &acked, done)
	stopWriting()
	for range all {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	stored := checkStored(t, garden.Client, all)
	for i, watcher := range told {
		eventually(t, func() error { return watcher.check(all, stored) })
		t.Logf("watcher %d: %d events, %d lists", i, watcher.events, watcher.lists)
	}
	stopWatching()
	t.Logf("%d writes were acknowledged", acked.Load())
}

func startKillableGarden(t *testing.T) *environment.Environment {
	t.Helper()
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	garden, err := environment.StartWith(t.Context(), environment.Options{Binary: binary, OwnProcesses: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(garden.Stop)
	return garden
}

func startWriters(t *testing.T, ctx context.Context, config *rest.Config, acked *atomic.Int64) ([]*writer, chan error) {
	t.Helper()
	var all []*writer
	done := make(chan error, writers)
	for number := range writers {
		w := newWriter(t, config, number, acked)
		all = append(all, w)
		go func() { done <- w.run(ctx, number) }()
	}
	return all, done
}

func startWatchers(t *testing.T, ctx context.Context, garden *environment.Environment) []*watcher {
	t.Helper()
	var all []*watcher
	for number := range watchers {
		config, err := garden.ConfigFor(garden.Config.Host, fmt.Sprintf("watcher%d", number), "system:masters")
		if err != nil {
			t.Fatal(err)
		}
		config.GroupVersion, config.APIPath = &gardencorev1beta1.SchemeGroupVersion, "/apis"
		config.NegotiatedSerializer = serializer.NewCodecFactory(apis.GardenScheme()).WithoutConversion()
		getter, err := rest.RESTClientFor(config)
		if err != nil {
			t.Fatal(err)
		}
		told := newWatcher()
		source := toolscache.NewListWatchFromClient(getter, "internalsecrets", registration.Namespace,
			fields.Everything())
		go toolscache.NewReflector(source, &gardencorev1beta1.InternalSecret{}, told, 0).RunWithContext(ctx)
		all = append(all, told)
	}
	return all
}

// awaitWrites waits for more acknowledged writes, and fails when a writer has given up.
func awaitWrites(t *testing.T, acked *atomic.Int64, done chan error) {
	t.Helper()
	wanted := acked.Load() + writesBetweenFaults
	eventually(t, func() error {
		select {
		case err := <-done:
			t.Fatalf("a writer ended: %v", err)
		default:
		}
		if have := acked.Load(); have < wanted {
			return fmt.Errorf("%d writes were acknowledged, waiting for %d", have, wanted)
		}
		return nil
	})
}

// checkStored compares what is stored in the end with the writers' records, and returns the versions.
func checkStored(t *testing.T, c client.Client, all []*writer) map[string]uint64 {
	t.Helper()
	list := &gardencorev1beta1.InternalSecretList{}
	eventually(t, func() error {
		return c.List(context.Background(), list, client.InNamespace(registration.Namespace))
	})
	versions, values := map[string]uint64{}, map[string]int64{}
	for i := range list.Items {
		versions[list.Items[i].Name], values[list.Items[i].Name] = versionOf(&list.Items[i]), valueOf(&list.Items[i])
	}
	for _, w := range all {
		for name, s := range w.states {
			if !s.allows(values[name]) {
				t.Errorf("%s is stored with value %d, but the last acknowledged write was %+v", name, values[name], *s)
			}
		}
	}
	return versions
}
