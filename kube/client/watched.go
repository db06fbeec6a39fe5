package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// keepWatch is the minimum requested duration of a watch of one object (rule oc-3).
const keepWatch = 30 * time.Minute

// An entry is the cache of one key, guarded by the mu of its Objects.
type entry struct {
	key
	o *Objects

	refs  map[types.UID]use // pods that refer to it
	until time.Time         // expiration, if refs is empty
	used  time.Time         // last read

	objects    map[string]metav1.Object // by name; replaced, never modified
	synced     bool                     // objects is current
	everSynced bool
	err        error         // the reason why it is not synced
	changed    chan struct{} // closed when synced or err changes
	fixed      bool          // the object is immutable, and need not be read again (rule oc-5)
	claimed    bool          // a pod was registered since the current watch started
	held       bool          // objects may be used if they cannot be read again

	running bool // it is watched
	idle    bool // it is not watched since it is not read
	stop    context.CancelFunc

	// Used by the strategy Cache.
	refresh bool
	read    time.Time     // last read from the API server
	reading chan struct{} // closed when the pending read ends; nil if there is none
}

// Run watches the objects that pods refer to until ctx is done, and returns nil after its
// goroutines have returned. It returns an error if it was called before.
func (o *Objects) Run(ctx context.Context) error {
	if o.ran.Swap(true) {
		return errors.New("client: Objects.Run was called before")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		starts, next := o.sweep(time.Now())
		for _, e := range starts {
			ctx, stop := context.WithCancel(ctx)
			o.started(e, stop)
			wg.Go(func() {
				defer o.stopped(e, stop)
				e.follow(ctx)
			})
		}
		var later <-chan time.Time
		if !next.IsZero() {
			later = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-o.dirty:
		case <-later:
		}
	}
}

// sweep stops watches that are not needed. It returns the entries to watch, and the time of
// the next call.
func (o *Objects) sweep(now time.Time) (starts []*entry, next time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for k, e := range o.entries {
		if len(e.refs) == 0 {
			if !now.Before(e.until) {
				delete(o.entries, k)
				e.haltLocked()
				continue
			}
			at(e.until)
		}
		idleAt := e.used.Add(o.cfg.Idle)
		switch {
		case !o.follows(k) || e.fixed:
		case !e.running && !e.idle:
			starts = append(starts, e)
			if !e.reportsChanges() {
				at(idleAt)
			}
		case e.running && !e.reportsChanges() && !now.Before(idleAt): // rule oc-6
			e.idle = true
			e.haltLocked()
		case e.running && !e.reportsChanges():
			at(idleAt)
		}
	}
	slices.SortFunc(starts, func(a, b *entry) int { return compareKeys(a.key, b.key) })
	return starts, next
}

// follows reports whether objects of a key are watched.
func (o *Objects) follows(k key) bool {
	return o.cfg.Strategy == Watch || k.kind != kindSecret && k.kind != kindConfigMap
}

// reportsChanges reports whether changes are reported to Changed, so that the entry is
// watched even if it is not read.
func (e *entry) reportsChanges() bool {
	if e.o.cfg.Changed == nil {
		return false
	}
	for _, u := range e.refs {
		if u == pushed {
			return true
		}
	}
	return false
}

func (o *Objects) started(e *entry, stop context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e.running, e.stop, e.claimed = true, stop, false
}

// claimLocked prepares the entry for a pod that is registered now: what was read before may
// be outdated, also an immutable object, since it may have been deleted and created again.
// If other pods refer to an immutable object, it remains usable while the API server does
// not respond.
func (e *entry) claimLocked() {
	e.refresh, e.claimed = true, true // rule oc-7
	if e.fixed {
		e.fixed, e.synced, e.err = false, false, nil
		e.held = len(e.refs) > 0
	}
}

// keepLocked extends the time for which the entry is cached without references. That of an
// immutable object, which is not read again in the meantime, is not extended by reads.
func (e *entry) keepLocked(now time.Time) {
	if len(e.refs) == 0 {
		e.until = now.Add(e.o.cfg.Grace)
	}
}

func (o *Objects) stopped(e *entry, stop context.CancelFunc) {
	stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	e.running, e.stop = false, nil
	if !e.fixed {
		e.synced, e.err = false, nil
	}
	o.wake()
}

// haltLocked stops the watch of the entry.
func (e *entry) haltLocked() {
	if e.stop != nil {
		e.stop()
	}
	if !e.fixed {
		e.synced = false // objects are no longer updated
	}
}

func (o *Objects) wake() {
	select {
	case o.dirty <- struct{}{}:
	default:
	}
}

// follow watches the objects of the entry.
func (e *entry) follow(ctx context.Context) {
	api := accessTo(e.o.cfg.Client, e.kind, e.namespace)
	selector := ""
	if e.name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", e.name).String()
	}
	follow(ctx, following[metav1.Object]{
		selector: selector, list: api.list, watch: api.watch,
		keepWatch: keepWatch, store: entryStore{e, ctx}, failed: e.failed,
	})
}

