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
	"k8s.io/client-go/kubernetes"
)

// A following is a list and watch of objects.
type following[T metav1.Object] struct {
	selector  string // field selector
	list      func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	keepWatch time.Duration // minimum requested duration of a watch; zero: 5m
	store     store[T]
	failed    func(error) // called after each failure, which is retried

	lists     bool            // never use watch-lists; see noWatchList
	recovered func()          // called when a watch is established after a failure; may be nil
	retry     <-chan struct{} // ends the backoff; may be nil
}

// A store receives the objects of a following, which were just read, from one goroutine. Afterwards
// they are shared and must not be modified.
type store[T any] interface {
	replace([]T) // all objects
	put(T)       // added, or changed
	drop(T)      // deleted
}

// Backoff doubles with each consecutive failure, with up to 50 % negative jitter, so that
// many nodes do not reconnect at the same time.
const (
	initialBackoff  = time.Second
	maxBackoff      = 30 * time.Second
	healthyAfter    = 5 * time.Second // a round of this duration resets the backoff
	snapshotTimeout = 2 * time.Minute // of reading all objects
)

// follow keeps the store up to date until ctx is done.
//
// It proceeds in rounds. A round without a version begins by reading all objects: by a
// watch-list, or by a list if the server does not support it. Both read the most recent
// version, since a cache may contain pods that were deleted long ago. The watch then
// reports changes until it ends. The next round resumes at the last version, unless the
// server no longer has it (410 Gone).
//
// client-go's reflector retries without delay if a watch-list fails with 410, ignores ctx
// while it is throttled, and uses several more goroutines per object.
func follow[T metav1.Object](ctx context.Context, f following[T]) {
	r := round[T]{following: &f, lists: f.lists}
	for failures := 0; ctx.Err() == nil; {
		begin := time.Now()
		select {
		case <-f.retry: // sent before the failure
		default:
		}
		err := r.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !isExpired(err) {
			f.failed(err)
			r.failing = true
		}
		if time.Since(begin) >= healthyAfter {
			failures = 0
			if err == nil || isExpired(err) {
				continue
			}
		}
		failures++
		wait := backoff(initialBackoff, maxBackoff, failures)
		wait -= time.Duration(rand.Int64N(int64(wait / 2)))
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			wait = max(wait, time.Duration(seconds)*time.Second)
		}
		select {
		case <-ctx.Done():
		case <-f.retry:
		case <-time.After(wait):
		}
	}
}

// isExpired reports whether the server no longer has the version of a watch, which is not a
// failure.
func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// A round is the state between rounds.
type round[T metav1.Object] struct {
	*following[T]
	version string // to resume at; empty: read all objects
	lists   bool   // the server does not support watch-lists, or must not be asked
	failing bool   // the previous round has failed

	open func(metav1.ListOptions) (watch.Interface, error) // of this round
}

// run does one round. It returns nil if the server closed the watch.
func (r *round[T]) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // also ends the watch
	r.open = func(opts metav1.ListOptions) (watch.Interface, error) {
		// A server responds immediately; a proxy may not.
		late := time.AfterFunc(snapshotTimeout, func() { cancel(fmt.Errorf("no response within %v", snapshotTimeout)) })
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
		if err != nil && !isStatusError(err) {
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
			return r.checkVersion(fmt.Errorf("watch: %w", err))
		}
	}
	defer w.Stop()
	if r.failing && r.recovered != nil {
		r.recovered()
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
				return r.checkVersion(fmt.Errorf("watch: %w", err))
			}
		}
	}
}

// checkVersion resets the version if the server cannot resume at it.
func (r *round[T]) checkVersion(err error) error {
	if isExpired(err) || unknownVersion(err) {
		r.version = ""
	}
	return err
}

// unknownVersion reports whether the server rejects a version because it is newer than its
// own, or from another store, such as after a restore from a backup.
func unknownVersion(err error) bool {
	return apierrors.IsBadRequest(err) || apierrors.IsInvalid(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) ||
		apierrors.IsTimeout(err) && strings.Contains(err.Error(), "Too large resource version")
}

// take applies one event.
func (r *round[T]) take(e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	one, ok := e.Object.(T)
	if !ok {
		return fmt.Errorf("%s: unexpected type %T", e.Type, e.Object)
	}
	switch e.Type {
	case watch.Added, watch.Modified:
		r.store.put(withoutManagedFields(one))
	case watch.Deleted:
		r.store.drop(one)
	}
	r.version = one.GetResourceVersion() // bookmarks have only this
	return nil
}

// isStatusError reports whether the server has rejected a watch-list, as servers and
// proxies without support do in various ways. The following list succeeds, or returns the
// actual error. Throttling is excluded.
func isStatusError(err error) bool {
	_, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && !apierrors.IsTooManyRequests(err)
}

// watchList reads all objects from a watch, which then reports changes.
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
	late := time.NewTimer(snapshotTimeout)
	defer late.Stop()
	all := map[types.NamespacedName]T{}
	for {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-late.C:
			return nil, fmt.Errorf("watch-list: incomplete after %v", snapshotTimeout)
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil, errors.New("watch-list: ended before it was complete")
			}
			if e.Type == watch.Error {
				return nil, fmt.Errorf("watch-list: %w", apierrors.FromObject(e.Object))
			}
			one, ok := e.Object.(T)
			if !ok {
				return nil, fmt.Errorf("watch-list: %s: unexpected type %T", e.Type, e.Object)
			}
			name := types.NamespacedName{Namespace: one.GetNamespace(), Name: one.GetName()}
			switch e.Type {
			case watch.Added, watch.Modified:
				all[name] = withoutManagedFields(one)
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

// listAll reads all objects by a list.
func (r *round[T]) listAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	list, err := r.list(ctx, metav1.ListOptions{FieldSelector: r.selector})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	var all []T
	if err := meta.EachListItemWithAlloc(list, func(o runtime.Object) error {
		one, ok := o.(T)
		if !ok {
			return fmt.Errorf("list: unexpected type %T", o)
		}
		all = append(all, withoutManagedFields(one))
		return nil
	}); err != nil {
		return err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	r.store.replace(all)
	r.version = accessor.GetResourceVersion()
	return nil
}

// noWatchList reports whether a client does not support watch-lists, as client-go's reflector
// does: a fake client sends the objects, and never the bookmark after them.
func noWatchList(client kubernetes.Interface) bool {
	fake, ok := client.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && fake.IsWatchListSemanticsUnSupported()
}

// lister converts a typed list function.
func lister[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return list(ctx, opts) }
}

// withoutManagedFields removes the managed fields of an object that was just read, to save
// memory.
func withoutManagedFields[T metav1.Object](object T) T {
	object.SetManagedFields(nil)
	return object
}
