package client

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
)

// A following is one list and watch of the API server.
type following[T metav1.Object] struct {
	name      string
	object    T      // an empty one
	selector  string // of fields
	list      func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch     func(context.Context, metav1.ListOptions) (watch.Interface, error)
	keepWatch time.Duration // the least time a watch is asked to last; 0: 5m
	store     store[T]
	failed    func(error) // it is tried again by itself
}

// A store takes what a following sees, from one goroutine. It keeps the objects
// and changes nothing of them.
type store[T any] interface {
	replace([]T) // everything there is
	put(T)       // added, or changed
	drop(T)      // gone
}

// follow keeps the store up to date until ctx ends, and returns then. It is
// client-go's reflector that does it: a watch-list where the server has that,
// else a list; then a watch that is taken up again where it broke, a fresh list
// after 410 Gone, and 0.8s to 60s between failures (a whole minute, at worst).
func follow[T metav1.Object](ctx context.Context, f following[T]) {
	var calls sync.WaitGroup // the reflector leaves a list behind when ctx ends
	defer calls.Wait()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			calls.Add(1)
			defer calls.Done()
			opts.FieldSelector = f.selector
			list, err := f.list(ctx, opts)
			f.tell(ctx, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = f.selector
			w, err := f.watch(ctx, opts)
			if opts.SendInitialEvents == nil || !refused(err) {
				f.tell(ctx, err)
			}
			return w, err
		},
	}
	silent := logr.FromSlogHandler(slog.DiscardHandler) // failures are told above
	r := cache.NewReflectorWithOptions(lw, f.object, reflected[T]{f.store}, cache.ReflectorOptions{
		Name: f.name, Logger: &silent, MinWatchTimeout: f.keepWatch, Clock: stopClock{ctx: ctx},
	})
	r.RunWithContext(logr.NewContext(ctx, silent))
}

// tell passes on a failure that somebody should know of: not that a watch is
// too old to go on with, which is how the API works.
func (f *following[T]) tell(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		f.failed(err)
	}
}

// refused reports whether the server will not do a watch-list: then a list
// follows, which says what is wrong if anything is.
func refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
}

// lister makes of a typed list one that returns any.
func lister[L runtime.Object](list func(context.Context, metav1.ListOptions) (L, error)) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) { return list(ctx, opts) }
}

// reflected makes a store one that a reflector can write to.
type reflected[T metav1.Object] struct{ store store[T] }

func (r reflected[T]) Add(object any) error { return r.Update(object) }

func (r reflected[T]) Update(object any) error {
	r.store.put(slim(object.(T)))
	return nil
}

func (r reflected[T]) Delete(object any) error {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	one, ok := object.(T)
	if !ok {
		return fmt.Errorf("client: %T was deleted, where %T was expected", object, one)
	}
	r.store.drop(one)
	return nil
}

func (r reflected[T]) Replace(objects []any, _ string) error {
	list := make([]T, len(objects))
	for i, object := range objects {
		list[i] = slim(object.(T))
	}
	r.store.replace(list)
	return nil
}

func (r reflected[T]) Resync() error { return nil } // whoever has whole sets needs none

// slim takes from an object that has just been read what nobody here asks for.
func slim[T metav1.Object](object T) T {
	object.SetManagedFields(nil)
	return object
}

// A stopClock is the clock of a reflector whose waits end with ctx: a reflector
// that is throttled waits up to a minute, whether or not it was told to stop.
type stopClock struct {
	clock.RealClock
	ctx context.Context // of the one call of follow that it belongs to
}

// After returns a channel that gets the time after d, or when ctx ends.
func (c stopClock) After(d time.Duration) <-chan time.Time {
	at := make(chan time.Time, 1)
	var once sync.Once
	fire := func() { once.Do(func() { at <- time.Now() }) }
	timer := time.AfterFunc(d, fire)
	context.AfterFunc(c.ctx, func() {
		timer.Stop()
		fire()
	})
	return at
}