// failed stores the error of a list or watch.
func (e *entry) failed(err error) {
	e.o.mu.Lock()
	isNew := e.err == nil || e.err.Error() != err.Error()
	e.err = err
	e.changedLocked()
	e.o.mu.Unlock()
	if isNew {
		e.o.cfg.Logger.Warn("Failed to watch object; it may be missing or outdated; will retry", "kind", e.kind, "object", e.namespace+"/"+e.name, "err", err)
	}
}

// changedLocked wakes the goroutines that wait for the entry.
func (e *entry) changedLocked() {
	close(e.changed)
	e.changed = make(chan struct{})
}

// An entryStore is the store of one watch of an entry. It ignores updates after the watch
// was stopped, since another one may have started.
type entryStore struct {
	*entry
	ctx context.Context // of the watch
}

func (f entryStore) replace(list []metav1.Object) {
	f.update(func(objects map[string]metav1.Object) {
		clear(objects)
		for _, object := range list {
			objects[object.GetName()] = object
		}
	}, true)
}

func (f entryStore) put(object metav1.Object) {
	f.update(func(objects map[string]metav1.Object) { objects[object.GetName()] = object }, false)
}

func (f entryStore) drop(object metav1.Object) {
	f.update(func(objects map[string]metav1.Object) {
		if was := objects[object.GetName()]; was != nil && was.GetUID() == object.GetUID() {
			delete(objects, object.GetName())
		}
	}, false)
}

// update changes the objects, and reports the change.
func (f entryStore) update(change func(map[string]metav1.Object), all bool) {
	e, o := f.entry, f.o
	o.mu.Lock()
	if f.ctx.Err() != nil {
		o.mu.Unlock()
		return
	}
	was, everSynced := e.objects, e.everSynced
	failed := e.err != nil && !e.synced
	next := maps.Clone(was)
	change(next)
	e.objects = next
	if all {
		e.synced, e.everSynced, e.held, e.err = true, true, false, nil
	}
	if object := next[e.name]; object != nil && immutable(object) && !e.claimed {
		e.fixed = true
		e.haltLocked()
	}
	e.changedLocked()
	o.mu.Unlock()
	if o.cfg.Changed == nil || e.name == "" {
		return
	}
	if everSynced && !same(was[e.name], next[e.name]) || failed {
		o.cfg.Changed(e.kind, e.namespace, e.name)
	}
}

// same reports whether a and b are the same version of an object, or both nil.
func same(a, b metav1.Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// watched returns an object that is watched.
func (o *Objects) watched(done <-chan struct{}, k key) (metav1.Object, error) {
	if k.name == "" {
		return nil, noName(k) // as a key it would mean all objects
	}
	objects, err := o.wait(done, k)
	if err != nil {
		return nil, err
	}
	object := objects[k.name]
	if object == nil {
		return nil, notFound(k)
	}
	return object, nil
}

// all returns the objects of a key.
func (o *Objects) all(done <-chan struct{}, k key) ([]metav1.Object, error) {
	objects, err := o.wait(done, k)
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(objects)), nil
}

// wait returns the objects of a key when they are synced, or an error after at most Wait.
func (o *Objects) wait(done <-chan struct{}, k key) (map[string]metav1.Object, error) {
	late := time.NewTimer(o.cfg.Wait)
	defer late.Stop()
	for {
		o.mu.Lock()
		now := time.Now()
		e := o.entryLocked(k)
		e.used = now
		if !e.fixed {
			e.keepLocked(now)
		}
		if e.idle || !e.running {
			e.idle = false
			o.wake()
		}
		objects, synced, held, err, changed := e.objects, e.synced || e.fixed, e.held, e.err, e.changed
		o.mu.Unlock()
		switch {
		case synced || held && err != nil:
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("client: read %s: %w", k, err)
		}
		select {
		case <-changed:
		case <-done:
			return nil, fmt.Errorf("client: read %s: %w", k, context.Canceled)
		case <-late.C:
			if held {
				return objects, nil
			}
			return nil, fmt.Errorf("client: read %s: failed to sync %s cache: timed out waiting for the condition", k, strings.ToLower(k.kind))
		}
	}
}

func noName(k key) error { return fmt.Errorf("client: read %s: name is empty", k) }

// notFound returns the error of the API server (rule oc-8), with the kind in the singular as in the
// kubelet's events.
func notFound(k key) error {
	resource := schema.GroupResource{Resource: strings.ToLower(k.kind)}
	switch k.kind {
	case kindRuntimeClass:
		resource.Group = nodev1.GroupName
	case kindCSIDriver:
		resource.Group = storagev1.GroupName
	}
	return apierrors.NewNotFound(resource, k.name)
}

func (k key) String() string {
	name := k.name
	if k.namespace != "" {
		name = k.namespace + "/" + k.name
	}
	return strings.ToLower(k.kind) + " " + name
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

func compareNames(a, b metav1.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}
