package record

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// A lister records the inspections that an announced status answered: nothing else of a recording shows which did.
type lister struct {
	runtime.Lister
	r *Recorder
}

// Unwrap implements compose.Wrapper: the runtime may be a runtime.Watcher.
func (l lister) Unwrap() any { return l.Lister }

func (l lister) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	if !runtime.AnnouncedAllowed(ctx) {
		return l.Lister.PodStatus(ctx, uid)
	}
	called := new(atomic.Bool)
	st, err := l.Lister.PodStatus(context.WithValue(ctx, inspection{}, called), uid)
	if err == nil && st != nil && !called.Load() {
		announced := &Announced{Pod: uid, Empty: len(st.Sandboxes)+len(st.Containers) == 0}
		l.r.add(announcedBytes, func(*encoder) Frame { return Frame{Announced: announced} })
	}
	return st, err
}

// announcedBytes is the size of an Announced.
const announcedBytes = 64

// inspection is the key of the flag in the context of an inspection that a call sets.
type inspection struct{}

// inspects records that the inspection with this context makes calls. An inspection begins with a list of sandboxes.
func inspects(ctx context.Context) {
	if called, ok := ctx.Value(inspection{}).(*atomic.Bool); ok {
		called.Store(true)
	}
}
