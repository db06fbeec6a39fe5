package client

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// A following is one list and watch of the API server.
type following[T metav1.Object] struct {
	selector  string // of fields
	list      func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	keepWatch time.Duration // the least time a watch is asked to last; 0: 5m
	store     store[T]
	failed    func(error) // it is tried again by itself

	again func()          // a watch stands that had failed; nil: nobody asks
	hurry <-chan struct{} // no need to wait after a failure; nil: there is
}

// A store takes what a following sees, from one goroutine. It keeps the objects
// and changes nothing of them.
type store[T any] interface {
	replace([]T) // everything there is
	put(T)       // added, or changed
	drop(T)      // gone
}

// What a following allows itself. Failures in a row double the wait, which is
// then between half of that and all of it, so that a thousand nodes do not come
// back in the same second.
const (
	firstRetry   = time.Second
	lastRetry    = 30 * time.Second
	wellFor      = 5 * time.Second // a round that lasted was no failure
	snapshotTime = 2 * time.Minute // for everything there is
)

// follow keeps the store up to date until ctx ends, and returns then.
//
// It goes in rounds. One without a version to go on from begins with everything
// there is: as a watch-list, or, where the server has none, as a list. Both are
// read as of now; what a cache had a while ago may be of pods that are long
// gone. Then come changes, for as long as the watch lasts. The next round goes
// on from the last version, unless the server has forgotten it (410 Gone).
//
// client-go's reflector does the same, but tries again without any wait when a
// watch-list is answered with 410, waits regardless of ctx when throttled, and
// costs a few goroutines more for each object.
func follow[T metav1.Object](ctx context.Context, f following[T]) {
	r := round[T]{following: &f}
	for failures := 0; ctx.Err() == nil; {
		begin := time.Now()
		select {
		case <-f.hurry: // said while there was nothing to hurry
		default:
		}
		err := r.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !forgotten(err) {
			f.failed(err)
			r.failing = true
		}
		if time.Since(begin) >= wellFor {
			failures = 0
			if err == nil || forgotten(err) {
				continue
			}
		}
		failures++
		wait := backoff(firstRetry, lastRetry, failures)
		wait -= time.Duration(rand.Int64N(int64(wait / 2)))
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
		case <-f.hurry:
		case <-time.After(wait):
		}
	}
}

// forgotten reports whether the server does not have the history any more that
// a watch was to go on from. That is how the API works, and no failure.
func forgotten(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// A round is what is carried from one round to the next.
type round[T metav1.Object] struct {
	*following[T]
	version string // to go on from; "": from the beginning
	lists   bool   // the server has no watch-lists
	failing bool   // the round before has failed

	open func(metav1.ListOptions) (watch.Interface, error) // of this round
}

// run does one round. It returns nil when the server ended the watch.
func (r *round[T]) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // the watch with it
	r.open = func(opts metav1.ListOptions) (watch.Interface, error) {
		// A server begins to answer at once; what is between may not.
		late := time.AfterFunc(snapshotTime, func() { cancel(fmt.Errorf("no answer within %v", snapshotTime)) })
		defer late.Stop()
		w, err := r.watch(ctx, opts)
		if err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return w, err
	}
	var w watch.Interface
	var err error
	if r.version == "" && !r.lists {
		w, err = r.watchList(ctx)
		if err != nil && !answered(err) {
			return err
		}
	}
	if r.version == "" {
		if err := r.listAll(ctx); err != nil {
			return err
		}
		r.lists = true
	}
	if w == nil {
		keep := r.keepWatch
		if keep == 0 {
			keep = 5 * time.Minute
		}
		w, err = r.open(metav1.ListOptions{
			FieldSelector: r.selector, ResourceVersion: r.version, AllowWatchBookmarks: true,
			TimeoutSeconds: new(int64(keep.Seconds() * (1 + rand.Float64()))),
		})
		if err != nil {
			return r.noting(fmt.Errorf("watch: %w", err))
		}
	}
	defer w.Stop()
	if r.failing && r.again != nil {
		r.again()
	}
	r.failing = false
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if err := r.take(e); err != nil {
				return r.noting(fmt.Errorf("watch: %w", err))
			}
		}
	}
}

