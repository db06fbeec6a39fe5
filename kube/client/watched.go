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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// keepWatch is how long a watch of one object is asked to last (oc-3).
const keepWatch = 30 * time.Minute

// An entry is what is known of one key. The mu of its Objects guards it.
type entry struct {
	key
	o *Objects

	refs  map[types.UID]use // who refers to it
	until time.Time         // while nobody does: when it is forgotten
	used  time.Time         // when it was read last

	objects map[string]metav1.Object // by name; replaced, never changed
	synced  bool                     // objects is what the API server has
	ever    bool                     // it was synced once
	err     error                    // why it is not synced
	news    chan struct{}            // closed when synced or err changes
	fixed   bool                     // it cannot change any more (oc-5)

	running bool // Run follows it
	idle    bool // it may be followed, but nobody reads it
	stop    context.CancelFunc

	// Of strategy Cache.
	refresh bool
	read    time.Time     // when it was read from the API server
	reading chan struct{} // closed when the read that is under way ends
}

// Run follows the objects that pods refer to until ctx is done, and returns nil after
// its goroutines have returned. A second call returns an error.
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

// sweep ends what is not needed, and returns what is to be started and when to
// look again.
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
			if !e.kept() {
				at(idleAt)
			}
		case e.running && !e.kept() && !now.Before(idleAt): // oc-6
			e.idle = true
			e.haltLocked()
		case e.running && !e.kept():
			at(idleAt)
		}
	}
	slices.SortFunc(starts, func(a, b *entry) int { return compareKeys(a.key, b.key) })
	return starts, next
}

// follows reports whether objects of this kind are watched.
func (o *Objects) follows(k key) bool {
	return o.cfg.Strategy == Watch || k.kind != kindSecret && k.kind != kindConfigMap
}

// kept reports whether somebody waits to hear of changes, and so it is followed
// whether or not it is read.
func (e *entry) kept() bool {
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
	e.running, e.stop = true, stop
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

// haltLocked lets the follower of the entry end.
func (e *entry) haltLocked() {
	if e.stop != nil {
		e.stop()
	}
	if !e.fixed {
		e.synced = false // what it holds gets older from now on
	}
}

func (o *Objects) wake() {
	select {
	case o.dirty <- struct{}{}:
	default:
	}
}

// follow follows the entry's objects.
func (e *entry) follow(ctx context.Context) {
	api := accessTo(e.o.cfg.Client, e.kind, e.namespace)
	selector := ""
	if e.name != "" {
		selector = fields.OneTermEqualSelector("metadata.name", e.name).String()
	}
	follow(ctx, following[metav1.Object]{
		selector: selector, list: api.list, watch: api.watch,
		keepWatch: keepWatch, store: following1{e, ctx}, failed: e.failed,
	})
}

// failed takes note that the entry cannot be read for now.
func (e *entry) failed(err error) {
	e.o.mu.Lock()
	news := e.err == nil || e.err.Error() != err.Error()
	e.err = err
	e.tellLocked()
	e.o.mu.Unlock()
	if news {
		e.o.cfg.Logger.Warn("object is not known, or not whether it has changed", "kind", e.kind, "object", e.namespace+"/"+e.name, "err", err)
	}
}

// tellLocked lets those who wait for the entry look.
func (e *entry) tellLocked() {
	close(e.news)
	e.news = make(chan struct{})
}

// A following1 is the store of one follower of an entry. It writes nothing any
// more once it was stopped: another one may follow by then.
type following1 struct {
	*entry
	ctx context.Context // of the one follower that it belongs to
}

func (f following1) replace(list []metav1.Object) {
	f.update(func(objects map[string]metav1.Object) {
		clear(objects)
		for _, object := range list {
			objects[object.GetName()] = object
		}
	}, true)
}

func (f following1) put(object metav1.Object) {
	f.update(func(objects map[string]metav1.Object) { objects[object.GetName()] = object }, false)
}

func (f following1) drop(object metav1.Object) {
	f.update(func(objects map[string]metav1.Object) {
		if was := objects[object.GetName()]; was != nil && was.GetUID() == object.GetUID() {
			delete(objects, object.GetName())
		}
	}, false)
}

// update changes what is known, and tells those who want to know.
func (f following1) update(change func(map[string]metav1.Object), all bool) {
	e, o := f.entry, f.o
	o.mu.Lock()
	if f.ctx.Err() != nil {
		o.mu.Unlock()
		return
	}
	was, ever := e.objects, e.ever
	failed := e.err != nil && !e.synced
	next := maps.Clone(was)
	change(next)
	e.objects = next
	if all {
		e.synced, e.ever, e.err = true, true, nil
	}
	if object := next[e.name]; object != nil && immutable(object) {
		e.fixed = true
		e.haltLocked()
	}
	e.tellLocked()
	o.mu.Unlock()
	if o.cfg.Changed == nil || e.name == "" {
		return
	}
	if ever && !same(was[e.name], next[e.name]) || failed {
		o.cfg.Changed(e.kind, e.namespace, e.name)
	}
}

// same reports whether two answers are the same version of an object, or none.
func same(a, b metav1.Object) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.GetUID() == b.GetUID() && a.GetResourceVersion() == b.GetResourceVersion()
}

// watched returns an object that is followed.
func (o *Objects) watched(done <-chan struct{}, k key) (metav1.Object, error) {
	if k.name == "" {
		return nil, noName(k) // as a key it means all of them
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

// wait returns what is known of a key as soon as it is, at most Wait later.
func (o *Objects) wait(done <-chan struct{}, k key) (map[string]metav1.Object, error) {
	late := time.NewTimer(o.cfg.Wait)
	defer late.Stop()
	for {
		o.mu.Lock()
		now := time.Now()
		e := o.entryLocked(k)
		e.used = now
		if len(e.refs) == 0 {
			e.until = now.Add(o.cfg.Grace)
		}
		if e.idle || !e.running {
			e.idle = false
			o.wake()
		}
		objects, synced, err, news := e.objects, e.synced || e.fixed, e.err, e.news
		o.mu.Unlock()
		switch {
		case synced:
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("client: read %s: %w", k, err)
		}
		select {
		case <-news:
		case <-done:
			return nil, fmt.Errorf("client: read %s: %w", k, context.Canceled)
		case <-late.C:
			return nil, fmt.Errorf("client: read %s: failed to sync %s cache: timed out waiting for the condition", k, strings.ToLower(k.kind))
		}
	}
}

func noName(k key) error { return fmt.Errorf("client: read %s: it has no name", k) }

// notFound is what the API server would say (oc-8).
func notFound(k key) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: strings.ToLower(k.kind) + "s"}, k.name)
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