// noting takes note if there is no going on from the version.
func (r *round[T]) noting(err error) error {
	if forgotten(err) || unknownVersion(err) {
		r.version = ""
	}
	return err
}

// unknownVersion reports whether the server cannot do anything with a version: it is
// ahead of all that it has, or from another store. So it is when that was put back
// from a backup, or exchanged; nothing that comes will have that version.
func unknownVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		apierrors.IsTimeout(err) && strings.Contains(err.Error(), "Too large resource version")
}

// take takes one change.
func (r *round[T]) take(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	one, ok := e.Object.(T)
	if !ok {
		return fmt.Errorf("%s of a %T, which is not what was asked for", e.Type, e.Object)
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		r.store.put(slim(one))
	case watch.Deleted:
		r.store.drop(one)
	}
	r.version = one.GetResourceVersion() // of a bookmark: that is all it is for
	return nil
}

// answered reports whether the server has refused a watch-list, in one of the
// many ways in which servers and what they store in do when they have none. A
// list works then, or says what is wrong. One that has too much to do is left
// alone.
func answered(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && !apierrors.IsTooManyRequests(err)
}

// watchList reads everything from a watch, which goes on with the changes.
func (r *round[T]) watchList(ctx context.Context) (_ watch.Interface, err error) {
	w, err := r.open(metav1.ListOptions{
		FieldSelector: r.selector, AllowWatchBookmarks: true, SendInitialEvents: new(true),
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		TimeoutSeconds:       new(int64(max(r.keepWatch, 5*time.Minute).Seconds() * (1 + rand.Float64()))),
	})
	if err != nil {
		return nil, fmt.Errorf("watch-list: %w", err)
	}
	defer func() {
		if err != nil {
			w.Stop()
		}
	}()
	late := time.NewTimer(snapshotTime)
	defer late.Stop()
	all := map[types.NamespacedName]T{}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, fmt.Errorf("watch-list: is not complete after %v", snapshotTime)
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil, errors.New("watch-list: ended before it was complete")
			}
			if e.Type == watch.Error {
				return nil, fmt.Errorf("watch-list: %w", apierrors.FromObject(e.Object))
			}
			one, ok := e.Object.(T)
			if !ok {
				return nil, fmt.Errorf("watch-list: %s of a %T, which is not what was asked for", e.Type, e.Object)
			}
			name := types.NamespacedName{Namespace: one.GetNamespace(), Name: one.GetName()}
			switch e.Type {
			case watch.Added, watch.Modified:
				all[name] = slim(one)
			case watch.Deleted:
				delete(all, name)
			case watch.Bookmark:
				if one.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
					r.store.replace(slices.Collect(maps.Values(all)))
					r.version = one.GetResourceVersion()
					return w, nil
				}
			}
		}
	}
}

// listAll reads everything at once.
func (r *round[T]) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTime)
	defer cancel()
	list, err := r.list(ctx, metav1.ListOptions{FieldSelector: r.selector})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	var all []T
	if err := meta.EachListItemWithAlloc(list, func(o runtime.Object) error {
		one, ok := o.(T)
		if !ok {
			return fmt.Errorf("list: a %T, which is not what was asked for", o)
		}
		all = append(all, slim(one))
		return nil
	}); err != nil {
		return err
	}
	about, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	r.store.replace(all)
	r.version = about.GetResourceVersion()
	return nil
}

// lister makes of a typed list one that returns any.
func lister[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return list(ctx, opts) }
}

// slim takes from an object that has just been read what nobody here asks for.
func slim[T metav1.Object](object T) T {
	object.SetManagedFields(nil)
	return object
}
